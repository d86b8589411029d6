#include <algorithm>
#include <array>
#include <dic/match.hpp>
#include <vector>

#include "c_interface/objects.hpp"

using namespace dic;
using namespace dic::c_interface;

namespace {

ImageView view_of_image(const dic_image& image) {
  return view_of(image.pixels, image.type, image.width, image.height, image.row_bytes);
}

MatchOptions options_of(const dic_pose_search& search) {
  MatchOptions options;
  options.device = "cpu";
  options.threshold = search.threshold;
  options.max_matches = search.max_matches;
  options.timeout_ms = search.timeout_ms;
  if (search.least_rotation == search.most_rotation)
    options.rotations = {search.least_rotation};
  else
    options.rotation_range = {search.least_rotation, search.most_rotation};
  if (search.least_scale == search.most_scale)
    options.scales = {search.least_scale};
  else
    options.scale_range = {search.least_scale, search.most_scale};
  return options;
}

}  // namespace

dic_status dic_match_poses(const dic_image* pattern, const dic_image* mask, const dic_image* image,
                           const dic_pose_search* search, double* matches, std::int32_t* found) {
  return guarded([&] {
    checked(pattern, "pattern");
    checked(image, "image");
    checked(search, "search");
    checked(matches, "matches");
    checked(found, "found") = 0;
    const std::array patterns = {view_of_image(*pattern)};
    std::vector<ImageView> masks;
    if (mask) masks.push_back(view_of_image(*mask));
    Matcher matcher(patterns, options_of(*search), masks);
    double* row = matches;
    for (const Match& m : matcher.find(view_of_image(*image)).matches) {
      const std::array<double, DIC_POSE_COLUMNS> values = {
          m.x,     m.y,       m.center_x, m.center_y,           m.score,       m.rotation_deg,
          m.scale, m.sigma_x, m.sigma_y,  m.sigma_rotation_deg, m.sigma_scale, m.visible};
      row = std::ranges::copy(values, row).out;
      ++*found;
    }
  });
}

dic_status dic_match(const void* pattern, dic_scalar pattern_type, std::int32_t pattern_width,
                     std::int32_t pattern_height, const void* image, dic_scalar image_type,
                     std::int32_t image_width, std::int32_t image_height, double threshold,
                     const char* device, std::int32_t max_matches, double* matches, std::int32_t* found) {
  return guarded([&] {
    checked(matches, "matches");
    checked(found, "found") = 0;
    MatchOptions options;
    options.threshold = threshold;
    options.max_matches = max_matches;
    if (device) options.device = device;
    const std::array patterns = {view_of(pattern, pattern_type, pattern_width, pattern_height, 0)};
    Matcher matcher(patterns, options);
    double* row = matches;
    for (const Match& match :
         matcher.find(view_of(image, image_type, image_width, image_height, 0)).matches) {
      for (const double value : {match.x, match.y, match.center_x, match.center_y, match.score})
        *row++ = value;
      ++*found;
    }
  });
}

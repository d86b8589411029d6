#include <array>
#include <dic/match.hpp>

#include "c_interface/objects.hpp"

using namespace dic;
using namespace dic::c_interface;

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

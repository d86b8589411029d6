#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/match.hpp>
#include <dic/synth.hpp>
#include <opencv2/imgproc.hpp>

#include "bench/bench.hpp"
#include "bench/timing.hpp"

namespace dic::bench {
namespace {

cv::Mat as_mat(ImageView image) {
  return {image.height, image.width, CV_8U, const_cast<std::uint8_t*>(image.row<std::uint8_t>(0)),
          static_cast<std::size_t>(image.row_bytes)};
}

/// Times the same search by OpenCV, to whole pixels, on the same number of threads.
Timing time_opencv(ImageView cut, ImageView image, const Options& options, const std::stop_token& stop) {
  const int threads_before = cv::getNumThreads();
  if (options.threads > 0) cv::setNumThreads(options.threads);
  cv::Mat scores;
  double best = 0;
  const auto search = [&] {
    cv::matchTemplate(as_mat(image), as_mat(cut), scores, cv::TM_CCOEFF_NORMED);
    cv::minMaxLoc(scores, nullptr, &best);
  };
  const double first = time_of(search);
  Timing timing = time_repeats(one_by_one([&] { return time_of(search); }), options, stop);
  timing.first = first;
  cv::setNumThreads(threads_before);
  return timing;
}

/// Images of which the second has moved: by part of a pixel, or turned.
SynthOptions images_of(const MatchCase& shape, const Options& options) {
  SynthOptions synth;
  synth.size = {shape.image_size, shape.image_size};
  synth.noise = shape.noise;
  synth.seed = options.seed;
  synth.threads = options.threads;
  synth.motion = {.u = 0.3, .v = -0.4};
  if (!shape.poses) return synth;
  // A search of poses needs structures that are still there in reduced images, as parts have them.
  constexpr double kBlobs = 16;
  constexpr double kDegrees = 33.3;
  synth.blob_sigma = std::max(synth.blob_sigma, shape.template_size / kBlobs);
  const double middle = (shape.image_size - 1) / 2.0;
  synth.motion = {.kind = MotionKind::rotation, .angle_deg = kDegrees, .cx = middle, .cy = middle};
  return synth;
}

/// Parts of an image that are templates; they stay inside it when it is turned.
std::vector<ImageView> templates_of(ImageView image, const MatchCase& shape) {
  const auto part = [&](int x, int y) {
    ImageView cut = image;
    cut.data = image.row<std::uint8_t>(y) + x;
    cut.width = cut.height = shape.template_size;
    return cut;
  };
  if (shape.templates == 1) return {part(shape.image_size / 3, shape.image_size / 4)};
  constexpr double kGoldenAngle = 2.39996323;  // spreads places evenly over a disc
  const double middle = (shape.image_size - shape.template_size) / 2.0,
               radius = middle - shape.template_size / 2.0;
  std::vector<ImageView> parts;
  for (int k = 0; k < shape.templates; ++k) {
    const double distance = radius * std::sqrt((k + 0.5) / shape.templates), angle = k * kGoldenAngle;
    parts.push_back(part(static_cast<int>(middle + distance * std::cos(angle)),
                         static_cast<int>(middle + distance * std::sin(angle))));
  }
  return parts;
}

/// Compares the matches with the truth. Throws UsageError.
void judge_match(const MatchResult& result, const std::vector<ImageView>& templates, ImageView before,
                 const Motion& motion, MatchTiming& timing) {
  timing.score = 1;
  std::vector<char> is_found(templates.size(), 0);
  for (const Match& found : result.matches) {
    const ImageView& cut = templates[found.template_index];
    const std::ptrdiff_t at =
        static_cast<const std::byte*>(cut.data) - static_cast<const std::byte*>(before.data);
    const double half = (cut.width - 1) / 2.0;
    const std::ptrdiff_t column = at % before.row_bytes, row = at / before.row_bytes;
    const double x = static_cast<double>(column) + half, y = static_cast<double>(row) + half;
    const auto [u, v] = motion.at(x, y, 1);
    const double error = std::hypot(found.center_x - (x + u), found.center_y - (y + v));
    timing.error = std::max(timing.error, error);
    timing.turn_error =
        std::max(timing.turn_error, std::abs(std::remainder(found.rotation_deg - motion.angle_deg, 360)));
    timing.score = std::min(timing.score, found.score);
    is_found[found.template_index] = error <= 1;
  }
  if (std::ranges::count(is_found, 0) > 0)
    throw UsageError("A template was not found where it is: it is too small for so much noise.");
}

}  // namespace

MatchTiming match(const MatchCase& shape, const Options& options, std::stop_token stop) {
  if (const auto problems = options.validate(); !problems.empty()) throw UsageError(problems.front());
  if (shape.template_size < 8 || shape.template_size > shape.image_size / 2)
    throw UsageError("The template must have a side from 8 px to half of that of the image.");
  if (shape.templates < 1 || (shape.templates > 1 && !shape.poses))
    throw UsageError("The number of templates must be at least 1, and 1 without a search of poses.");
  const SynthOptions synth = images_of(shape, options);
  const Image before = synth_frame(synth, 0), image = synth_frame(synth, 1);
  const std::vector<ImageView> templates = templates_of(before, shape);

  MatchOptions match_options;
  match_options.device = options.device;
  match_options.threads = options.threads;
  if (shape.poses) match_options.rotation_range = {-180, 180};
  Matcher matcher(templates, match_options);
  MatchResult result;
  const double first = time_of([&] { result = matcher.find(image, stop); });

  MatchTiming timing;
  judge_match(result, templates, before, synth.motion, timing);
  timing.seconds =
      time_repeats(one_by_one([&] { return time_of([&] { matcher.find(image, stop); }); }), options, stop);
  timing.seconds.first = first;
  if (shape.poses) {
    if (shape.templates > 1) return timing;
    TemplateTracker tracker(matcher);
    tracker.next(image, stop);
    timing.follow =
        time_repeats(one_by_one([&] { return time_of([&] { tracker.next(image, stop); }); }), options, stop);
    return timing;
  }
  timing.opencv = time_opencv(templates.front(), image, options, stop);
  timing.operations =
      2 * std::pow(shape.image_size - shape.template_size + 1.0, 2) * std::pow(shape.template_size, 2);
  return timing;
}

}  // namespace dic::bench

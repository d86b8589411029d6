#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/likely_reason.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace dic {
namespace {

constexpr int kBlock = 32;  ///< px; larger structures count as shading, not as texture

/// Appearance of an image, grey levels.
struct Look {
  double mean = 0, saturated = 0;  ///< saturated: share of the pixels with the largest value of the type
  double contrast = 0;             ///< median of the standard deviations inside of blocks
  double detail = 0;               ///< median over blocks of the root mean square difference of neighbours
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename T>
Look look_of(ImageView image) {
  const int bits = image.bit_depth > 0 ? image.bit_depth : static_cast<int>(8 * sizeof(T));
  const double limit = std::is_integral_v<T> ? std::pow(2.0, bits) - 1 : HUGE_VAL;
  const int side = std::min({kBlock, image.width, image.height});
  Look look;
  std::vector<double> contrasts, details;
  for (int top = 0; top + side <= image.height; top += side)
    for (int left = 0; left + side <= image.width; left += side) {
      double sum = 0, squares = 0, differences = 0;
      for (int y = top; y < top + side; ++y) {
        const T* row = image.row<T>(y) + left;
        for (int x = 0; x < side; ++x) {
          const auto grey = static_cast<double>(row[x]);
          sum += grey, squares += grey * grey, look.saturated += grey >= limit;
          if (x > 0) differences += std::pow(grey - static_cast<double>(row[x - 1]), 2);
        }
      }
      const double n = side * side, mean = sum / n;
      look.mean += mean;
      contrasts.push_back(std::sqrt(std::max(squares / n - mean * mean, 0.0)));
      details.push_back(std::sqrt(differences / n));
    }
  const auto blocks = static_cast<double>(contrasts.size());
  look.mean /= blocks;
  look.saturated /= blocks * side * side;
  look.contrast = median(std::move(contrasts));
  look.detail = median(std::move(details));
  return look;
}

Look look_of(ImageView image) {
  return visit_scalar(image.type, [&](auto element) { return look_of<decltype(element)>(image); });
}

std::string rounded(double value) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, value < 10 ? "%.1f" : "%.0f", value);
  return buffer;
}

std::string percent(double share) { return rounded(100 * share) + " %"; }

/// How the frame differs from the reference; empty if they look alike.
std::string difference(const Look& reference, const Look& frame) {
  constexpr double kMuchSaturated = 0.2, kDark = 0.4, kBlank = 0.1, kBlurred = 0.6;
  if (frame.saturated > kMuchSaturated && frame.saturated > 2 * reference.saturated)
    return percent(frame.saturated) + " of the frame is saturated: less light, or a shorter exposure.";
  if (frame.mean < kDark * reference.mean)
    return "The frame is dark (mean grey level " + rounded(frame.mean) + ", in the reference " +
           rounded(reference.mean) + "): was the light on, and the exposure the same?";
  if (frame.contrast < kBlank * reference.contrast)
    return "The frame is blank (contrast " + rounded(frame.contrast) + " grey levels, in the reference " +
           rounded(reference.contrast) + "): does it show the specimen?";
  // Divided by the means, because more light changes detail and mean by the same factor.
  const double detail = frame.detail / reference.detail * reference.mean / frame.mean;
  if (detail < kBlurred)
    return "The frame has " + percent(detail) +
           " of the reference's detail: is it out of focus, did it move during the exposure, or is it "
           "another surface?";
  return {};
}

}  // namespace

std::string likely_reason(ImageView reference, ImageView frame,
                          const std::array<std::int64_t, kStatusCount>& counts) {
  const auto most = std::max_element(counts.begin(), counts.end()) - counts.begin();
  if (static_cast<Status>(most) == Status::flat)
    return "The reference has no texture there: does it show the specimen, sharp and with contrast?";
  if (static_cast<Status>(most) == Status::ambiguous)
    return "The texture repeats itself: give the range of the motion with --search, less than half the "
           "period.";
  if (static_cast<Status>(most) == Status::masked)
    return "Less than half of every subset lies inside the region of interest: make the subset smaller or "
           "the "
           "region wider; what lies outside the region does not count.";
  const bool are_known = !reference.empty() && !frame.empty();
  std::string seen = are_known ? difference(look_of(reference), look_of(frame)) : "";
  if (!seen.empty()) return seen;
  return std::string("Nothing matches the reference better than chance") +
         (are_known ? ", though the frame is about as bright and as sharp" : "") +
         ": is it the same specimen, are the frames in order, and does --subset hold a few speckles? For "
         "large changes between reference and frame, --reference-strategy previous compares neighbours.";
}

}  // namespace dic

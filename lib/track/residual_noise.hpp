#pragma once

#include <memory>
#include <optional>

#include "track/field_steps.hpp"

namespace dic::track {

/// Factors of sigma_u and sigma_v, at least 1.
struct SigmaFactors {
  double u = 1, v = 1;
};

/// Compares the sigmas of a measured frame with what its residuals would displace. Sigma takes the noise for
/// independent from pixel to pixel; that of a camera that filters its images is not, and residuals at sharp
/// edges gather where they displace most. Factors that such noise explains: near 1 for white noise. No value
/// if there are too few points, or no residuals. Both images are on the host.
std::optional<SigmaFactors> sigma_factors(ImageView reference, ImageView current, const Field& field,
                                          const RefineOptions& options);

/// Makes sigma larger where the residuals ask for it, by factors that the first frames of a sequence give.
class ResidualNoise {
 public:
  /// reference: is copied. Options must outlive this object.
  ResidualNoise(ImageView reference, const TrackOptions& options);

  /// True if a frame to be measured should keep its pixels for `step`.
  bool wants_frame() const { return frames_left_ > 0; }
  /// Call it for every frame whose pixels were kept.
  void count_frame() { --frames_left_; }
  /// current: the frame's pixels; null if the factors are those of an earlier frame. This object must outlive
  /// the step.
  FieldStep step(std::shared_ptr<const Image> current);

 private:
  const Image reference_;
  const TrackOptions& options_;
  int frames_left_;
  std::optional<SigmaFactors> factors_;  ///< used by the thread that fetches results
};

}  // namespace dic::track

#pragma once

#include <dic/track.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "analysis/gpu_images.hpp"
#include "analysis/noise.hpp"
#include "analysis/power_spectrum.hpp"
#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/field_steps.hpp"

namespace dic::track {

/// Frames that are more or less in focus than the reference. What one image shows sharper than the other
/// displaces every subset by chance, by far more than noise does. Such frames are measured a second time,
/// with the sharper image as blurred as the other by a Gaussian low-pass (docs/theory.md, Defocus).
class FocusMatch {
 public:
  /// options: with every choice made. reference: on the host. points: in the reference. spectrum: of the
  /// reference. open: makes a backend for the images that are made as blurred as each other. points,
  /// analysis and pool must outlive this object.
  FocusMatch(TrackOptions options, ImageView reference, const Points& points,
             const ReferenceAnalysis& analysis, const std::optional<analysis::PowerSpectrum>& spectrum,
             BackendFactory open, ThreadPool& pool);

  /// A copy of a frame whose texture looks coarser or finer than that of the reference; else null, which
  /// costs next to nothing. May be called while another thread measures.
  std::shared_ptr<const Image> suspicious(ImageView current) const;
  /// The same for a frame in the memory of a GPU: of some places alone. One call at a time.
  std::shared_ptr<const Image> suspicious_in_gpu(ImageView current) const;
  /// The step that measures a suspicious frame again if a blur explains what noise does not.
  FieldStep refocus(std::shared_ptr<const Image> current, const std::stop_token& stop);

 private:
  MeasuredFrame measured_again(MeasuredFrame frame, const Image& current, const std::stop_token& stop);
  /// Does the frame differ by more than the noise of both images?
  bool is_suspicious(double sharpness) const;
  bool has_misfit(const FrameResult& result, const Image& current) const;
  ActiveReference& reference_blurred_by(double blur);
  double noise_factor() const;

  TrackOptions options_;
  Image reference_;
  const Points& points_;
  const ReferenceAnalysis& analysis_;
  std::optional<analysis::PowerSpectrum> spectrum_;
  BackendFactory open_;
  const std::vector<analysis::NoisePatch>& patches_;
  std::unique_ptr<analysis::GpuPatches> gpu_patches_;
  double sharpness_ = 0;  ///< of the reference
  ThreadPool& pool_;
  ReferenceAnalysis blurred_analysis_;        ///< of the last blur
  std::unique_ptr<TrackingBackend> backend_;  ///< of the last blur
  TrackOptions matched_;                      ///< what it got
  std::unique_ptr<ActiveReference> active_;
  double blur_ = 0;  ///< for which they were made
};

/// Energy of the gradients over that of the grey, both without noise, per px^2, at these places; 0 where
/// there is no texture. Lighting does not change it.
double sharpness(ImageView image, const std::vector<analysis::NoisePatch>& patches);

/// Standard deviation of the Gaussian blur that makes the reference as blurred as the current image, px, in
/// the coordinates of the reference; below 0: the current image as the reference. 0 where no blur brings both
/// nearer. field: what is known of the motion. Both images on the host.
double blur_between(ImageView reference, ImageView current, const Field& field, int subset);

}  // namespace dic::track

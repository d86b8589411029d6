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

/// Measures frames again that are more or less in focus than the reference. Details that only one of both
/// images shows displace every subset by chance, far more than noise does. Such frames are measured a second
/// time, with the sharper image as blurred as the other by a Gaussian low-pass (docs/theory.md, Defocus).
class FocusMatch {
 public:
  /// options: with every choice made. reference: on the host. points: in the reference. spectrum: of the
  /// reference. open: makes a backend for the images after they were blurred alike. points, analysis and pool
  /// must outlive this object.
  FocusMatch(TrackOptions options, ImageView reference, const Points& points,
             const ReferenceAnalysis& analysis, const std::optional<analysis::PowerSpectrum>& spectrum,
             BackendFactory open, core::ThreadPool& pool);

  /// Returns a copy of a frame whose texture looks coarser or finer than that of the reference, else null.
  /// The test costs next to nothing. May be called while another thread measures.
  std::shared_ptr<const Image> suspicious(ImageView current) const;
  /// Does the same for a frame in the memory of a GPU, of which only some patches are copied to the host. One
  /// call at a time.
  std::shared_ptr<const Image> suspicious_in_gpu(ImageView current) const;
  /// Returns the step that measures a suspicious frame again if a blur explains more than noise.
  FieldStep refocus(std::shared_ptr<const Image> current, const std::stop_token& stop);

 private:
  MeasuredFrame measured_again(MeasuredFrame frame, const Image& current, const std::stop_token& stop);
  /// True if the sharpness differs from that of the reference.
  bool is_suspicious(double sharpness) const;
  /// True if the residuals exceed the noise of both images.
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
  double sharpness_ = 0;  ///< sharpness of the reference
  core::ThreadPool& pool_;
  ReferenceAnalysis blurred_analysis_;        ///< analysis for backend_
  std::unique_ptr<TrackingBackend> backend_;  ///< backend of the last blur
  TrackOptions matched_;                      ///< options of backend_
  std::unique_ptr<ActiveReference> active_;
  double blur_ = 0;  ///< blur of backend_ and active_, px
};

/// Energy of the gradients over that of the grey values, both without noise, per px^2, in these patches; 0
/// without texture. Lighting does not change it.
double sharpness(ImageView image, const std::vector<analysis::NoisePatch>& patches, core::ThreadPool& pool);

/// Standard deviation of the Gaussian blur that makes the reference as blurred as the current image, px, in
/// the coordinates of the reference; negative if the current image must be blurred instead. 0 if no blur
/// makes them more alike. field: the motion as far as it is known. Both images on the host.
double blur_between(ImageView reference, ImageView current, const Field& field, int subset);

}  // namespace dic::track

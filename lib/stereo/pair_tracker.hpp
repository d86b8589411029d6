#pragma once

#include <cstddef>
#include <dic/stereo.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "core/worker.hpp"
#include "track/sequence.hpp"

/// The steps of StereoTracker, of which those of consecutive pairs may overlap.
namespace dic::stereo {

class Surface;
struct Match;

/// The pixels of a pair, taken.
struct TakenPair {
  std::shared_ptr<const track::Frame> left, right;
};

/// A pair whose images are being matched, or were.
struct MatchedPair {
  std::unique_ptr<track::PendingFrame> left, right;
};

/// Measures pairs of images against the pair of references. A pair passes take(), match() and finish() in
/// this order, and each of them takes the pairs in their order. Each may run on a thread of its own: finish()
/// computes the surface while match() measures the next pair.
class PairTracker {
 public:
  /// Measures the shape in the references. Throws as StereoTracker does.
  PairTracker(const StereoOptions& given, const CameraRig& rig, ImageView left, ImageView right,
              const Roi& region, const std::stop_token& stop);

  ~PairTracker();

  /// Throws UsageError if a size or type differs from the references.
  TakenPair take(ImageView left, ImageView right);
  /// next: the pair that is matched next if it has been taken already; may be empty.
  MatchedPair match(TakenPair pair, const std::stop_token& stop, const std::function<TakenPair()>& next = {});
  StereoFrame finish(MatchedPair pair);
  StereoFrame track(ImageView left, ImageView right, const std::stop_token& stop) {
    return finish(match(take(left, right), stop));
  }
  bool restore(std::span<const std::byte> state, const StereoTracker::ReadImage& read);

  const Grid& grid() const { return right_->grid(); }
  const StereoFrame& reference() const { return reference_; }
  const std::optional<RigCorrection>& rig_correction() const { return correction_; }
  std::vector<std::string> kernels() const { return right_->backend().kernels(); }
  std::string device() const { return right_->backend().device(); }
  const std::string& device_reason() const { return right_->device_reason(); }
  int order_between_cameras() const { return right_order_; }
  TrackOptions options() const;

 private:
  using Sequence = track::Sequence;

  StereoOptions with_chosen(StereoOptions given) const;
  TrackOptions right_options() const;
  std::vector<track::Effort> efforts_of_found(int margin) const;
  Match match_reference(Sequence& sequence, ImageView image, const std::stop_token& stop) const;
  Match match_references(ImageView image, const std::stop_token& stop);
  void correct(const CameraRig& rig, bool is_wanted);
  void refuse_foreign_calibration() const;
  void use_gpu();
  std::unique_ptr<Sequence> make_left() const;

  double largest_epipolar_;
  TrackOptions options_;  ///< options of the left images
  Image left_reference_;  ///< kept until the first later left image
  Roi roi_;
  core::ThreadPool pool_;
  int right_order_;                         ///< order of the subsets in the right images
  std::unique_ptr<Sequence> right_;         ///< from the left reference to the right images
  std::unique_ptr<Sequence> left_;          ///< from the left reference to the later left images
  std::vector<float> right_sigma_factors_;  ///< see sigma_factors()
  std::unique_ptr<Surface> surface_;
  StereoFrame reference_;
  std::optional<RigCorrection> correction_;
  /// Matches the left image while the right one is matched, where a GPU does it; null on the CPU, of which
  /// one image takes all cores. The last member, so that it ends first.
  std::unique_ptr<core::Worker> left_worker_;
};

}  // namespace dic::stereo

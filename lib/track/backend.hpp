#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <dic/shared/effort.hpp>
#include <dic/track.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "analysis/conditioning.hpp"
#include "analysis/reference_analysis.hpp"
#include "fields/points.hpp"
#include "track/possible_places.hpp"

/// The interface of a tracking backend (CPU, CUDA). `Sequence` decides which image a frame is compared with.
/// The backend keeps images and points in its own memory.
namespace dic::track {

using analysis::ReferenceAnalysis;
using fields::PointNodes;
using fields::Points;

/// An image in the memory of a backend.
class Frame {
 public:
  virtual ~Frame() = default;
  /// Pixels on the host if the frame may have to be measured again (FocusMatch), else null. They are set
  /// before the frame is shared.
  mutable std::shared_ptr<const Image> suspicious;
  /// Corrected pixels on the host, valid as long as this frame; empty unless take_and_correct() made it.
  ImageView corrected;
};

/// Positions of the points in an image, in the memory of a backend. The points were placed there, or a
/// measurement found them there.
class PointPositions {
 public:
  virtual ~PointPositions() = default;
  /// Bytes for TrackingBackend::load_positions; empty if a backend cannot save them, or points were placed.
  virtual std::vector<std::byte> save() const { return {}; }
};

/// Numbers of measured and of lost points of a frame.
struct PointCounts {
  std::int64_t measured = 0;  ///< points that have values
  std::int64_t lost = 0;      ///< points that were not found (see is_lost), now or in an earlier reference
};

/// A measured frame on its way to the result: the steps after the measurement change it (field_steps.hpp).
struct MeasuredFrame {
  FrameResult result;
  /// True if the strain is that of the displacements; a step that changes displacements makes it false.
  bool has_strain = true;
  /// Errors of the displacements that are not those of single subsets: after the global step.
  std::optional<ErrorDraws> errors = {};
  /// Sigmas of the strain, whose other arrays may be empty; no value if they follow from the displacements
  /// and their errors.
  std::optional<StrainField> strain_sigmas = {};
};

/// A measurement of one frame, which may still be under way.
class Measurement {
 public:
  virtual ~Measurement() = default;
  /// Returns the positions of the points in the image that is measured. Call it before `fetch`.
  virtual std::shared_ptr<const PointPositions> positions() = 0;
  /// Waits for the numbers of measured and of lost points. Call it before `fetch`.
  virtual PointCounts counts() = 0;
  /// Waits for field, noise, seconds and spans. Call it once.
  MeasuredFrame fetch() {
    MeasuredFrame frame = read();
    frame.result.seconds += beside_;
    if (!state_.empty()) frame.result.state = std::move(state_);
    return frame;
  }
  /// Adds time that was spent on the frame outside of the measurement.
  void add(const StageSeconds& seconds) { beside_ += seconds; }
  /// Sets the state from which the next frame starts, if it contains more than the backend knows.
  void set_state(std::vector<std::byte> state) { state_ = std::move(state); }

 private:
  virtual MeasuredFrame read() = 0;

  StageSeconds beside_;
  std::vector<std::byte> state_;
};

/// Returns the frame that is measured next if it has arrived already, else null.
using NextFrame = std::function<std::shared_ptr<const Frame>()>;

/// The image that frames are compared with: the reference, or a later frame that took its place.
class ActiveReference {
 public:
  virtual ~ActiveReference() = default;
  /// True if the search of the last frame surely found nearly all points. Known without waiting; false means
  /// unknown.
  virtual bool surely_found() const = 0;
  /// Measures a frame, starting from the result of the last call. next: called at most once, before this call
  /// ends; may be empty. Work on the frame that it returns may begin early, although another frame may
  /// follow. Throws Cancelled.
  virtual std::unique_ptr<Measurement> measure(std::shared_ptr<const Frame> current,
                                               const std::stop_token& stop, const NextFrame& next) = 0;
  /// Takes a FrameResult::state as the result of the last call. Returns false if that is impossible.
  virtual bool restore(std::span<const std::byte>) { return false; }
  /// Takes the result of the last call of another reference, of the same points, as that of its own. Returns
  /// false if that is impossible.
  virtual bool start_from(const ActiveReference&) { return false; }
  /// Limits the effort for each point in all frames to come. efforts: by point.
  virtual void limit_effort(std::span<const Effort> efforts) = 0;
  /// Tells where motions of any size are likely to lead in the frames to come; empty: anywhere. A backend may
  /// ignore it: it saves time only.
  virtual void look_near(const PossiblePlaces&) {}
};

/// Measures the points of one sequence on a kind of device.
class TrackingBackend {
 public:
  virtual ~TrackingBackend() = default;
  /// Takes the pixels of an image of the sequence's size and type. May be called while another thread
  /// measures.
  virtual std::shared_ptr<const Frame> take(ImageView image) = 0;
  /// Takes an image that `conditioning` corrects on the way; null if the backend gains nothing by that.
  /// image: on the host.
  virtual std::shared_ptr<const Frame> take_and_correct(const ImageView&, const analysis::Conditioning&) {
    return nullptr;
  }
  /// Places the points of the backend's nodes in an image. Displacements are then measured from there.
  virtual std::shared_ptr<const PointPositions> place(const Points& points) = 0;
  /// Makes an image the reference. positions: the points in this image, from place() or from a measurement of
  /// this image. After a measurement, displacements still count from where the points were placed. before:
  /// the active reference until now, if the points are likely to continue their last motion; else null.
  virtual std::unique_ptr<ActiveReference> make_reference(std::shared_ptr<const Frame> image,
                                                          const PointPositions& positions,
                                                          const ActiveReference* before) = 0;
  /// Positions from the bytes that PointPositions::save made; null if they are not from there.
  virtual std::shared_ptr<const PointPositions> load_positions(std::span<const std::byte>) const {
    return nullptr;
  }
  /// Names of the variants that ran so far, for run.json.
  virtual std::vector<std::string> kernels() const = 0;
  /// Name of the device: "cpu", or number and name of the GPU.
  virtual std::string device() const = 0;
  /// One sentence on how the backend measures, if the user should know it; usually empty.
  virtual std::string note() const { return {}; }
};

/// Opens a backend for options and for images of the size and type of `image`. The analysis must outlive it.
using BackendFactory = std::function<std::unique_ptr<TrackingBackend>(
    const TrackOptions& options, const ImageView& image, const ReferenceAnalysis& analysis)>;

/// The place where the strain of a frame is computed.
enum class StrainBy : std::uint8_t {
  backend,   ///< the backend computes it with the displacements
  last_step  ///< it is computed after all steps, since these change the displacements; a GPU still computes
             ///< its own strain, which costs nothing
};

/// Points, analysis and image size that a backend measures with. Points and analysis must outlive the
/// backend.
struct MeasuredScene {
  const PointNodes& points;
  const ReferenceAnalysis& analysis;
  Size image;  ///< size of every image, px
};

/// Opens the CPU backend. pool: for loops; must outlive the backend.
std::unique_ptr<TrackingBackend> open_cpu(const TrackOptions& options, const MeasuredScene& scene,
                                          StrainBy strain_by, core::ThreadPool& pool);
/// Opens the GPUs of these numbers; all GPUs if there is no number. image: any image of the sequence's size
/// and type. pool: for loops on the CPU; must outlive the backend. Defined by one file of cuda/,
/// depending on whether the build has CUDA. Throws DeviceError.
std::unique_ptr<TrackingBackend> open_cuda(const TrackOptions& options, const ImageView& image,
                                           const MeasuredScene& scene, std::span<const int> ordinals,
                                           core::ThreadPool& pool);

}  // namespace dic::track

#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <dic/track.hpp>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "track/points.hpp"

/// What a backend (CPU, CUDA) of tracking offers. `Sequence` decides which image a frame is compared with,
/// and leaves images and points to the backend, wherever they lie.
namespace dic::track {

/// An image where the backend needs it.
class Frame {
 public:
  virtual ~Frame() = default;
};

/// Where the points lie in an image that was measured.
class Places {
 public:
  virtual ~Places() = default;
};

/// A measurement that may still be under way.
class Result {
 public:
  virtual ~Result() = default;
  /// Of the image that was measured. To be asked before `fetch`.
  virtual std::shared_ptr<const Places> places() = 0;
  /// How many points have values; waits for it. To be asked before `fetch`.
  virtual std::int64_t measured_points() = 0;
  /// Waits for it: field, noise, seconds and spans. To be called once.
  FrameResult fetch() {
    FrameResult result = read();
    result.seconds += beside_;
    return result;
  }
  /// Counts time that was spent on the frame beside the measurement.
  void add(const StageSeconds& seconds) { beside_ += seconds; }

 private:
  virtual FrameResult read() = 0;

  StageSeconds beside_;
};

/// The frame that is measured next, if it is there already, else null.
using NextFrame = std::function<std::shared_ptr<const Frame>()>;

/// An image that frames are compared with: the reference, or a later one that took its place.
class Anchor {
 public:
  virtual ~Anchor() = default;
  /// Points that can be looked for.
  virtual std::int64_t trackable() const = 0;
  /// Starts from what the last call found. next: asked at most once, before the call ends; may be empty. What
  /// it says may be worked on ahead, and need not come true. Throws Cancelled.
  virtual std::unique_ptr<Result> measure(std::shared_ptr<const Frame> current, const std::stop_token& stop,
                                          const NextFrame& next) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Takes the pixels of an image of the sequence's size and type. May be called while another thread
  /// measures.
  virtual std::shared_ptr<const Frame> take(ImageView image) = 0;
  /// The original reference; to be called once, first. roi: 0 or 255, the reference's size; empty =
  /// everywhere.
  virtual std::unique_ptr<Anchor> anchor(std::shared_ptr<const Frame> reference, Image roi) = 0;
  /// A later image in its place. `before`: the anchor before, if the points are likely to go on moving as
  /// they did last from there.
  virtual std::unique_ptr<Anchor> anchor(std::shared_ptr<const Frame> image, const Places& places,
                                         const Anchor* before) = 0;
  /// What ran so far, for run.json.
  virtual std::vector<std::string> kernels() const = 0;
  /// "cpu", or number and name of the GPU.
  virtual std::string device() const = 0;
  /// What the user should know of how it measures, one sentence; mostly nothing.
  virtual std::string note() const { return {}; }
};

std::unique_ptr<Backend> open_cpu(const TrackOptions& options, const Points& points);
/// On the GPUs of these numbers, all where there is none. image: of the sequence's size and type. Defined
/// by exactly one file of cuda/, as the build has CUDA or not. Throws DeviceError.
std::unique_ptr<Backend> open_cuda(const TrackOptions& options, const ImageView& image, const Points& points,
                                   std::span<const int> ordinals);

}  // namespace dic::track

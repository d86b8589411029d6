#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <dic/track.hpp>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "track/points.hpp"

/// What a backend (CPU, CUDA) of tracking offers. `Sequence` decides which picture a frame is compared with,
/// and leaves pictures and points to the backend, wherever they lie.
namespace dic::track {

/// A picture where the backend needs it.
class Frame {
 public:
  virtual ~Frame() = default;
};

/// A field that was measured, with strain and outliers.
struct Measured {
  Field field{0};
  double noise = 0;      ///< of the pictures, grey levels
  StageSeconds seconds;  ///< that its stages took
  std::vector<StageSpan> spans;
};

/// A measurement that may still be under way.
class Result {
 public:
  virtual ~Result() = default;
  /// Waits for it. To be called once. `memory`: a field that is not needed any more, whose arrays it may fill.
  virtual Measured fetch(Field memory = Field(0)) = 0;
};

/// The subsets that a reference is looked at through.
struct Subsets {
  std::vector<int> x, y;                ///< whole-pixel centres in the reference, one for each point
  std::vector<MaterialPoint> material;  ///< of every point; empty where the points have not moved
  Image roi;                            ///< 0 or 255, the reference's size; empty = everywhere

  /// In the original reference.
  Subsets(const Points& points, Image region) : x(points.x), y(points.y), roi(std::move(region)) {}
  /// Puts the subsets where the points lie now. Points that were lost keep their node's place.
  Subsets(const Points& points, std::vector<MaterialPoint> moved, Image region, int width, int height);

  MaterialPoint material_of(std::int64_t point) const {
    return material.empty() ? MaterialPoint{} : material[point];
  }
};

/// A picture that frames are compared with: the reference, or a later one that took its place.
class Anchor {
 public:
  virtual ~Anchor() = default;
  /// Points that can be looked for.
  virtual std::int64_t trackable() const = 0;
  /// Starts from what the last call found. Throws Cancelled.
  virtual std::unique_ptr<Result> measure(std::shared_ptr<const Frame> current,
                                          const std::stop_token& stop) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Takes the pixels of a picture of the sequence's size and type. May be called while another thread
  /// measures.
  virtual std::shared_ptr<const Frame> take(ImageView picture) = 0;
  virtual std::unique_ptr<Anchor> anchor(std::shared_ptr<const Frame> reference, Subsets subsets) = 0;
  /// What ran so far, for run.json.
  virtual std::vector<std::string> kernels() const = 0;
  /// "cpu", or number and name of the GPU.
  virtual std::string device() const = 0;
};

std::unique_ptr<Backend> open_cpu(const TrackOptions& options, const Points& points);
/// On the GPUs of these numbers, all where there is none. Defined by exactly one file of cuda/, as the build
/// has CUDA or not. Throws DeviceError.
std::unique_ptr<Backend> open_cuda(const TrackOptions& options, const Points& points,
                                   std::span<const int> ordinals);

}  // namespace dic::track

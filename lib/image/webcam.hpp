#pragma once

#include <dic/image.hpp>
#include <optional>

namespace dic::image {

/// A camera that OpenCV opens. Calls must not overlap.
class Webcam {
 public:
  enum class Property : std::uint8_t { width, height, frame_rate, exposure, gain };

  virtual ~Webcam() = default;
  /// Waits for the next frame, in grey; none if the camera sends nothing any more.
  virtual std::optional<Image> next() = 0;
  /// Sets a property, as far as the camera has it.
  virtual void set(Property property, double value) = 0;
  /// The value of a property; 0 or less if it is unknown.
  virtual double get(Property property) const = 0;
};

}  // namespace dic::image

#pragma once

#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/noise.hpp>
#include <vector>

namespace dic::analysis {

/// Noise of images as a function of grey, from frames that show a specimen at rest.
class NoiseCurve {
 public:
  /// The reference must outlive this object.
  explicit NoiseCurve(ImageView reference);

  /// Adds the differences of a frame from the reference. Small rigid motions are compensated by the slope of
  /// the image. Returns false, and uses nothing, if the frame moved by more than half a pixel.
  bool add(ImageView frame, const Field& field);
  /// The curve in order of grey; classes of grey with few pixels are left out.
  std::vector<NoiseAtGrey> result() const;

 private:
  struct Class {
    double grey = 0, variance = 0;  ///< sums over the pixels
    std::int64_t pixels = 0;
  };

  ImageView reference_;
  double darkest_ = 0, brightest_ = 0;
  std::vector<Class> classes_;
};

}  // namespace dic::analysis

#pragma once

#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/noise.hpp>
#include <vector>

namespace dic::analysis {

/// Noise of images over their grey, from frames that show a specimen at rest.
class NoiseCurve {
 public:
  /// The reference must outlive this object.
  explicit NoiseCurve(ImageView reference);

  /// Adds what differs between the reference and a frame. Small rigid motions are taken out by the slope of
  /// the image. False where the frame moved by more than half a pixel: it is not used.
  bool add(ImageView frame, const Field& field);
  /// In order of grey; classes of grey with few pixels are left out.
  std::vector<NoiseAtGrey> result() const;

 private:
  struct Class {
    double grey = 0, variance = 0;  ///< sums, each pixel's
    std::int64_t pixels = 0;
  };

  ImageView reference_;
  double darkest_ = 0, brightest_ = 0;
  std::vector<Class> classes_;
};

}  // namespace dic::analysis

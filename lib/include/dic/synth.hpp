#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <filesystem>
#include <string>
#include <vector>

/// Synthetic speckle with exactly known motion: a sum of Gaussian blobs that is evaluated anew for every
/// frame under the motion; no picture is ever interpolated.
namespace dic {

enum class MotionKind : std::uint8_t { translation, affine, rotation, star, crack };
std::string_view to_string(MotionKind kind);

/// A displacement field u(x, y), v(x, y) of reference positions, px, scaled by `amount` per frame.
struct Motion {
  MotionKind kind = MotionKind::translation;
  double u = 0, v = 0;                       ///< translation per unit amount (also added to affine), px
  double ux = 0, uy = 0, vx = 0, vy = 0;     ///< affine: displacement gradient about (cx, cy)
  double angle_deg = 0;                      ///< rotation about (cx, cy), positive from x towards y
  double cx = 0, cy = 0;                     ///< centre, px
  double amplitude = 0.5;                    ///< star: px; crack: half of the opening, px
  double period_min = 10, period_max = 200;  ///< star: period at the right and left edge, px
  double width = 0;                          ///< picture width, px (star: where period_min is reached)
  double crack_y = 0;                        ///< crack: v = -amplitude above, +amplitude below

  /// Displacement of the material point at reference position (x, y) at `amount` (0 = rest, 1 = full).
  void at(double x, double y, double amount, double& du, double& dv) const;
};

struct SynthOptions {
  int width = 512, height = 512;  ///< px
  int bits = 8;                   ///< 8 or 16
  double blob_sigma = 1.7;        ///< px, standard deviation of a blob
  double density = 0;             ///< blobs per px^2; 0 = chosen so that blobs overlap into a dense speckle
  double grey_min = 20, grey_max = 240;  ///< of 255; scaled by 257 for 16 bit
  double noise = 0;             ///< standard deviation, grey levels of 255 (scaled likewise), every frame
  double reference_noise = -1;  ///< of frame 0; -1 = as `noise`
  double gain = 1,
         offset = 0;  ///< of the last frame relative to the first (change of lighting), interpolated
  std::uint64_t seed = 1;
  std::vector<double> amounts = {0, 1};  ///< one frame each; the first is the reference
  Motion motion;
  int threads = 0;
  std::vector<std::string> problems() const;
};

/// Frame i of the sequence: u8 or u16.
Image synth_frame(const SynthOptions& options, int i);

/// Writes DIR/frame_0000.png ..., DIR/truth.csv (frame,x,y,u,v at nodes every `truth_step` px) and
/// DIR/truth.h5 (datasets u, v [frame, y, x], x, y, amount; attributes: motion, seed, command). Throws
/// FileError.
void synth_sequence(const SynthOptions& options, const std::filesystem::path& directory, int truth_step,
                    const std::string& command);

}  // namespace dic

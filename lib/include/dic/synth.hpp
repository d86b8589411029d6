#pragma once

#include <array>
#include <cstdint>
#include <dic/image.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Synthetic speckle with exactly known motion: a sum of Gaussian blobs that is evaluated anew for every
/// frame under the motion; no image is ever interpolated.
namespace dic {

enum class MotionKind : std::uint8_t { translation, affine, rotation, star, crack };
std::string_view to_string(MotionKind kind);

/// A displacement field u(x, y), v(x, y) of reference positions, px, scaled by `amount` per frame.
///
/// translation: (u, v).
/// affine:      (u + ux*(x-cx) + uy*(y-cy), v + vx*(x-cx) + vy*(y-cy)).
/// rotation:    by amount * angle_deg about (cx, cy).
/// star:        (0, amplitude * cos(2 pi (y-cy) / p(x))), the period p falling linearly from period_max at x
/// = 0
///              to period_min at x = width - 1; the pattern of DIC Challenge 2.0 (Reu et al. 2022), mirrored.
/// crack:       (0, -amplitude) above crack_y, (0, +amplitude) at and below it; the gap shows grey_min.
struct Motion {
  MotionKind kind = MotionKind::translation;
  double u = 0, v = 0;                       ///< px
  double ux = 0, uy = 0, vx = 0, vy = 0;     ///< displacement gradient du/dx, du/dy, dv/dx, dv/dy
  double angle_deg = 0;                      ///< positive from x towards y
  double cx = 0, cy = 0;                     ///< centre, px
  double amplitude = 0.5;                    ///< px; crack: half of the opening
  double period_min = 10, period_max = 200;  ///< px
  double width = 0;                          ///< image width, px; only the star needs it
  double crack_y = 0;                        ///< px

  /// Displacement {u, v} of the material point at reference position (x, y) at `amount` (0 = rest, 1 = full).
  std::array<double, 2> at(double x, double y, double amount) const;
};

struct SynthOptions {
  Size size = {512, 512};   ///< px, 8 to 32768
  int bits = 8;             ///< 8 or 16
  double blob_sigma = 1.7;  ///< px, standard deviation of a blob; below 1 the pixels undersample it
  /// Blobs per px^2, 1e-6 to 10; none = 1 / (2 sigma)^2, where neighbours overlap.
  std::optional<double> density;
  /// Darkest and brightest grey of the first frame without noise, in levels of 255 (times 257 for 16 bit).
  /// The map from blob sum to grey is the same for every frame, so that others may go beyond by less than a
  /// level.
  double grey_min = 20, grey_max = 240;
  double noise = 0;  ///< standard deviation, grey levels of 255, Gaussian, every frame its own
  std::optional<double> reference_noise;  ///< of the first frame; none = as `noise`
  /// Change of lighting: grey * gain + offset (levels of 255) in the last frame, in equal steps from frame 0.
  double gain = 1, offset = 0;
  std::uint64_t seed = 1;                ///< of blobs and noise; same seed, same images, on any machine
  std::vector<double> amounts = {0, 1};  ///< one frame each; the first is the reference and must be 0
  Motion motion;
  int threads = 0;  ///< 0 = one per core
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// Frame i of the sequence: u8 or u16. Values are rounded last and clipped to the type. Throws UsageError.
Image synth_frame(const SynthOptions& options, int i);

/// Writes DIR/frame_0000.png ..., DIR/truth.csv (frame,x,y,u,v of every material point at x, y = 0,
/// truth_step, 2 truth_step, ...) and DIR/truth.h5 (datasets u, v [frame, y, x], x, y, amount; attributes
/// motion, seed, command). DIR is made, or must be empty. Throws UsageError, FileError.
void synth_sequence(const SynthOptions& options, const std::filesystem::path& directory, int truth_step,
                    const std::string& command);

}  // namespace dic

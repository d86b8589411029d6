#pragma once

#include <array>
#include <cstdint>
#include <dic/camera.hpp>
#include <dic/export.hpp>
#include <dic/image.hpp>
#include <dic/shared/enum_names.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Synthetic images with exactly known motion: blobs or dots are moved and evaluated anew for every frame;
/// images are never interpolated.
namespace dic {

enum class MotionKind : std::uint8_t {
  translation,
  affine,
  rotation,
  star,
  chirp,
  ramp,
  crack,
  hole,
  bodies
};
template <>
struct EnumNames<MotionKind> {
  static constexpr EnumName<MotionKind> table[] = {{MotionKind::translation, "translation"},
                                                   {MotionKind::affine, "affine"},
                                                   {MotionKind::rotation, "rotation"},
                                                   {MotionKind::star, "star"},
                                                   {MotionKind::chirp, "chirp"},
                                                   {MotionKind::ramp, "ramp"},
                                                   {MotionKind::crack, "crack"},
                                                   {MotionKind::hole, "hole"},
                                                   {MotionKind::bodies, "bodies"}};
};

/// A displacement field u(x, y), v(x, y) of reference positions, px, scaled by `amount` per frame.
///
/// translation: (u, v).
/// affine:      (u + ux*(x-cx) + uy*(y-cy), v + vx*(x-cx) + vy*(y-cy)).
/// rotation:    turns by amount * angle_deg about (cx, cy).
/// star:        (0, amplitude * cos(2 pi (y-cy) / p(x))), the period p falling linearly from period_max
///              at x = 0 to period_min at x = width - 1; the pattern of DIC Challenge 2.0 (Reu et al. 2022),
///              mirrored.
/// chirp:       (amplitude * sin(phase(x)), 0), its period falling linearly from period_max at x = 0 to
///              period_min at x = width - 1.
/// ramp:        (amplitude * s, 0), s rising linearly from 0 to 1 over `length` px around x = cx.
/// crack:       (-slip, -amplitude) above crack_y, (+slip, +amplitude) at and below it, all of it turned by
///              angle_deg about (cx, crack_y); what was not there before shows grey_min, or a still texture
///              of its own.
/// hole:        a wide elastic plate in plane stress with Poisson's ratio 0.3 and a round hole of `radius`
/// about
///              (cx, cy), pulled along y to the strain vy far from the hole, after Kirsch (1898):
///              small-strain theory gives eyy = 3 vy at both sides of the hole. The hole shows grey_min, or a
///              still texture.
/// bodies:      discs, each with its own rigid motion, in front of a texture that moves by (u, v).
struct Motion {
  /// A disc that moves by (u, v) and turns about its centre. It covers the discs before it in the list.
  struct Body {
    double x = 0, y = 0, radius = 0;  ///< px
    double u = 0, v = 0;              ///< px
    double angle_deg = 0;             ///< positive from x towards y
  };

  MotionKind kind = MotionKind::translation;
  double u = 0, v = 0;                       ///< px
  double ux = 0, uy = 0, vx = 0, vy = 0;     ///< displacement gradient du/dx, du/dy, dv/dx, dv/dy
  double angle_deg = 0;                      ///< positive from x towards y
  double cx = 0, cy = 0;                     ///< centre, px
  double amplitude = 0.5;                    ///< px; crack: half of the opening; ramp: the whole rise
  double period_min = 10, period_max = 200;  ///< px
  double width = 0;                          ///< image width, px; star and chirp need it
  double crack_y = 0;                        ///< px
  double slip = 0;                           ///< crack: half of the slip along it, px
  bool textured_gap = false;                 ///< crack, hole
  double radius = 50;                        ///< hole, px
  double length = 50;                        ///< ramp, px
  std::vector<Body> bodies = {};

  /// Displacement {u, v} of the material point at reference position (x, y) at `amount` (0 = rest, 1 = full).
  DIC_API std::array<double, 2> at(double x, double y, double amount) const;
  /// Number of the body that the reference shows at (x, y). bodies: 0 = background, 1 = first disc, ...;
  /// crack: 0 above, 1 below; other motions: 0.
  DIC_API int body(double x, double y) const;
  /// True if the material that the reference shows at (x, y) is not hidden by other material at `amount`. It
  /// may still be outside the image.
  DIC_API bool visible(double x, double y, double amount) const;
};

/// blobs:    Gaussian blobs, dark and bright.
/// dots:     round dark dots with sharp edges on bright ground, as printed; a pixel shows the area that they
///           cover (987 samples: to 0.2 % of it, standard deviation). Their radius is 2 blob_sigma.
/// lattice:  dark Gaussian blobs in rows and columns, 1 / sqrt(density) px apart: many motions look right.
/// gradient: grey that rises evenly from left to right: no texture.
enum class Texture : std::uint8_t { blobs, dots, lattice, gradient };
template <>
struct EnumNames<Texture> {
  static constexpr EnumName<Texture> table[] = {{Texture::blobs, "blobs"},
                                                {Texture::dots, "dots"},
                                                {Texture::lattice, "lattice"},
                                                {Texture::gradient, "gradient"}};
};

/// The outcome that a measurement of a point should have.
enum class Measurable : std::uint8_t {
  no = 0,   ///< no value: hidden in one of the images, outside the current one, or without texture
  yes = 1,  ///< the true value
  /// No value, or the true one: glare hides the pixel itself, or the point lies in the outer half of an
  /// outermost pixel of the current image.
  maybe = 2
};

/// Faults of prints, cameras and files that change images beside noise.
struct SynthFaults {
  /// Distance, px, at which the texture repeats itself along both axes, as a rolled or tiled print; 0 =
  /// never.
  double repeat = 0;
  /// dots: share of a pixel that is sensitive to light, a square in its middle; above 0, to 1.
  double fill_factor = 1;
  /// Standard deviation of the displacement of each row along x, in every frame anew, px; 0 to 1.
  double line_jitter = 0;
  /// Neighbouring pixels share noise, as after a filter of 3x3 px; its standard deviation stays.
  bool correlated_noise = false;
  /// Standard deviation of the grey, levels of 255, that each row and each column adds in every frame.
  double line_pattern = 0;
  /// Share of the pixels that are always black (one of three) or white, the same in every frame; 0 to 0.5.
  double defective = 0;
  int median = 0;           ///< side of a median filter, px: 0 = none, 3, 5, 7 or 9
  bool two_valued = false;  ///< grey of half of the range and more is white, the rest black
  double pedestal = 0;      ///< added to every value of the file, which is limited by the bits
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

struct SynthOptions {
  Size size = {512, 512};  ///< px, 8 to 32768
  int bits = 8;            ///< 8, 12 (in files of 16) or 16
  Texture texture = Texture::blobs;
  double blob_sigma = 1.7;  ///< px, standard deviation of a blob; below 1 the pixels undersample it
  /// Spread of the sizes of blobs or dots, 1 to 5: they range from blob_sigma / size_spread to blob_sigma *
  /// size_spread.
  double size_spread = 1;
  /// Blobs per px^2, 1e-6 to 10; none = 1 / (2 sigma)^2, so that neighbours overlap (dots: 1 / (4 sigma)^2,
  /// lattice: 1 / (6 sigma)^2).
  std::optional<double> density;
  /// Darkest and brightest grey of the first frame without noise, in levels of 255 (times 257 for 16 bit,
  /// about 16 for 12). The map from blob sum to grey is the same for every frame, so that other frames may
  /// exceed the range by less than a level.
  double grey_min = 20, grey_max = 240;
  double noise = 0;  ///< standard deviation of Gaussian noise, grey levels of 255, independent in every frame
  std::optional<double> reference_noise;  ///< noise of the first frame; none = as `noise`
  /// Electrons of a white pixel, for shot noise: grey then follows a Poisson distribution. 0 = no shot noise.
  double full_well = 0;
  /// Defocus of the last frame, px (standard deviation), growing in equal steps from frame 0. Only for blobs
  /// and lattices under translation or rotation.
  double blur = 0;
  /// Light at the left edge as a share of that at the right edge, in every frame; above 0, to 1.
  double light_min = 1;
  /// Approximate share of the image that a glare in the middle saturates, in every frame; 0 to 0.5.
  double glare = 0;
  /// The frames after the reference show another specimen: nothing can be measured.
  bool unrelated = false;
  /// Change of lighting: grey * gain + offset (levels of 255) in the last frame, reached in equal steps from
  /// frame 0.
  double gain = 1, offset = 0;
  SynthFaults faults = {};
  std::uint64_t seed = 1;  ///< seed of blobs and noise; the same seed gives the same images on any machine
  std::vector<double> amounts = {
      0, 1};  ///< amount of motion of each frame; the first frame is the reference and must have 0
  Motion motion;
  /// The camera that takes the images; texture and motion are then given in corrected coordinates. Speckles
  /// are evaluated at exact positions, as without a camera.
  std::optional<Camera> camera;
  int threads = 0;  ///< 0 = one per core
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

/// The displacement {u, v} in frame i, image px, of the material that the reference shows at (x, y). Without
/// a camera it equals the motion.
DIC_API std::array<double, 2> image_displacement(const SynthOptions& options, int i, double x, double y);

/// Tells whether the material that the reference shows at (x, y) can be measured in frame i.
DIC_API Measurable measurable(const SynthOptions& options, int i, double x, double y);

/// Frame i of the sequence: u8 or u16. Values are rounded last and clipped to the type. Throws UsageError.
DIC_API Image synth_frame(const SynthOptions& options, int i);

/// Writes DIR/frame_0000.png ..., DIR/truth.csv (frame,x,y,u,v,body,measurable of every material point at x,
/// y = 0, truth_step, 2 truth_step, ...) and DIR/truth.h5 (datasets u, v, measurable [frame, y, x], body [y,
/// x], x, y, amount; attributes motion, seed, command). u, v: displacement in the images, px. A camera adds
/// X, Y [y, x] and U, V [frame, y, x]: positions and displacement in corrected coordinates. DIR is made if
/// needed and must be empty. Throws UsageError, FileError.
DIC_API void synth_sequence(const SynthOptions& options, const std::filesystem::path& directory,
                            int truth_step, const std::string& command);

}  // namespace dic

#pragma once

#include <array>
#include <cstdint>
#include <dic/calibrate.hpp>
#include <dic/camera_rig.hpp>
#include <dic/export.hpp>
#include <dic/image.hpp>
#include <dic/shared/enum_names.hpp>
#include <dic/synth.hpp>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

/// Images of a curved specimen as the cameras of a rig see it, with exactly known shape, displacement and
/// strain. The speckle is a function of the material; every pixel integrates it along exact rays, and images
/// are never interpolated.
namespace dic {

enum class SurfaceKind : std::uint8_t { plane, cylinder, dome, wave };
template <>
struct EnumNames<SurfaceKind> {
  static constexpr EnumName<SurfaceKind> table[] = {{SurfaceKind::plane, "plane"},
                                                    {SurfaceKind::cylinder, "cylinder"},
                                                    {SurfaceKind::dome, "dome"},
                                                    {SurfaceKind::wave, "wave"}};
};

/// The surface of the specimen in its own axes, mm: x to the right, y down, z away from the cameras. Its
/// foremost point is the origin. A material point has the coordinates (a, b), mm: plane:    (a, b, 0).
/// cylinder: its axis is parallel to y; (R sin(a / R), b, R - R cos(a / R)), so that a is the length along
/// the surface. dome:     a sphere; the point at the distance |(a, b)| along the great circle in the
/// direction (a, b). wave:     (a, b, A (1 - cos(2 pi a / P))).
struct SpecimenSurface {
  SurfaceKind kind = SurfaceKind::plane;
  double radius_mm = 60;    ///< cylinder, dome
  double amplitude_mm = 2;  ///< wave: A, half of its height
  double period_mm = 50;    ///< wave: P
};

/// The motion of the material at amount 1. Other amounts multiply each number. In this order:
/// bulge and inflation move material along the surface's normal (wave: against z) by
///   bulge_mm exp(-(a^2 + b^2) / (2 bulge_width_mm^2)) + inflation radius_mm, positive towards the cameras;
/// stretch moves it within the specimen's axes by (ux x + uy y, vx x + vy y, 0);
/// rotation turns it about the origin of the specimen, and translation moves it, both in the axes of the
/// world.
struct SpecimenMotion {
  double bulge_mm = 0, bulge_width_mm = 20;
  double inflation = 0;  ///< cylinder, dome: relative change of the radius
  double ux = 0, uy = 0, vx = 0, vy = 0;
  std::array<double, 3> rotation_deg = {0, 0, 0};  ///< rotation vector
  std::array<double, 3> translation_mm = {0, 0, 0};
};

/// A pose in the world: a point X of the specimen or target is at rotation X + origin_mm.
struct WorldPose {
  std::array<double, 9> rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1};  ///< row by row
  std::array<double, 3> origin_mm = {0, 0, 0};
};

/// Two equal cameras without distortion whose axes meet at `distance_mm` under an angle. The second is to the
/// right of the first.
DIC_API CameraRig convergent_rig(Size image, double focal_px, double distance_mm, double angle_deg);
/// Distance from the first camera, mm, along its axis at which the axes of the first two cameras are closest
/// to each other. Throws UsageError if they are parallel.
DIC_API double convergence_distance(const CameraRig& rig);
/// A specimen on the axis of the first camera at a distance, mm, that faces the middle between the first two
/// cameras.
DIC_API WorldPose facing_middle(const CameraRig& rig, double distance_mm);
/// A specimen on the axis of the first camera at a distance, mm, that faces this camera.
DIC_API WorldPose facing_first(double distance_mm);

/// Images of 1000 x 800 px with noise of one grey level.
inline SynthOptions usual_stereo_image() {
  SynthOptions image;
  image.size = {1000, 800};
  image.noise = 1;
  return image;
}

struct StereoSynthOptions {
  /// Size, texture, light, noise, seed, amounts and threads as in 2-D: blob_sigma and density hold in the
  /// middle of the first camera's image when the specimen faces it. The texture is blobs or a lattice.
  /// Without glare, blur, camera and motion, which must keep their defaults.
  SynthOptions image = usual_stereo_image();
  CameraRig rig = convergent_rig({1000, 800}, 2500, 500, 25);
  WorldPose pose = facing_middle(rig, 500);
  SpecimenSurface surface;
  SpecimenMotion motion;
  /// 0: grey is a linear map of the sum of blobs, so that few places are as dark as grey_min. The larger, the
  /// more places are nearly as dark as grey_min or as bright as grey_max, as painted speckle is: the slope in
  /// the middle is contrast / tanh(contrast) times that of the linear map. 0 to 20.
  double contrast = 2;
  double background = 20;  ///< grey beside the specimen, levels of 255
  double right_gain = 1;   ///< exposure of every camera but the first, relative to the first
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

/// The truth about the material that a pixel of the first camera's reference image shows. All numbers are NaN
/// where it shows no specimen.
struct StereoTruth {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  struct View {
    Camera::Point reference = {kNone, kNone}, current = {kNone, kNone};  ///< positions in the images, px
    double incidence_deg = kNone;  ///< angle between the ray and the normal in the reference
    bool seen = false;             ///< inside both images and not hidden in either
  };

  std::array<double, 3> position_mm = {kNone, kNone, kNone};      ///< X, Y, Z of the reference
  std::array<double, 3> displacement_mm = {kNone, kNone, kNone};  ///< U, V, W
  /// Green-Lagrange strain in the tangent plane of the reference, with the first axis along the projection of
  /// the world's x axis onto that plane, and the second perpendicular to it, downwards.
  double exx = kNone, eyy = kNone, exy = kNone;
  double e1 = kNone, e2 = kNone;  ///< principal strains, e1 >= e2
  std::vector<View> views;        ///< what each camera sees
  Measurable measurable = Measurable::no;
};

/// A specimen in front of a rig. Thread-safe.
class StereoScene {
 public:
  /// Throws UsageError for options with problems.
  DIC_API explicit StereoScene(const StereoSynthOptions& options);
  DIC_API ~StereoScene();
  DIC_API StereoScene(StereoScene&&) noexcept;
  DIC_API StereoScene& operator=(StereoScene&&) noexcept;

  /// Image of a camera in frame i: u8 or u16. Blobs are integrated over the pixel with an error below 0.01
  /// grey levels down to 0.8 px of sigma in the image. At outlines of the specimen a pixel shows the share of
  /// 9 rays that meet it. Throws UsageError.
  DIC_API Image frame(std::size_t camera, int i) const;
  /// Truth at the pixel (x, y) of the first camera's reference image for frame i. Rays meet the surface to
  /// 1e-10 mm.
  DIC_API StereoTruth truth(int i, double x, double y) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes DIR/left/frame_0000.png, ..., DIR/right/frame_0000.png, ..., the rig DIR/stereo.json, and
/// DIR/truth.csv with one line per frame and pixel x, y = 0, truth_step, 2 truth_step, ... of the left
/// reference image that shows the specimen (docs/validate.md). DIR is made if needed and must be empty.
/// Throws UsageError, also unless the rig has two cameras, FileError.
DIC_API void synth_stereo_sequence(const StereoSynthOptions& options, const std::filesystem::path& directory,
                                   int truth_step);

/// Views of a target for the calibration of a rig.
struct BoardSynthOptions {
  /// Size, light, noise, seed and threads as in 2-D; grey_min is the ink, grey_max the paper.
  SynthOptions image = usual_stereo_image();
  CameraRig rig = convergent_rig({1000, 800}, 2500, 500, 25);
  /// rings: columns and rows of the grid; the rings are two dots inside its corners, the right angle at the
  /// lower left.
  Target target = {TargetPattern::checkerboard, 12, 9, 10, 7};
  /// Poses of the target: x along its rows, y along its columns, z away from the cameras; its first point is
  /// the origin.
  std::vector<WorldPose> poses;
  double blur_px = 0.5;   ///< standard deviation of the lens's blur
  double right_gain = 1;  ///< exposure of every camera but the first, relative to the first
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

/// Poses of a target near a distance, mm, from the first camera, in which all cameras see all of its points:
/// the first faces the middle between the cameras, the others are tilted by up to 25 degrees, turned by up to
/// 8, and spread over the common field of view. The same seed gives the same poses. Throws UsageError if the
/// target is too large.
DIC_API std::vector<WorldPose> board_poses(const CameraRig& rig, const Target& target, double distance_mm,
                                           int count, std::uint64_t seed);

/// A corner or centre of the target where a camera sees it exactly.
struct BoardPoint {
  int column = 0, row = 0;
  TargetPoint place;
  std::array<double, 3> position_mm = {0, 0, 0};  ///< position in the world
};
/// All points of the target in a view, row by row; x, y are NaN behind the camera, and may be outside the
/// image.
DIC_API std::vector<BoardPoint> board_points(const BoardSynthOptions& options, std::size_t camera, int view);

/// Image of a camera in a view: u8 or u16. The pattern has sharp edges, so that circles are seen as exact
/// ellipses; a pixel shows the share of ink under its area, blurred by the lens, to 0.2 % (standard
/// deviation). Throws UsageError.
DIC_API Image board_image(const BoardSynthOptions& options, std::size_t camera, int view);

/// Writes DIR/left/frame_0000.png, ..., DIR/right/frame_0000.png, ..., the rig DIR/stereo.json, and
/// DIR/truth.csv with the true positions of all points in both images (docs/validate.md). DIR is made if
/// needed and must be empty. Throws UsageError, FileError.
DIC_API void synth_board_sequence(const BoardSynthOptions& options, const std::filesystem::path& directory);

}  // namespace dic

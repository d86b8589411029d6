#include <cmath>
#include <cstdio>
#include <memory>

#include "validate/validate.hpp"

namespace dic::validation {
namespace {

// The bounds that pyvale, al-dic-3d and OpenCorr were measured against: the best value of each, without the
// bias of an affine shape function between cameras (2.9 um of Z on the plane, 20 um on the cylinder).
constexpr StereoBounds kPlane{.z_bias = 0.3,
                              .z_sd = 2.3,
                              .motion_bias = 0.2,
                              .motion_sd = {0.9, 0.75, 2.6},
                              .strain_bias = 10,
                              .strain_sd = 130,
                              .lost = 1e-3};
constexpr StereoBounds kCurved{.z_bias = 0.3,
                               .z_sd = 4,
                               .motion_bias = 0.3,
                               .motion_sd = {1.2, 1.2, 4.5},
                               .strain_bias = 10,
                               .strain_sd = 170,
                               .lost = 3e-2};

/// The same with another bound of the strain's standard deviation: the right camera sees a plane in front of
/// the left one more obliquely, and so the strain along x less exactly; the smaller cylinder bends subsets so
/// much that their noise is that of order 2.
StereoBounds with_strain_sd(StereoBounds bounds, double sd) {
  bounds.strain_sd = sd;
  return bounds;
}

/// Part of the error that a steep surface causes is the same before and after a small motion, and cancels.
StereoBounds for_dome() {
  StereoBounds bounds = kCurved;
  bounds.least_scatter = 0.85;
  return bounds;
}

/// Bounds for images of half the side and half the focal length, of a specimen of twice the size: a pixel is
/// twice as long. A quarter of the points tells means and scatter less exactly.
StereoBounds for_small(StereoBounds bounds) {
  constexpr double kPixel = 2, kFewer = 1.6;
  // Three standard deviations of a mean: 150 microstrain, and 2,000 points whose windows of 25 overlap.
  constexpr double kMeanOfFew = 50;
  bounds.z_bias *= kPixel * kFewer, bounds.motion_bias *= kPixel * kFewer;
  bounds.z_sd *= kPixel;
  for (double& sd : bounds.motion_sd) sd *= kPixel;
  bounds.strain_bias = kMeanOfFew, bounds.strain_sd *= kFewer;
  // The sigma of strain counts what windows flatten, rather too much than too little.
  bounds.least_scatter = 0.75, bounds.most_scatter = 1.2;
  return bounds;
}

/// Doubles a specimen, so that it bends by as much over a subset of pixels that are twice as long.
void enlarge(StereoSynthOptions& synth) {
  for (double* length : {&synth.surface.radius_mm, &synth.surface.amplitude_mm, &synth.surface.period_mm,
                         &synth.motion.bulge_mm, &synth.motion.bulge_width_mm})
    *length *= 2;
}

struct Setup {
  const char* name;
  double angle_deg = 25;  ///< between the cameras
  StereoBounds bounds;
  SpecimenSurface surface = {};
  SpecimenMotion motion = {};
  bool faces_left = false, has_distortion = false;
};

/// The motion (u, v) of a place in the left image.
std::optional<Truth> truth_in_left(const StereoScene& scene, int frame, double x, double y) {
  const StereoTruth truth = scene.truth(frame, x, y);
  if (truth.views.empty()) return Truth{0, 0, Measurable::no, 0};
  const StereoTruth::View& left = truth.views.front();
  return Truth{left.current.x - x, left.current.y - y, truth.measurable, 0};
}

Case case_of(const Setup& setup, const Options& options) {
  StereoSynthOptions synth;
  synth.image.seed = options.seed;
  synth.image.threads = options.track.threads;
  if (options.quick) synth.image.size = {500, 400};
  const double focal = options.quick ? 1250 : 2500, distance = 500;
  synth.rig = convergent_rig(synth.image.size, focal, distance, setup.angle_deg);
  if (setup.has_distortion)
    for (RigCamera& camera : synth.rig.cameras) {
      Lens& lens = *camera.camera.lens;
      lens.k1 = -0.1, lens.k2 = 0.05, lens.p1 = 0.001, lens.p2 = -0.001;
    }
  synth.pose = setup.faces_left ? facing_first(distance) : facing_middle(synth.rig, distance);
  synth.surface = setup.surface;
  synth.motion = setup.motion;
  if (options.quick) enlarge(synth);
  const auto scene = [synth, name = std::string(setup.name)] {
    const auto rendered = std::make_shared<StereoScene>(synth);
    Scene made;
    made.image = [rendered](int frame) { return rendered->frame(0, frame); };
    made.truth = [rendered](int frame, double x, double y) { return truth_in_left(*rendered, frame, x, y); };
    made.origin = "dic synth -o DIR --stereo: " + name;
    return made;
  };
  Case one{setup.name, scene, {}, {.subset = 21, .step = 8}};
  one.stereo = StereoCase{synth, options.quick ? for_small(setup.bounds) : setup.bounds};
  return one;
}

}  // namespace

std::vector<Case> stereo_cases(const Options& options) {
  const SpecimenMotion moved{.translation_mm = {3, -2, 4}};
  std::vector<Case> cases;
  for (const Setup& setup : {
           Setup{"plane, moved by (3, -2, 4) mm", 25, kPlane, {}, moved},
           Setup{"plane, moved, left camera in front", 25, with_strain_sd(kPlane, 160), {}, moved, true},
           Setup{"plane, stretched, distorting lenses",
                 25,
                 kPlane,
                 {},
                 {.ux = 0.01, .uy = 0.004, .vx = -0.002, .vy = -0.006},
                 false,
                 true},
           Setup{"cylinder, R 60 mm, inflated by 1 %",
                 30,
                 with_strain_sd(kCurved, 180),
                 {SurfaceKind::cylinder, 60},
                 {.inflation = 0.01}},
           Setup{"dome, R 120 mm, turned",
                 30,
                 for_dome(),
                 {SurfaceKind::dome, 120},
                 {.rotation_deg = {2, 3, 5}}},
           Setup{"wave of 2 mm, bulged by 1 mm",
                 25,
                 kCurved,
                 {SurfaceKind::wave, 60, 2, 60},
                 {.bulge_mm = 1, .bulge_width_mm = 20}},
       })
    cases.push_back(case_of(setup, options));
  return cases;
}

}  // namespace dic::validation

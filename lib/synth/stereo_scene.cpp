#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/synth_stereo.hpp>
#include <mutex>
#include <numbers>

#include "core/parallel.hpp"
#include "synth/expose.hpp"
#include "synth/random.hpp"
#include "synth/stereo_pattern.hpp"

namespace dic {

using namespace synth;

namespace {

constexpr double kDegree = std::numbers::pi / 180;

Vector axis_of(const RigCamera& camera) { return matrix_of(camera.rotation).row(2); }
Vector centre_of(const RigCamera& camera) {
  return -matrix_of(camera.rotation).transpose() * vector_of(camera.translation_mm);
}

std::array<double, 3> array_of(const Vector& v) { return {v.x(), v.y(), v.z()}; }

void require_two(const CameraRig& rig) {
  if (rig.cameras.size() < 2) throw UsageError("The rig has one camera; two are needed.");
}

/// mm on the specimen per pixel of the first camera where the specimen's origin is.
double mm_per_px(const StereoSynthOptions& options) {
  const RigCamera& first = options.rig.cameras.front();
  const Vector origin = vector_of(options.pose.origin_mm);
  return axis_of(first).dot(origin - centre_of(first)) / first.camera.lens->fx;
}

SpeckleSettings speckle_of(const StereoSynthOptions& options, int i) {
  const SynthOptions& image = options.image;
  const double scale = mm_per_px(options);
  const double usual = image.blob_sigma * (image.texture == Texture::lattice ? 6 : 2);
  const double cell = image.density ? 1 / std::sqrt(*image.density) : usual;
  const std::uint64_t seed = image.unrelated && i > 0 ? mix(image.seed + 0x5eed) : image.seed;
  return {image.blob_sigma * scale, cell * scale, seed, image.texture, image.size_spread, 0};
}

int nodes_of(const SynthOptions& image) { return image.blob_sigma / image.size_spread < 0.8 ? 5 : 3; }

/// The amounts of all motions of the specimen must leave it where the cameras can see it.
std::string problem_of_places(const StereoSynthOptions& o) {
  for (const double amount : o.image.amounts) {
    const Eigen::Matrix2d stretch{{1 + amount * o.motion.ux, amount * o.motion.uy},
                                  {amount * o.motion.vx, 1 + amount * o.motion.vy}};
    if (!(stretch.determinant() >= 0.1))
      return "The stretch folds or crushes the material (its determinant must be at least 0.1).";
    const Specimen specimen(o, amount);
    for (const RigCamera& camera : o.rig.cameras) {
      if (!(specimen.above(centre_of(camera)) > 0)) return "A camera is inside or behind the specimen.";
      const Vector middle = specimen.at(0, 0).point;
      if (!(axis_of(camera).dot(middle - centre_of(camera)) > 0))
        return "The middle of the specimen is behind a camera.";
    }
  }
  return {};
}

bool finite(const StereoSynthOptions& o) {
  const SpecimenMotion& m = o.motion;
  double sum = m.bulge_mm + m.bulge_width_mm + m.inflation + m.ux + m.uy + m.vx + m.vy + o.background +
               o.contrast + o.right_gain;
  sum += o.surface.radius_mm + o.surface.amplitude_mm + o.surface.period_mm;
  for (const double value : m.rotation_deg) sum += value;
  for (const double value : m.translation_mm) sum += value;
  for (const double value : o.pose.rotation) sum += value;
  for (const double value : o.pose.origin_mm) sum += value;
  return std::isfinite(sum);
}

bool keeps_defaults(const SynthOptions& image) {
  const Motion& m = image.motion;
  return !image.camera && image.blur == 0 && image.glare == 0 && m.kind == MotionKind::translation &&
         m.u == 0 && m.v == 0;
}

std::vector<std::string> problems_of(const StereoSynthOptions& o) {
  const SpecimenSurface& s = o.surface;
  const bool round = s.kind == SurfaceKind::cylinder || s.kind == SurfaceKind::dome;
  std::vector<std::string> list;
  const auto require = [&list](bool good, const char* problem) {
    if (!good) list.push_back(problem);
  };
  require(
      keeps_defaults(o.image),
      "Motion of the image, a camera of its own, blur and glare are not available for a specimen seen by two "
      "cameras.");
  require(o.image.texture == Texture::blobs || o.image.texture == Texture::lattice,
          "The texture of a specimen seen by two cameras is blobs or a lattice.");
  require(s.radius_mm > 0 && s.period_mm > 0 && o.motion.bulge_width_mm > 0,
          "Radius, period and width of the bulge must be positive.");
  require(o.motion.inflation == 0 || round, "Only a cylinder or a dome can be inflated.");
  require(!round || 1 + o.motion.inflation - std::abs(o.motion.bulge_mm) / s.radius_mm > 0.1,
          "Deflation and bulge must leave a tenth of the radius.");
  require(o.background >= 0 && o.background <= 255, "The background must be between 0 and 255.");
  require(o.contrast >= 0 && o.contrast <= 20, "The contrast must be between 0 and 20.");
  require(o.right_gain > 0, "The right camera's gain must be positive.");
  const Matrix r = matrix_of(o.pose.rotation);
  require((r * r.transpose()).isIdentity(1e-6) && r.determinant() > 0,
          "The pose's rotation must be a rotation.");
  return list;
}

}  // namespace

CameraRig convergent_rig(Size image, double focal_px, double distance_mm, double angle_deg) {
  RigCamera camera;
  camera.camera.image = image;
  camera.camera.lens = Lens{focal_px, focal_px, (image.width - 1) / 2.0, (image.height - 1) / 2.0};
  CameraRig rig;
  rig.cameras = {camera, camera};
  const double angle = angle_deg * kDegree;
  const Matrix rotation = rotation_about({0, angle, 0});
  rig.cameras[1].rotation = rows_of(rotation);
  const Vector middle(0, 0, distance_mm);
  rig.cameras[1].translation_mm = array_of(middle - rotation * middle);
  return rig;
}

double convergence_distance(const CameraRig& rig) {
  require_two(rig);
  const Vector first = axis_of(rig.cameras[0]), second = axis_of(rig.cameras[1]);
  const Vector between = centre_of(rig.cameras[1]) - centre_of(rig.cameras[0]);
  const double parallel = first.dot(second), distance = first.dot(between) - parallel * second.dot(between);
  if (!(1 - parallel * parallel > 1e-6 && distance > 0))
    throw UsageError(
        "The axes of the cameras do not meet in front of them: give the distance of the specimen.");
  return distance / (1 - parallel * parallel);
}

WorldPose facing_middle(const CameraRig& rig, double distance_mm) {
  require_two(rig);
  const RigCamera& first = rig.cameras[0];
  const Vector z = (axis_of(first) + axis_of(rig.cameras[1])).normalized();
  const Vector down = matrix_of(first.rotation).row(1), x = down.cross(z).normalized();
  Matrix rotation;
  rotation << x, z.cross(x), z;
  return {rows_of(rotation), array_of(centre_of(first) + distance_mm * axis_of(first))};
}

WorldPose facing_first(double distance_mm) { return {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, distance_mm}}; }

std::vector<std::string> StereoSynthOptions::validate() const {
  std::vector<std::string> list = image.validate();
  if (!finite(*this)) {
    list.emplace_back("Every number of the specimen and of its motion must be finite.");
    return list;
  }
  if (const auto problems = rig.validate(); !problems.empty()) {
    list.insert(list.end(), problems.begin(), problems.end());
    return list;
  }
  if (rig.cameras.front().camera.image != image.size)
    list.emplace_back("The first camera takes images of another size than the width and height given.");
  for (const std::string& problem : problems_of(*this)) list.push_back(problem);
  if (list.empty())
    if (const std::string problem = problem_of_places(*this); !problem.empty()) list.push_back(problem);
  return list;
}

struct StereoScene::Impl {
  explicit Impl(const StereoSynthOptions& o) : options(o), pool(o.image.threads) {
    for (const RigCamera& camera : o.rig.cameras) cameras.emplace_back(camera);
    for (const double amount : o.image.amounts) specimens.emplace_back(o, amount);
  }

  PixelMeans pattern(std::size_t camera, int i) {
    return integrate_speckle(specimens[i], cameras[camera],
                             {speckle_of(options, i), tone, nodes_of(options.image)}, pool);
  }
  /// The map from blob sum to grey, the same for all images: from the first camera's reference.
  void measure_tone();
  Image frame(std::size_t camera, int i);
  StereoTruth::View view_of(std::size_t camera, int i, const SurfacePlace& place, bool& near_border) const;
  StereoTruth truth(int i, double x, double y) const;
  void add_strain(int i, const SurfacePlace& place, StereoTruth& truth) const;

  StereoSynthOptions options;
  std::vector<ViewingCamera> cameras;
  std::vector<Specimen> specimens;  // states of the specimen, frame by frame
  core::ThreadPool pool;
  std::once_flag tone_measured;
  Tone tone;
};

void StereoScene::Impl::measure_tone() {
  const PixelMeans means = pattern(0, 0);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t k = 0; k < means.texture.size(); ++k)
    if (means.share[k] > 1 - 1e-9) {
      low = std::min(low, means.texture[k]);
      high = std::max(high, means.texture[k]);
    }
  if (high > low) tone = {(low + high) / 2, (high - low) / 2, options.contrast};
}

Image StereoScene::Impl::frame(std::size_t camera, int i) {
  std::call_once(tone_measured, [this] { measure_tone(); });
  PixelMeans means = pattern(camera, i);
  const double gain = camera == 0 ? 1 : options.right_gain;
  const double middle = (options.image.grey_min + options.image.grey_max) / 2;
  const double half = (options.image.grey_max - options.image.grey_min) / 2;
  std::vector<double> grey = std::move(means.texture);
  for (std::size_t k = 0; k < grey.size(); ++k) {
    const double share = means.share[k];
    grey[k] = gain * (share * middle + half * grey[k] + (1 - share) * options.background);
  }
  SynthOptions sensor = options.image;
  sensor.size = cameras[camera].image();
  const std::uint64_t key = mix(mix(mix(sensor.seed) ^ mix(static_cast<std::uint64_t>(i))) + camera);
  return expose(sensor, grey, i, key, pool);
}

StereoTruth::View StereoScene::Impl::view_of(std::size_t c, int i, const SurfacePlace& place,
                                             bool& near_border) const {
  const ViewingCamera& camera = cameras[c];
  StereoTruth::View view;
  bool inside = true, visible = true;
  const auto look = [&](const Specimen& specimen) {
    constexpr double kRounding = 1e-6;  // px
    const Vector point = specimen.at(place.a, place.b).point;
    const Camera::Point p = camera.project(point);
    const auto within = [&](double beyond) {
      return p.x >= -beyond && p.y >= -beyond && p.x <= camera.image().width - 1 + beyond &&
             p.y <= camera.image().height - 1 + beyond;
    };
    inside &= within(kRounding);
    visible &= within(0.5) && specimen.visible(camera, p, point);
    return p;
  };
  view.reference = look(specimens[0]);
  view.current = look(specimens[i]);
  view.seen = inside && visible;
  near_border = visible && !inside;
  const SurfacePoint p = specimens[0].at(place.a, place.b);
  const Vector normal = p.along_a.cross(p.along_b), ray = p.point - camera.centre();
  view.incidence_deg = std::atan2(normal.cross(ray).norm(), normal.dot(ray)) / kDegree;
  return view;
}

/// With X the reference and x the current position, dx = F dX on the surface; E = (F^T F - 1) / 2 follows
/// from the lengths and angles of the material's coordinate lines before and after.
void StereoScene::Impl::add_strain(int i, const SurfacePlace& place, StereoTruth& truth) const {
  const SurfacePoint before = specimens[0].at(place.a, place.b), after = specimens[i].at(place.a, place.b);
  Eigen::Matrix<double, 3, 2> old_lines, new_lines, axes;
  old_lines << before.along_a, before.along_b;
  new_lines << after.along_a, after.along_b;
  const Vector normal = before.along_a.cross(before.along_b).normalized();
  const Vector first = (Vector::UnitX() - normal.x() * normal).normalized();
  axes << first, normal.cross(first);
  const Eigen::Matrix2d to_axes = axes.transpose() * old_lines, inverse = to_axes.inverse();
  const Eigen::Matrix2d change = new_lines.transpose() * new_lines - old_lines.transpose() * old_lines;
  const Eigen::Matrix2d e = 0.5 * inverse.transpose() * change * inverse;
  truth.exx = e(0, 0), truth.eyy = e(1, 1), truth.exy = e(0, 1);
  const double mean = (truth.exx + truth.eyy) / 2, half = std::hypot((truth.exx - truth.eyy) / 2, truth.exy);
  truth.e1 = mean + half, truth.e2 = mean - half;
}

StereoTruth StereoScene::Impl::truth(int i, double x, double y) const {
  StereoTruth truth;
  const auto place = specimens[0].seen(cameras[0], x, y);
  if (!place) {
    truth.views.resize(cameras.size());
    return truth;
  }
  const Vector before = specimens[0].at(place->a, place->b).point,
               after = specimens[i].at(place->a, place->b).point;
  truth.position_mm = array_of(before);
  truth.displacement_mm = array_of(after - before);
  add_strain(i, *place, truth);
  bool all = true, some_at_border = true;
  for (std::size_t c = 0; c < cameras.size(); ++c) {
    bool near_border = false;
    truth.views.push_back(view_of(c, i, *place, near_border));
    all &= truth.views.back().seen;
    some_at_border &= truth.views.back().seen || near_border;
  }
  if (options.image.unrelated && i > 0) return truth;
  truth.measurable = all ? Measurable::yes : some_at_border ? Measurable::maybe : Measurable::no;
  return truth;
}

namespace {

StereoSynthOptions checked_scene(const StereoSynthOptions& options) {
  const auto problems = options.validate();
  if (!problems.empty()) throw UsageError(problems.front());
  return options;
}

void require_frame(int i, std::size_t frames) {
  if (i < 0 || static_cast<std::size_t>(i) >= frames)
    throw UsageError("The sequence has no frame " + std::to_string(i) + ".");
}

}  // namespace

StereoScene::StereoScene(const StereoSynthOptions& options)
    : impl_(std::make_unique<Impl>(checked_scene(options))) {}
StereoScene::~StereoScene() = default;
StereoScene::StereoScene(StereoScene&&) noexcept = default;
StereoScene& StereoScene::operator=(StereoScene&&) noexcept = default;

Image StereoScene::frame(std::size_t camera, int i) const {
  require_frame(i, impl_->specimens.size());
  if (camera >= impl_->cameras.size())
    throw UsageError("The rig has no camera " + std::to_string(camera) + ".");
  return impl_->frame(camera, i);
}

StereoTruth StereoScene::truth(int i, double x, double y) const {
  require_frame(i, impl_->specimens.size());
  return impl_->truth(i, x, y);
}

}  // namespace dic

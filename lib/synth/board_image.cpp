#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/synth_stereo.hpp>
#include <numbers>

#include "core/parallel.hpp"
#include "io/pending_file.hpp"
#include "synth/expose.hpp"
#include "synth/printed_target.hpp"
#include "synth/random.hpp"
#include "synth/sequence_folder.hpp"
#include "synth/specimen.hpp"

namespace dic {

using namespace synth;

namespace fs = std::filesystem;

namespace {

void check(const BoardSynthOptions& options) {
  const auto problems = options.validate();
  if (!problems.empty()) throw UsageError(problems.front());
}

/// Integral of the normal distribution function.
double integrated_normal(double z) {
  return z * 0.5 * std::erfc(-z / std::numbers::sqrt2) +
         std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
}

/// The distance from the middle of a pixel below which this share of its light comes, along an axis.
double light_quantile(double share, double blur) {
  if (blur == 0) return share - 0.5;
  const auto below = [blur](double q) {
    return blur * (integrated_normal((q + 0.5) / blur) - integrated_normal((q - 0.5) / blur));
  };
  double low = -0.5 - 8 * blur, high = -low;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (below(middle) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Places, relative to the middle of a pixel, that its light comes from, all with the same weight: a
/// Fibonacci lattice.
std::vector<Position> light_samples(double blur) {
  constexpr int kSamples = 987;
  std::vector<double> quantiles;
  for (int k = 0; k < kSamples; ++k) quantiles.push_back(light_quantile((k + 0.5) / kSamples, blur));
  std::vector<Position> samples;
  for (int k = 0; k < kSamples; ++k) samples.push_back({quantiles[k], quantiles[610 * k % kSamples]});
  return samples;
}

/// A target as a camera sees it.
class SeenTarget {
 public:
  SeenTarget(const RigCamera& camera, const WorldPose& pose, const Target& target, double blur)
      : target_(target),
        lens_(camera.camera),
        samples_(light_samples(blur)),
        farthest_light_(samples_.back().x) {
    const Lens& lens = *camera.camera.lens;
    const Matrix rotation = matrix_of(camera.rotation), turned = rotation * matrix_of(pose.rotation);
    Matrix plane, projection;
    plane << turned.col(0), turned.col(1),
        rotation * vector_of(pose.origin_mm) + vector_of(camera.translation_mm);
    projection << lens.fx, 0, lens.cx, 0, lens.fy, lens.cy, 0, 0, 1;
    mm_from_ideal_ = (projection * plane).inverse();
  }

  /// Share of ink in the light of a pixel.
  double ink(int x, int y) const {
    const auto [middle, j] = lens_.undistort_with_jacobian(x, y);
    const auto on_target = [&](double dx, double dy) -> Vector {
      return mm_from_ideal_ * Vector(middle.x + j.xx * dx + j.xy * dy, middle.y + j.yx * dx + j.yy * dy, 1);
    };
    const Vector centre = on_target(0, 0);
    if (!(centre.z() > 0)) return 0;  // beyond the horizon of the target's plane
    const Position at = {centre.x() / centre.z(), centre.y() / centre.z()};
    if (!target_.edge_near(at.x, at.y, reach(on_target, at))) return target_.ink(at.x, at.y) ? 1 : 0;
    // The map to the target is linear in homogeneous coordinates.
    const Vector along_x = on_target(1, 0) - centre, along_y = on_target(0, 1) - centre;
    int inked = 0;
    for (const Position& sample : samples_) {
      const Vector p = centre + sample.x * along_x + sample.y * along_y;
      const double scale = 1 / p.z();
      inked += target_.ink(p.x() * scale, p.y() * scale);
    }
    return static_cast<double>(inked) / static_cast<double>(samples_.size());
  }

 private:
  /// Distance on the target, mm, from the middle of a pixel to the farthest place that its light comes from,
  /// with a margin for perspective.
  template <typename OnTarget>
  double reach(const OnTarget& on_target, Position middle) const {
    double farthest = 0;
    for (const double dx : {-farthest_light_, farthest_light_})
      for (const double dy : {-farthest_light_, farthest_light_}) {
        const Vector p = on_target(dx, dy);
        farthest = std::max(farthest, std::hypot(p.x() / p.z() - middle.x, p.y() / p.z() - middle.y));
      }
    return 1.05 * farthest;
  }

  PrintedTarget target_;
  Camera lens_;
  std::vector<Position> samples_;
  double farthest_light_;  // along an axis, px
  Matrix mm_from_ideal_;
};

Vector in_world(const WorldPose& pose, const Position& p) {
  return matrix_of(pose.rotation) * Vector(p.x, p.y, 0) + vector_of(pose.origin_mm);
}

/// True if all cameras see all points at least `margin` mm from the borders of their images.
bool all_seen(const std::vector<ViewingCamera>& cameras, const PrintedTarget& target, const WorldPose& pose,
              double margin) {
  for (const ViewingCamera& camera : cameras)
    for (const PrintedTarget::Point& point : target.points()) {
      const Vector place = in_world(pose, point);
      const Camera::Point p = camera.project(place);
      const Camera::Point beside = camera.project(place + margin * matrix_of(pose.rotation).col(0));
      const double border = std::hypot(beside.x - p.x, beside.y - p.y);
      if (!(p.x > border && p.y > border && p.x < camera.image().width - 1 - border &&
            p.y < camera.image().height - 1 - border))
        return false;
    }
  return true;
}

}  // namespace

std::vector<std::string> BoardSynthOptions::validate() const {
  std::vector<std::string> list = image.validate();
  for (const std::string& problem : target.validate()) list.push_back(problem);
  const auto require = [&list](bool good, const char* problem) {
    if (!good) list.emplace_back(problem);
  };
  for (const std::string& problem : rig.validate()) list.push_back(problem);
  require(target.pattern != TargetPattern::rings || (target.columns > target.rows && target.rows >= 6),
          "A grid with rings needs 6 rows or more, and more columns than rows.");
  require(!poses.empty(), "The target needs at least one pose.");
  require(blur_px >= 0 && blur_px <= 20, "The blur of the lens must be between 0 and 20 px.");
  require(right_gain > 0 && std::isfinite(right_gain), "The right camera's gain must be positive.");
  require(!image.camera && image.glare == 0 && image.blur == 0 && image.gain == 1 && image.offset == 0,
          "A camera of its own, glare, and changes of blur, gain and offset are not available for views of a "
          "target.");
  return list;
}

std::vector<WorldPose> board_poses(const CameraRig& rig, const Target& target, double distance_mm, int count,
                                   std::uint64_t seed) {
  if (const auto problems = target.validate(); !problems.empty()) throw UsageError(problems.front());
  const PrintedTarget printed(target);
  const WorldPose middle = facing_middle(rig, distance_mm);
  double width = 0, height = 0;
  for (const PrintedTarget::Point& p : printed.points())
    width = std::max(width, p.x), height = std::max(height, p.y);
  const Vector centre(width / 2, height / 2, 0);
  std::vector<ViewingCamera> cameras(rig.cameras.begin(), rig.cameras.end());
  std::uint64_t state = mix(seed ^ 0xb0a4d);
  const auto even = [&] { return 2 * uniform(state = mix(state)) - 1; };
  std::vector<WorldPose> poses;
  constexpr int kTries = 2000;
  for (int tries = 0; static_cast<int>(poses.size()) < count; ++tries) {
    if (tries == kTries * count)
      throw UsageError(
          "The target does not fit into the images of all cameras: choose a smaller distance of its points.");
    // The first pose faces the cameras; others move less the more of them were tried.
    const double part = poses.empty() ? 0 : 1,
                 shift = part * (1 - static_cast<double>(tries % kTries) / kTries);
    const Vector tilt(25 * even(), 25 * even(), 8 * even());
    const Matrix rotation = matrix_of(middle.rotation) * rotation_about(part * std::numbers::pi / 180 * tilt);
    const Vector moved = shift * Vector(width * even(), height * even(), 0.1 * distance_mm * even());
    const Vector origin =
        vector_of(middle.origin_mm) + matrix_of(middle.rotation) * moved - rotation * centre;
    const WorldPose pose = {rows_of(rotation), {origin.x(), origin.y(), origin.z()}};
    if (all_seen(cameras, printed, pose, 1.05 * target.square_mm)) poses.push_back(pose);
  }
  return poses;
}

std::vector<BoardPoint> board_points(const BoardSynthOptions& options, std::size_t camera, int view) {
  const WorldPose& pose = options.poses.at(view);
  const ViewingCamera seen(options.rig.cameras.at(camera));
  std::vector<BoardPoint> points;
  const PrintedTarget target(options.target);
  for (const PrintedTarget::Point& p : target.points()) {
    const Vector place = in_world(pose, p);
    const Camera::Point pixel = seen.project(place);
    points.push_back({p.column, p.row, {p.x, p.y, pixel.x, pixel.y}, {place.x(), place.y(), place.z()}});
  }
  return points;
}

Image board_image(const BoardSynthOptions& options, std::size_t camera, int view) {
  check(options);
  if (camera >= options.rig.cameras.size() || view < 0 || view >= static_cast<int>(options.poses.size()))
    throw UsageError("There is no such view of the target.");
  SynthOptions sensor = options.image;
  sensor.size = options.rig.cameras[camera].camera.image;
  const SeenTarget target(options.rig.cameras[camera], options.poses[view], options.target, options.blur_px);
  const double gain = camera == 0 ? 1 : options.right_gain;
  std::vector<double> grey(static_cast<std::size_t>(sensor.size.width) * sensor.size.height);
  core::ThreadPool pool(sensor.threads);
  core::for_each_row(pool, sensor.size.height, [&](int y) {
    for (int x = 0; x < sensor.size.width; ++x)
      grey[static_cast<std::size_t>(y) * sensor.size.width + x] =
          gain * (sensor.grey_max - (sensor.grey_max - sensor.grey_min) * target.ink(x, y));
  });
  const std::uint64_t key = mix(mix(mix(sensor.seed) ^ mix(static_cast<std::uint64_t>(view))) + camera);
  sensor.amounts = {0};
  return expose(sensor, grey, 0, key, pool);
}

void synth_board_sequence(const BoardSynthOptions& options, const fs::path& directory) {
  check(options);
  if (options.rig.cameras.size() != 2) throw UsageError("Left and right images need a rig of two cameras.");
  make_empty_directory(directory);
  constexpr const char* kFolders[] = {"left", "right"};
  const int views = static_cast<int>(options.poses.size());
  for (std::size_t camera = 0; camera < 2; ++camera) {
    make_empty_directory(directory / kFolders[camera]);
    for (int view = 0; view < views; ++view)
      write_image(directory / kFolders[camera] / frame_name(view), board_image(options, camera, view));
  }
  write_camera_rig(directory / "stereo.json", options.rig);
  PendingText file(directory / "truth.csv");
  file.write("frame,column,row,mm_x,mm_y,X,Y,Z,left_x,left_y,right_x,right_y\n");
  for (int view = 0; view < views; ++view) {
    const auto left = board_points(options, 0, view), right = board_points(options, 1, view);
    for (std::size_t k = 0; k < left.size(); ++k) {
      const BoardPoint& p = left[k];
      std::string line = std::to_string(view) + ',' + std::to_string(p.column) + ',' + std::to_string(p.row);
      for (const double value : {p.place.mm_x, p.place.mm_y, p.position_mm[0], p.position_mm[1],
                                 p.position_mm[2], p.place.x, p.place.y, right[k].place.x, right[k].place.y})
        line += ',' + decimal(value);
      file.write(line + '\n');
    }
  }
  file.commit();
}

}  // namespace dic

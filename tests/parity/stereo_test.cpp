#include <algorithm>
#include <cmath>
#include <dic/field_schema.hpp>
#include <dic/stereo.hpp>
#include <dic/stereo_stream.hpp>
#include <dic/synth_stereo.hpp>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "stereo/surface.hpp"
#include "support/gpu_test.hpp"
#include "support/parameter_names.hpp"
#include "track/sequence.hpp"

// Tests surfaces on the GPU against those on the CPU, which other tests compare with known shapes and
// motions.
namespace dic {
namespace {

struct Case {
  std::string name;
  SurfaceKind surface = SurfaceKind::plane;
  int right_order = 1;
  bool has_covariance = false, removes_motion = false;
  int window = 5;
  StrainMeasure measure = StrainMeasure::green_lagrange;
};
void PrintTo(const Case& shape, std::ostream* out) { *out << shape.name; }

StereoSynthOptions specimen(SurfaceKind surface) {
  StereoSynthOptions synth;
  synth.image.size = {420, 340};
  synth.image.noise = 1;
  synth.image.amounts = {0, 0.5, 1};
  synth.surface.kind = surface;
  synth.rig = convergent_rig(synth.image.size, 1050, 500, 25);
  synth.pose = facing_middle(synth.rig, 500);
  synth.motion.translation_mm = {1.5, -1, 2};
  synth.motion.rotation_deg = {0.4, -0.3, 0.8};
  synth.motion.ux = 0.004;
  return synth;
}

/// A covariance of lenses and pose, of the size of real ones.
std::vector<double> some_covariance() {
  std::vector<double> covariance(900, 0);
  for (int k = 0; k < 30; ++k) {
    const double sd = k % 12 < 4 && k < 24 ? 0.5 : k < 24 ? 1e-3 : k < 27 ? 1e-4 : 0.02;
    covariance[static_cast<std::size_t>(31) * k] = sd * sd;
  }
  return covariance;
}

class SameMatches : public test::GpuTest, public testing::WithParamInterface<Case> {};

/// Loses some points, marks some as outliers and shifts some matches.
void spoil(Field& field) {
  std::mt19937 random(7);
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    const unsigned draw = random() % 100;
    if (!has_values(field.status[k])) continue;
    if (draw < 3) field.status[k] = Status::not_converged, field.u[k] = field.v[k] = NAN;
    if (draw == 4) field.status[k] = Status::outlier;
    if (draw == 5) field.v[k] += 0.6;
  }
}

/// Rounding of the sigmas of strain, whose part that windows flatten follows from differences of strains.
double rounding_of(const FieldArray& array) { return array.name.starts_with("sigma_e") ? 1e-8 : 0; }

void expect_equal_arrays(const Field& gpu, const Field& cpu) {
  for (const FieldArray& array : kFieldArrays) {
    double scale = 0;
    for (std::size_t k = 0; k < cpu.status.size(); ++k)
      if (const double value = value_at(cpu, array, k); std::isfinite(value))
        scale = std::max(scale, std::abs(value));
    for (std::size_t k = 0; k < cpu.status.size(); ++k) {
      const double expected = value_at(cpu, array, k), found = value_at(gpu, array, k);
      ASSERT_EQ(std::isnan(found), std::isnan(expected)) << array.name << " at " << k;
      if (std::isnan(expected)) continue;
      ASSERT_NEAR(found, expected, 2e-5 * std::abs(expected) + 1e-7 * scale + rounding_of(array))
          << array.name << " at " << k;
    }
  }
}

TEST_P(SameMatches, GiveTheSameSurface) {
  const Case& shape = GetParam();
  StereoSynthOptions synth = specimen(shape.surface);
  const StereoScene scene(synth);
  const Image left0 = scene.frame(0, 0), left1 = scene.frame(0, 2), right0 = scene.frame(1, 0),
              right1 = scene.frame(1, 2);
  CameraRig rig = synth.rig;
  if (shape.has_covariance) rig.covariance = some_covariance();
  StereoOptions options;
  options.track.device = "cpu";
  options.track.refine.subset = 21;
  options.track.step = 5;
  options.track.strain.window = shape.window;
  options.track.strain.measure = shape.measure;
  options.remove_rigid_motion = shape.removes_motion;
  options.axes = StereoAxes::plane;
  TrackOptions across = options.track;
  across.refine.order = shape.right_order;
  track::Sequence left(options.track, left0, {}), right(across, left0, {});
  const auto measure = [](track::Sequence& sequence, const Image& image) {
    return sequence.measure(sequence.take(image), {})->fetch();
  };
  core::ThreadPool pool(0);
  const auto grid = std::make_shared<const Grid>(right.grid());
  stereo::Surface on_cpu(options, rig, grid, left0, pool), on_gpu(options, rig, grid, left0, pool);
  const FrameResult across0 = measure(right, right0);
  for (stereo::Surface* surface : {&on_cpu, &on_gpu})
    surface->reference(surface->matched(across0, shape.right_order), shape.right_order);
  on_gpu.use_gpu(0);
  FrameResult l = measure(left, left1), r = measure(right, right1);
  spoil(r.field);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const StereoFrame expected = on_cpu.frame(l, r), found = on_gpu.frame(l, r);
    std::int64_t epipolar = 0, measured = 0;
    for (std::size_t k = 0; k < expected.field.status.size(); ++k) {
      ASSERT_EQ(found.field.status[k], expected.field.status[k]) << k;
      epipolar += expected.field.status[k] == Status::epipolar;
      measured += has_values(expected.field.status[k]);
    }
    EXPECT_GT(epipolar, 20);
    EXPECT_GT(measured, 1500);
    expect_equal_arrays(found.field, expected.field);
    EXPECT_NEAR(found.epipolar_median, expected.epipolar_median, 1e-6);
    EXPECT_NEAR(found.epipolar_sd, expected.epipolar_sd, 1e-6);
    EXPECT_EQ(found.motion.points, expected.motion.points);
    for (int axis = 0; axis < 3; ++axis) {
      EXPECT_NEAR(found.motion.rotation_deg[axis], expected.motion.rotation_deg[axis], 1e-8);
      EXPECT_NEAR(found.motion.translation_mm[axis], expected.motion.translation_mm[axis], 1e-8);
      EXPECT_NEAR(found.motion.sigma_translation_mm[axis], expected.motion.sigma_translation_mm[axis], 1e-8);
    }
    EXPECT_NEAR(found.motion.residual_mm, expected.motion.residual_mm, 1e-7);
    // The same bits each time.
    const StereoFrame again = on_gpu.frame(l, r);
    for (const FieldArray& array : kFieldArrays)
      for (std::size_t k = 0; k < again.field.status.size(); ++k) {
        const double a = value_at(found.field, array, k), b = value_at(again.field, array, k);
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << array.name << " at " << k;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Surfaces, SameMatches,
    testing::Values(
        Case{.name = "plane"}, Case{.name = "covariance", .has_covariance = true},
        Case{.name = "motion_removed", .removes_motion = true},
        Case{.name = "cylinder_order_2", .surface = SurfaceKind::cylinder, .right_order = 2},
        Case{.name = "hencky", .window = 9, .measure = StrainMeasure::hencky},
        Case{.name = "almansi_order_2", .right_order = 2, .window = 17, .measure = StrainMeasure::almansi},
        Case{.name = "engineering", .window = 3, .measure = StrainMeasure::engineering}),
    test::PrintedName());

class Tracking : public test::GpuTest {};

/// Frames of both devices, which match the images differently within the noise.
TEST_F(Tracking, OfTwoCamerasAgreesWithTheCpu) {
  const StereoSynthOptions synth = specimen(SurfaceKind::plane);
  const StereoScene scene(synth);
  StereoOptions options;
  options.track.refine.subset = 21;
  options.track.step = 5;
  const auto frames_on = [&](const std::string& device) {
    options.track.device = device;
    StereoTracker tracker(options, synth.rig, scene.frame(0, 0), scene.frame(1, 0));
    EXPECT_EQ(tracker.device().substr(0, 3), device.substr(0, 3));
    std::vector<StereoFrame> frames;
    for (const int k : {1, 2}) frames.push_back(tracker.track(scene.frame(0, k), scene.frame(1, k)));
    return frames;
  };
  const auto cpu = frames_on("cpu"), gpu = frames_on("cuda"), parts = frames_on("cuda:0,0");
  for (std::size_t f = 0; f < cpu.size(); ++f) {
    const Field &a = cpu[f].field, &b = gpu[f].field;
    int different = 0;
    for (std::size_t k = 0; k < a.status.size(); ++k) {
      different += a.status[k] != b.status[k];
      if (!has_values(a.status[k]) || !has_values(b.status[k])) continue;
      ASSERT_NEAR(a.stereo.z[k], b.stereo.z[k], 0.3 * a.stereo.sigma_z[k]) << k;
      ASSERT_NEAR(a.stereo.w[k], b.stereo.w[k], 0.3 * a.stereo.sigma_w[k]) << k;
    }
    EXPECT_LE(different, 5);
    // Several GPUs share the points, and give the same bits.
    for (const FieldArray& array : kFieldArrays)
      for (std::size_t k = 0; k < b.status.size(); ++k) {
        const double one = value_at(b, array, k), two = value_at(parts[f].field, array, k);
        ASSERT_TRUE(one == two || (std::isnan(one) && std::isnan(two))) << array.name << " at " << k;
      }
  }
}

/// Both devices give up the same points, on a dome of which the cameras see different parts: points that only
/// one of them sees, and points that turn away.
TEST_F(Tracking, OfARoundBodyGivesUpThePointsThatTheCpuGivesUp) {
  StereoSynthOptions synth = specimen(SurfaceKind::dome);
  synth.surface.radius_mm = 60;
  synth.motion.translation_mm = {3, -2, 4};
  const StereoScene scene(synth);
  StereoOptions options;
  options.track.refine.subset = 21;
  options.track.step = 5;
  const auto frames_on = [&](const std::string& device) {
    options.track.device = device;
    StereoTracker tracker(options, synth.rig, scene.frame(0, 0), scene.frame(1, 0));
    std::vector<StereoFrame> frames{tracker.reference()};
    for (const int k : {1, 2, 0, 2}) frames.push_back(tracker.track(scene.frame(0, k), scene.frame(1, k)));
    return frames;
  };
  const auto cpu = frames_on("cpu"), gpu = frames_on("cuda");
  for (std::size_t f = 0; f < cpu.size(); ++f) {
    const auto counts = cpu[f].field.counts();
    EXPECT_GT(counts[static_cast<int>(Status::ok)], 500) << f;
    EXPECT_GT(counts[static_cast<int>(Status::low_correlation)], 200) << f;
    std::int64_t different = 0;
    for (std::size_t k = 0; k < cpu[f].field.status.size(); ++k)
      different += cpu[f].field.status[k] != gpu[f].field.status[k];
    EXPECT_LE(different, 20) << "frame " << f;
  }
}

/// A GPU leaves out the points, or leaves them to their neighbours, that a CPU does.
TEST_F(Tracking, LimitsTheEffortAsTheCpu) {
  const StereoSynthOptions synth = specimen(SurfaceKind::plane);
  const StereoScene scene(synth);
  const Image reference = scene.frame(0, 0);
  const auto fields_on = [&](const std::string& device, bool starts_from_other) {
    TrackOptions options;
    options.refine.subset = 21;
    options.step = 5;
    options.device = device;
    track::Sequence sequence(options, reference.view(), {});
    const Grid& grid = sequence.grid();
    std::vector<track::Effort> efforts(static_cast<std::size_t>(grid.nodes()), track::Effort::search);
    for (std::size_t k = 0; k < efforts.size(); ++k) {
      const int column = static_cast<int>(k % static_cast<std::size_t>(grid.nx));
      if (column < grid.nx / 2)
        efforts[k] = column < grid.nx / 4 ? track::Effort::none : track::Effort::neighbours;
    }
    const auto measured = [&](track::Sequence& by, const Image& image) {
      return by.measure(by.take(image.view()), {})->fetch().field;
    };
    track::Sequence other(options, reference.view(), {});
    std::vector<Field> fields;
    if (starts_from_other) {
      measured(other, scene.frame(1, 0));
      sequence.start_from(other);
    }
    sequence.limit_effort(efforts);
    for (const int k : {0, 1, 2}) fields.push_back(measured(sequence, scene.frame(1, k)));
    // Points that were found left the image meanwhile, or everything was lost.
    fields.push_back(measured(sequence, Image(reference.size(), reference.type())));
    fields.push_back(measured(sequence, scene.frame(1, 1)));
    return fields;
  };
  for (const bool starts_from_other : {false, true}) {
    const auto cpu = fields_on("cpu", starts_from_other), gpu = fields_on("cuda", starts_from_other);
    for (std::size_t f = 0; f < cpu.size(); ++f) {
      std::int64_t different = 0;
      for (std::size_t k = 0; k < cpu[f].status.size(); ++k)
        different += cpu[f].status[k] != gpu[f].status[k];
      EXPECT_LE(different, 5) << "frame " << f << (starts_from_other ? " with" : " without") << " starts";
    }
    EXPECT_GT(cpu[1].counts()[static_cast<int>(Status::ok)], 1500);
    EXPECT_EQ(cpu[3].counts()[static_cast<int>(Status::ok)], 0);
  }
}

/// A stream overlaps pairs and gives the bits of the tracker.
TEST_F(Tracking, OfAStreamIsThatOfTheTracker) {
  const StereoSynthOptions synth = specimen(SurfaceKind::plane);
  const StereoScene scene(synth);
  StereoOptions options;
  options.track.device = "cuda";
  options.track.refine.subset = 21;
  options.track.step = 5;
  std::vector<Image> left, right;
  for (int k = 0; k < 3; ++k) left.push_back(scene.frame(0, k)), right.push_back(scene.frame(1, k));
  constexpr int kPairs = 12;  // more than memory that is lent to users
  StereoTracker tracker(options, synth.rig, left[0], right[0]);
  StereoStream stream(options, synth.rig, left[0], right[0], {}, {}, kPairs);
  for (int pair = 0; pair < kPairs; ++pair) stream.push(left[1 + pair % 2], right[1 + pair % 2]);
  std::vector<StereoFrame> kept;
  for (int pair = 0; pair < kPairs; ++pair) {
    const StereoFrame expected = tracker.track(left[1 + pair % 2], right[1 + pair % 2]);
    auto found = stream.wait();
    ASSERT_TRUE(found && found->error.empty());
    for (const FieldArray& array : kFieldArrays)
      for (std::size_t k = 0; k < expected.field.status.size(); ++k) {
        const double a = value_at(found->field, array, k), b = value_at(expected.field, array, k);
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
            << array.name << " at " << k << " of " << pair;
      }
    kept.push_back(std::move(*found));
  }
}

}  // namespace
}  // namespace dic

#include "stereo/frame_geometry.hpp"

#include <utility>

namespace dic::stereo {

void ReferenceMemory::reset(std::size_t nodes) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  constexpr float kMissingFloat = std::numeric_limits<float>::quiet_NaN();
  position.assign(nodes, vector3(kMissing, kMissing, kMissing));
  from_px.assign(nodes, FromPixels::zero());
  covariance.assign(6 * nodes, 0), calibration_sigma.assign(3 * nodes, kMissingFloat);
  sigma.assign(2 * nodes, kMissingFloat), map.assign(4 * nodes, 0);
  incidence.assign(nodes, kMissingFloat);
  status.assign(nodes, Status::masked);
}

ReferencePoints ReferenceMemory::view() const {
  return {position.data(), from_px.data(), covariance.data(), calibration_sigma.data(),
          sigma.data(),    map.data(),     incidence.data(),  status.data()};
}

Field new_stereo_field(std::shared_ptr<const Grid> grid) {
  const std::int64_t nodes = grid->nodes();
  Field f = Field::without_arrays(std::move(grid));
  StereoField& s = f.stereo;
  StrainField& e = f.strain;
  for (auto* values : {&f.u, &f.v, &s.x, &s.y, &s.z, &s.u, &s.v, &s.w}) *values = new_values<double>(nodes);
  for (auto* values : {&f.zncc,
                       &f.sigma_u,
                       &f.sigma_v,
                       &s.sigma_x,
                       &s.sigma_y,
                       &s.sigma_z,
                       &s.sigma_u,
                       &s.sigma_v,
                       &s.sigma_w,
                       &s.calibration_sigma_x,
                       &s.calibration_sigma_y,
                       &s.calibration_sigma_z,
                       &s.calibration_sigma_u,
                       &s.calibration_sigma_v,
                       &s.calibration_sigma_w,
                       &s.epipolar,
                       &s.reprojection,
                       &s.incidence,
                       &e.exx,
                       &e.eyy,
                       &e.exy,
                       &e.e1,
                       &e.e2,
                       &e.von_mises,
                       &e.sigma_exx,
                       &e.sigma_eyy,
                       &e.sigma_exy})
    *values = new_values<float>(nodes);
  f.status = new_values<Status>(nodes);
  f.iterations = new_values<std::int16_t>(nodes);
  return f;
}

FrameScratch::FrameScratch(std::int64_t nodes, bool orders_differ)
    : displacement(nodes),
      errors(nodes),
      right_errors(orders_differ ? nodes : 0),
      epipolar_sigma(nodes),
      offset(nodes),
      usable(nodes),
      flattened(nodes) {}

SurfaceArrays arrays_of(Field& f, FrameScratch& scratch) {
  StereoField& s = f.stereo;
  StrainField& e = f.strain;
  return {.u = f.u.data(),
          .v = f.v.data(),
          .zncc = f.zncc.data(),
          .sigma_u = f.sigma_u.data(),
          .sigma_v = f.sigma_v.data(),
          .status = f.status.data(),
          .iterations = f.iterations.data(),
          .x = s.x.data(),
          .y = s.y.data(),
          .z = s.z.data(),
          .du = s.u.data(),
          .dv = s.v.data(),
          .dw = s.w.data(),
          .sigma_x = s.sigma_x.data(),
          .sigma_y = s.sigma_y.data(),
          .sigma_z = s.sigma_z.data(),
          .sigma_du = s.sigma_u.data(),
          .sigma_dv = s.sigma_v.data(),
          .sigma_dw = s.sigma_w.data(),
          .calibration_x = s.calibration_sigma_x.data(),
          .calibration_y = s.calibration_sigma_y.data(),
          .calibration_z = s.calibration_sigma_z.data(),
          .calibration_du = s.calibration_sigma_u.data(),
          .calibration_dv = s.calibration_sigma_v.data(),
          .calibration_dw = s.calibration_sigma_w.data(),
          .epipolar = s.epipolar.data(),
          .reprojection = s.reprojection.data(),
          .incidence = s.incidence.data(),
          .exx = e.exx.data(),
          .eyy = e.eyy.data(),
          .exy = e.exy.data(),
          .e1 = e.e1.data(),
          .e2 = e.e2.data(),
          .von_mises = e.von_mises.data(),
          .sigma_exx = e.sigma_exx.data(),
          .sigma_eyy = e.sigma_eyy.data(),
          .sigma_exy = e.sigma_exy.data(),
          .displacement = scratch.displacement.data(),
          .errors = scratch.errors.data(),
          .right_errors = scratch.right_errors.empty() ? nullptr : scratch.right_errors.data(),
          .epipolar_sigma = scratch.epipolar_sigma.data(),
          .usable = scratch.usable.data(),
          .flattened = scratch.flattened.data()};
}

MatchPoints match_points(const Field& field, const LocalMaps& maps) {
  return {field.u.data(),       field.v.data(),      field.zncc.data(),       field.sigma_u.data(),
          field.sigma_v.data(), field.status.data(), field.iterations.data(), maps.data()};
}

StereoFrame new_stereo_frame(const FrameResult& left, const FrameResult& right) {
  StereoFrame frame;
  frame.noise_left = left.noise, frame.noise_right = right.noise;
  frame.seconds = right.seconds;
  if (&left != &right) frame.seconds += left.seconds;
  return frame;
}

void find_strain(const SurfaceJob& job, const StrainOptions& options, const StereoSubsets& subsets,
                 core::ThreadPool& pool) {
  const auto run = [&](const auto& step) {
    constexpr std::int64_t kNodesPerTask = 256;
    pool.parallel_for(job.grid.nodes(), kNodesPerTask, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t k = first; k < last; ++k) step(k);
    });
  };
  constexpr int kUsual = 63;
  if (options.window <= kUsual)
    run(SurfaceStrain<kUsual>(job, options, subsets.left, subsets.right));
  else
    run(SurfaceStrain<strain::largest_window>(job, options, subsets.left, subsets.right));
  const SurfaceFlattening flattening(job, options, subsets.left);
  run(flattening);
  run(FlattenedSigmas{job, flattening.flattening});
}

}  // namespace dic::stereo

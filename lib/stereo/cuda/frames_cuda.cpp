#include <dic/kernels/surface.hpp>
#include <utility>

#include "stereo/axes.hpp"
#include "stereo/frame_geometry.hpp"
#include "track/cuda/memory/device_field.hpp"

// The CUDA backend. The fields of both matches, which the host may have changed, are copied to the device;
// what follows from them stays there until the surface is complete.
namespace dic::stereo {
namespace {

using kernels::DeviceBuffer;

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Hands out arrays of a block of memory one after the other; without a block it only counts bytes.
class Block {
 public:
  explicit Block(void* memory) : memory_(static_cast<std::byte*>(memory)) {}

  template <typename T>
  void place(T*& array, std::int64_t count) {
    array = memory_ ? reinterpret_cast<T*>(memory_ + bytes_) : nullptr;
    bytes_ += aligned(static_cast<std::size_t>(count) * sizeof(T));
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::size_t bytes_ = 0;
};

/// Small results of a frame.
struct Summary {
  kernels::EpipolarMedians medians;
  kernels::MotionSums motion;
};

/// The arrays of a frame that the host gets.
struct FrameArrays {
  SurfaceArrays field{};
  Summary* summary = nullptr;
};

std::size_t place_frame(void* memory, std::int64_t nodes, FrameArrays& frame) {
  Block block(memory);
  SurfaceArrays& a = frame.field;
  block.place(frame.summary, 1);
  for (double** values : {&a.u, &a.v, &a.x, &a.y, &a.z, &a.du, &a.dv, &a.dw}) block.place(*values, nodes);
  for (float** values : {&a.zncc,
                         &a.sigma_u,
                         &a.sigma_v,
                         &a.sigma_x,
                         &a.sigma_y,
                         &a.sigma_z,
                         &a.sigma_du,
                         &a.sigma_dv,
                         &a.sigma_dw,
                         &a.calibration_x,
                         &a.calibration_y,
                         &a.calibration_z,
                         &a.calibration_du,
                         &a.calibration_dv,
                         &a.calibration_dw,
                         &a.epipolar,
                         &a.reprojection,
                         &a.incidence,
                         &a.exx,
                         &a.eyy,
                         &a.exy,
                         &a.e1,
                         &a.e2,
                         &a.von_mises,
                         &a.sigma_exx,
                         &a.sigma_eyy,
                         &a.sigma_exy})
    block.place(*values, nodes);
  block.place(a.iterations, nodes);
  block.place(a.status, nodes);
  return block.bytes();
}

/// The arrays of a frame that stay on the device.
std::size_t place_scratch(void* memory, std::int64_t nodes, bool orders_differ, SurfaceArrays& a,
                          float*& offset) {
  Block block(memory);
  block.place(a.displacement, nodes);
  block.place(a.errors, nodes);
  a.right_errors = nullptr;
  if (orders_differ) block.place(a.right_errors, nodes);
  block.place(a.epipolar_sigma, nodes);
  block.place(offset, nodes);
  block.place(a.usable, nodes);
  block.place(a.flattened, nodes);
  return block.bytes();
}

/// A match on the device.
struct MatchArrays {
  double *u = nullptr, *v = nullptr;
  float *zncc = nullptr, *sigma_u = nullptr, *sigma_v = nullptr, *map = nullptr;
  Status* status = nullptr;
  std::int16_t* iterations = nullptr;
  std::uint8_t *order = nullptr, *known = nullptr;
};

std::size_t place_match(void* memory, std::int64_t nodes, MatchArrays& a) {
  Block block(memory);
  block.place(a.u, nodes), block.place(a.v, nodes);
  for (float** values : {&a.zncc, &a.sigma_u, &a.sigma_v}) block.place(*values, nodes);
  block.place(a.map, 4 * nodes);
  block.place(a.iterations, nodes);
  block.place(a.status, nodes);
  block.place(a.order, nodes), block.place(a.known, nodes);
  return block.bytes();
}

/// Memory of the steps of BendJob.
std::size_t place_bends(void* memory, std::int64_t nodes, BendJob& job) {
  Block block(memory);
  block.place(job.usable, nodes), block.place(job.row_is_complete, nodes);
  block.place(job.rows, nodes);
  block.place(job.narrow_bends, nodes), block.place(job.wide_bends, nodes);
  for (std::int32_t** source : {&job.narrow_source, &job.wide_source, &job.other_narrow, &job.other_wide})
    block.place(*source, nodes);
  block.place(job.bias_u, nodes), block.place(job.bias_v, nodes);
  for (float** values : {&job.difference_u, &job.difference_v, &job.row_squares, &job.row_counts})
    block.place(*values, nodes);
  return block.bytes();
}

/// Places in a block of memory what all frames have in common. Returns its size in bytes.
std::size_t place_reference(void* memory, std::int64_t nodes, std::size_t factor, ReferencePoints& points,
                            const double*& calibration, const float*& responses) {
  Block block(memory);
  const auto place = [&]<typename T>(const T*& array, std::int64_t count) {
    T* first = nullptr;
    block.place(first, count);
    array = first;
  };
  place(points.position, nodes), place(points.from_px, nodes);
  place(points.covariance, 6 * nodes), place(points.calibration_sigma, 3 * nodes);
  place(points.sigma, 2 * nodes), place(points.map, 4 * nodes), place(points.incidence, nodes);
  place(points.status, nodes);
  place(calibration, static_cast<std::int64_t>(factor));
  place(responses, 12 * nodes);
  return block.bytes();
}

/// The field of a frame in a block of memory, whose arrays share its ownership.
Field field_in(const std::shared_ptr<std::byte>& block, const SurfaceArrays& a,
               std::shared_ptr<const Grid> grid) {
  const std::int64_t nodes = grid->nodes();
  const auto values = [&]<typename T>(T* first) {
    return NodeValues<T>(std::shared_ptr<T[]>(block, first), static_cast<std::size_t>(nodes));
  };
  Field f = Field::without_arrays(std::move(grid));
  f.u = values(a.u), f.v = values(a.v);
  f.zncc = values(a.zncc), f.sigma_u = values(a.sigma_u), f.sigma_v = values(a.sigma_v);
  f.status = values(a.status), f.iterations = values(a.iterations);
  f.strain = {values(a.exx),       values(a.eyy),       values(a.exy),       values(a.e1),       values(a.e2),
              values(a.von_mises), values(a.sigma_exx), values(a.sigma_eyy), values(a.sigma_exy)};
  StereoField& s = f.stereo;
  s.x = values(a.x), s.y = values(a.y), s.z = values(a.z);
  s.u = values(a.du), s.v = values(a.dv), s.w = values(a.dw);
  s.sigma_x = values(a.sigma_x), s.sigma_y = values(a.sigma_y), s.sigma_z = values(a.sigma_z);
  s.sigma_u = values(a.sigma_du), s.sigma_v = values(a.sigma_dv), s.sigma_w = values(a.sigma_dw);
  s.calibration_sigma_x = values(a.calibration_x), s.calibration_sigma_y = values(a.calibration_y);
  s.calibration_sigma_z = values(a.calibration_z), s.calibration_sigma_u = values(a.calibration_du);
  s.calibration_sigma_v = values(a.calibration_dv), s.calibration_sigma_w = values(a.calibration_dw);
  s.epipolar = values(a.epipolar), s.reprojection = values(a.reprojection);
  s.incidence = values(a.incidence);
  return f;
}

class CudaFrames final : public FrameBackend {
 public:
  CudaFrames(const FrameGeometry& geometry, int device)
      : geometry_(geometry), device_(device), nodes_(geometry.grid->nodes()) {
    reserve();
    upload_reference();
  }

  /// Bytes of device memory.
  static std::size_t bytes_of(const FrameGeometry& geometry) {
    const std::int64_t nodes = geometry.grid->nodes();
    FrameArrays frame;
    MatchArrays match;
    BendJob bends{};
    ReferencePoints points{};
    const double* factor = nullptr;
    const float* responses = nullptr;
    float* offset = nullptr;
    return place_frame(nullptr, nodes, frame) +
           place_scratch(nullptr, nodes, geometry.orders_differ(), frame.field, offset) +
           2 * (place_match(nullptr, nodes, match) + place_bends(nullptr, nodes, bends)) +
           place_reference(nullptr, nodes, geometry.calibration_factor->size(), points, factor, responses);
  }

  StereoFrame frame(FrameResult left, FrameResult right) override {
    const kernels::DeviceScope scope(device_);
    StereoFrame frame = new_stereo_frame(left, right);
    geometry_watch_.start(stream_);
    take(0, left.field, geometry_.subsets.left.order, side_stream_);
    take(1, right.field, geometry_.subsets.right.order, stream_);
    join(side_stream_, stream_);
    SurfaceJob job = job_;
    job.left = view(matches_[0]), job.right = view(matches_[1]);
    const auto stream = stream_.handle();
    kernels::launch_measure_points(job, geometry_.orders_differ(), stream);
    check_distances(job);
    void* const workspace = workspace_.reserve(kernels::motion_workspace_bytes());
    kernels::launch_sum_motion(job, &on_device_.summary->motion, workspace, stream);
    kernels::launch_store_displacements(job, motion_to_remove(), stream);
    geometry_watch_.stop(stream_), strain_watch_.start(stream_);
    kernels::launch_surface_strain(job, geometry_.strain, geometry_.subsets.left, geometry_.subsets.right,
                                   stream);
    strain_watch_.stop(stream_);
    join(side_stream_, stream_);
    download(frame);
    frame.geometry_seconds = geometry_watch_.seconds();
    frame.seconds.strain += strain_watch_.seconds();
    return frame;
  }

 private:
  void reserve() {
    frame_bytes_ = place_frame(nullptr, nodes_, on_device_);
    place_frame(frame_memory_.reserve(frame_bytes_), nodes_, on_device_);
    const bool orders_differ = geometry_.orders_differ();
    const std::size_t scratch = place_scratch(nullptr, nodes_, orders_differ, on_device_.field, offset_);
    place_scratch(scratch_memory_.reserve(scratch), nodes_, orders_differ, on_device_.field, offset_);
    for (int k = 0; k < 2; ++k) {
      const std::size_t bytes = place_match(nullptr, nodes_, matches_[k]);
      place_match(match_memory_[k].reserve(bytes), nodes_, matches_[k]);
    }
    for (int k = 0; k < 2; ++k) {
      bends_[k] = bend_job_of(*geometry_.grid, geometry_.filter, 1);
      const std::size_t bytes = place_bends(nullptr, nodes_, bends_[k]);
      place_bends(bends_memory_[k].reserve(bytes), nodes_, bends_[k]);
    }
    samples_.reserve<kernels::SampledDistances>(1), common_.reserve<CommonDistance>(1);
  }

  void upload_reference() {
    const std::vector<double>& factor = *geometry_.calibration_factor;
    ReferencePoints points{};
    const double* calibration = nullptr;
    const float* responses = nullptr;
    const auto place = [&](void* memory) {
      return place_reference(memory, nodes_, factor.size(), points, calibration, responses);
    };
    place(reference_memory_.reserve(place(nullptr)));
    const ReferencePoints host = geometry_.reference->view();
    const auto upload = [&](const auto* to, const auto* from, std::size_t count) {
      if (count > 0)
        kernels::upload(const_cast<void*>(static_cast<const void*>(to)), from, count * sizeof(*from),
                        stream_);
    };
    const auto nodes = static_cast<std::size_t>(nodes_);
    upload(points.position, host.position, nodes), upload(points.from_px, host.from_px, nodes);
    upload(points.covariance, host.covariance, 6 * nodes);
    upload(points.calibration_sigma, host.calibration_sigma, 3 * nodes);
    upload(points.sigma, host.sigma, 2 * nodes), upload(points.map, host.map, 4 * nodes);
    upload(points.incidence, host.incidence, nodes), upload(points.status, host.status, nodes);
    upload(calibration, factor.data(), factor.size());
    upload(responses, geometry_.responses->front().data(), 12 * nodes);
    stream_.synchronize("the copy of the references");
    for (BendJob& bends : bends_) bends.responses = responses;
    job_ = {.grid = node_grid_of(*geometry_.grid),
            .cameras = geometry_.cameras,
            .axes = geometry_.axes,
            .calibration = {calibration, static_cast<int>(factor.size()) / kRigParameters},
            .reference = points,
            .left = {},
            .right = {},
            .out = on_device_.field};
  }

  static MatchPoints view(const MatchArrays& match) {
    return {match.u,       match.v,      match.zncc,       match.sigma_u,
            match.sigma_v, match.status, match.iterations, match.map};
  }

  /// Makes work that is queued on a stream from now on wait for what is queued on another one.
  void join(const kernels::Stream& from, const kernels::Stream& to) {
    joined_.record(from);
    to.wait(joined_);
  }

  /// Queues copying a match, of the left camera (0) or the right one (1), and subtracting its bends. The
  /// field must live until the stream was synchronized.
  void take(int camera, const Field& field, int order, const kernels::Stream& stream) {
    const MatchArrays& match = matches_[camera];
    const auto upload = [&](auto* to, const auto& values) {
      if (!values.empty()) kernels::upload(to, values.data(), values.size() * sizeof(*to), stream);
    };
    upload(match.u, field.u), upload(match.v, field.v);
    upload(match.zncc, field.zncc);
    upload(match.sigma_u, field.sigma_u), upload(match.sigma_v, field.sigma_v);
    upload(match.iterations, field.iterations);
    upload(match.status, field.status);
    upload(match.order, field.order);
    BendJob job = bends_[camera];
    job.match_order = order;
    job.order = field.order.empty() ? nullptr : match.order;
    job.u = match.u, job.v = match.v, job.sigma_u = match.sigma_u, job.sigma_v = match.sigma_v;
    job.status = match.status, job.maps = match.map, job.known = match.known;
    kernels::launch_subtract_bends(job, stream.handle());
  }

  /// Queues the epipolar check. Its medians are found beside what follows.
  void check_distances(const SurfaceJob& job) {
    const EpipolarJob distances{job.grid, job.out.epipolar, job.out.epipolar_sigma, offset_, job.out.status};
    auto* const samples = static_cast<kernels::SampledDistances*>(samples_.data());
    auto* const common = static_cast<CommonDistance*>(common_.data());
    void* const rows = workspace_.reserve(kernels::sample_workspace_bytes(job.grid));
    kernels::launch_sample_distances(distances, samples, rows, stream_.handle());
    kernels::launch_fit_common_distance(samples, common, stream_.handle());
    kernels::launch_mark_contradictions(distances, common, stream_.handle());
    join(stream_, side_stream_);
    kernels::launch_epipolar_medians(distances, &on_device_.summary->medians,
                                     medians_memory_.reserve(kernels::median_workspace_bytes()),
                                     side_stream_.handle());
  }

  /// The motion that is subtracted from the displacements; waits for it if that is wanted.
  MotionTerms motion_to_remove() {
    if (!geometry_.removes_motion) return motion_terms({}, false);
    auto* const summary = host_summary_.reserve<Summary>(1);
    kernels::download(summary, on_device_.summary, sizeof *summary, stream_);
    stream_.synchronize("the motion of a surface");
    return motion_terms(motion_of(*summary), true);
  }
  RigidMotion motion_of(const Summary& summary) const {
    return rigid_motion_of(summary.motion.means, summary.motion.moments, geometry_.subsets.left,
                           geometry_.grid->step);
  }

  void download(StereoFrame& frame) {
    track::cuda::FieldBlocks::Handle block = blocks_.acquire();
    FrameArrays on_host;
    place_frame(block->reserve(frame_bytes_), nodes_, on_host);
    kernels::download(block->data(), frame_memory_.data(), frame_bytes_, stream_);
    stream_.synchronize("the surface of a frame");
    frame.epipolar_median = on_host.summary->medians.distance;
    frame.epipolar_sd = kFromMedian * on_host.summary->medians.offset;
    frame.motion = motion_of(*on_host.summary);
    if (auto lent = blocks_.lend(block)) {
      frame.field = field_in(lent, on_host.field, geometry_.grid);
      return;
    }
    const std::shared_ptr<std::byte> shared(block, static_cast<std::byte*>(block->data()));
    const Field in_block = field_in(shared, on_host.field, geometry_.grid);
    frame.field = in_block;  // copies all arrays
  }

  const FrameGeometry geometry_;
  const int device_;
  const std::int64_t nodes_;
  /// High, so that its many short kernels do not wait for the long ones that match the next pair.
  kernels::Stream stream_{kernels::Priority::high};
  kernels::Stream side_stream_{kernels::Priority::high};  ///< work beside that of the stream
  kernels::Event joined_;
  kernels::Stopwatch geometry_watch_, strain_watch_;
  DeviceBuffer frame_memory_, scratch_memory_, match_memory_[2], bends_memory_[2], reference_memory_,
      samples_, common_, workspace_, medians_memory_;
  kernels::PinnedBuffer host_summary_;
  track::cuda::FieldBlocks blocks_;
  std::size_t frame_bytes_ = 0;
  FrameArrays on_device_;
  MatchArrays matches_[2];
  float* offset_ = nullptr;
  BendJob bends_[2]{};
  SurfaceJob job_{};
};

}  // namespace

std::unique_ptr<FrameBackend> open_cuda_frames(const FrameGeometry& geometry, int ordinal,
                                               core::ThreadPool&) {
  constexpr double kMost = 0.8;  // of the free memory
  const int device = kernels::find_device(ordinal).index;
  const kernels::DeviceScope scope(device);
  const auto free = static_cast<double>(kernels::free_memory());
  if (static_cast<double>(CudaFrames::bytes_of(geometry)) > kMost * free) return nullptr;
  return std::make_unique<CudaFrames>(geometry, device);
}

}  // namespace dic::stereo

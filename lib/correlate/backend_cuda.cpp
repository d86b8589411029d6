#include <algorithm>
#include <array>
#include <cstring>
#include <dic/error.hpp>
#include <dic/kernels/device.hpp>
#include <dic/kernels/ncc.hpp>

#include "correlate/backend.hpp"

// The CUDA backend: uploads what a job reads, runs a variant of kernels/ on it, and lets the device turn the
// sums into scores and peaks. Jobs whose surfaces do not fit are done in parts; the result is the same.
namespace dic::correlate {
namespace {

using kernels::DeviceBuffer;
using kernels::NccJob;
using kernels::NccVariant;

/// Surfaces that are in flight at once take at most this much, and at most half of the free memory.
constexpr std::size_t most_surface_bytes = std::size_t{1} << 30;

const NccVariant* find(std::string_view name) {
  for (const NccVariant& variant : kernels::ncc_variants())
    if (variant.name == name) return &variant;
  return nullptr;
}

const std::vector<VariantInfo>& variants() {
  static const std::vector<VariantInfo> all = [] {
    std::vector<VariantInfo> infos;
    for (const NccVariant& v : kernels::ncc_variants())
      infos.push_back({.name = std::string(v.name),
                       .backend = "cuda",
                       .forms = {v.forms.begin(), v.forms.end()},
                       .types = {v.types.begin(), v.types.end()},
                       .measures = {Measure::sums, Measure::zncc, Measure::ncc, Measure::ssd},
                       .idea = std::string(v.idea)});
    return infos;
  }();
  return all;
}

Surfaces::Type sums_of(ScalarType type, Measure measure, int ref_h, int ref_w) {
  if (measure != Measure::sums) return kernels::sums_for_scores(type, ref_h, ref_w);
  switch (type) {
    case ScalarType::u8:
      return Surfaces::Type::u32;
    case ScalarType::u16:
      return Surfaces::Type::u64;
    case ScalarType::i32:
      return Surfaces::Type::i64;
    case ScalarType::f32:
      return Surfaces::Type::f32;
    case ScalarType::f64:
      break;
  }
  return Surfaces::Type::f64;
}

/// The job without its data: enough to ask a variant whether it can do it.
NccJob job_of(const CorrelateShape& shape) {
  NccJob job{.form = shape.form,
             .type = shape.type,
             .sums = sums_of(shape.type, shape.measure, shape.ref_h, shape.ref_w),
             .reference = {.count = shape.references, .height = shape.ref_h, .width = shape.ref_w},
             .search = {.height = shape.search_h, .width = shape.search_w},
             .shifts = shape.shifts,
             .pairs = shape.pairs};
  return job;
}

std::string problem(std::string_view name, const CorrelateShape& shape) {
  return kernels::refusal(*find(name), job_of(shape));
}

/// cuda-u8-tensor keeps a block's window and reference in shared memory: 160 KB hold 255x255 elements, the 99
/// KB of desktop GPUs 128x128.
bool fits_shared_memory(const CorrelateShape& shape, int compute_capability) {
  constexpr std::array data_centre{80, 87, 90, 100, 103};
  return std::max(shape.ref_h, shape.ref_w) <= 128 ||
         std::ranges::find(data_centre, compute_capability) != data_centre.end();
}

CorrelatePlan plan(const CorrelateShape& shape, const DeviceFacts& device) {
  if (shape.masked) throw UsageError("The CUDA backend does not take masks: use --device cpu.");
  const NccVariant& tensor = *find("cuda-u8-tensor");
  if (shape.type == ScalarType::u8 && kernels::refusal(tensor, job_of(shape)).empty() &&
      fits_shared_memory(shape, device.compute_capability))
    return {"cuda-u8-tensor", "8-bit pictures: exact sums on tensor cores"};
  constexpr std::int64_t too_few_for_threads = 32768;  // a thread each leaves most of a large GPU idle
  if (shape.pairs * shape.shifts.count() <= too_few_for_threads)
    return {"cuda-warp-per-shift", "few shifts: a warp for each"};
  return {"cuda-basic", "many shifts: a thread for each"};
}

/// Pictures, their descriptions and the positions of one side of a job, in device memory.
class DeviceSide {
 public:
  kernels::DeviceMatrices upload(const Matrices& matrices, const kernels::Stream& stream) {
    upload_pictures(matrices.pictures, stream);
    const std::size_t bytes = matrices.positions.size_bytes();
    kernels::upload(positions_.reserve(bytes), matrices.positions.data(), bytes, stream);
    return {.pictures = static_cast<const kernels::DevicePicture*>(descriptions_.data()),
            .positions = static_cast<const MatrixPosition*>(positions_.data()),
            .count = static_cast<std::int64_t>(matrices.positions.size()),
            .height = matrices.height,
            .width = matrices.width};
  }

 private:
  static std::size_t pitch_of(const ImageView& picture) {
    constexpr std::size_t alignment = 256;  // rows start at whole cache lines
    const std::size_t bytes = std::max(picture.width, 0) * size_of(picture.type);
    return (bytes + alignment - 1) / alignment * alignment;
  }

  void upload_pictures(std::span<const ImageView> pictures, const kernels::Stream& stream) {
    std::size_t bytes = 0;
    for (const ImageView& p : pictures) bytes += pitch_of(p) * std::max(p.height, 0);
    auto* target = static_cast<std::byte*>(pixels_.reserve(bytes));
    kernels::fill(target, 0, bytes,
                  stream.handle());  // kernels read whole words, beyond the ends of rows too
    std::vector<kernels::DevicePicture> descriptions;
    for (const ImageView& p : pictures) {
      const std::size_t pitch = pitch_of(p);
      if (p.empty()) {
        descriptions.push_back({});
        continue;
      }
      upload_rows(target, pitch, p, stream);
      descriptions.push_back({target, static_cast<std::ptrdiff_t>(pitch), p.width, p.height});
      target += pitch * p.height;
    }
    const std::size_t table = descriptions.size() * sizeof(kernels::DevicePicture);
    kernels::upload(descriptions_.reserve(table), descriptions.data(), table, stream);
  }

  static void upload_rows(std::byte* target, std::size_t pitch, const ImageView& p,
                          const kernels::Stream& stream) {
    const std::size_t row = p.width * size_of(p.type);
    if (p.row_bytes >= static_cast<std::ptrdiff_t>(row)) {
      kernels::upload(target, pitch, p.data, p.row_bytes, row, p.height, stream);
      return;
    }
    // Rows that overlap or run upwards: the 2-D copy takes neither.
    for (int y = 0; y < p.height; ++y) kernels::upload(target + y * pitch, p.row<std::byte>(y), row, stream);
  }

  DeviceBuffer pixels_, descriptions_, positions_;
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const kernels::Device& device)
      : device_(device.index),
        facts_{.backend = "cuda", .threads = 1, .compute_capability = device.compute_capability} {}

  const DeviceFacts& facts() const override { return facts_; }
  double kernel_seconds() const override { return kernel_seconds_; }

  void surfaces(const Job& job, const std::string& name, Surfaces& out) override {
    const kernels::DeviceScope scope(device_);
    const NccVariant& variant = *find(name);
    const NccJob whole = upload(job);
    const std::size_t output_bytes = job.shifts.count() * kernels::size_of(out.type);
    for_parts(whole, name, surface_bytes(whole), [&](const NccJob& part) {
      const void* result = job.measure == Measure::sums
                               ? sums(variant, part)
                               : scores(variant, part, job.measure, kernels::ScoreKind::value);
      download(out.bytes.data() + part.first_pair * output_bytes, result, part.pairs * output_bytes);
    });
  }

  void peaks(const Job& job, const std::string& name, std::span<Peak> out) override {
    const kernels::DeviceScope scope(device_);
    const NccVariant& variant = *find(name);
    const NccJob whole = upload(job);
    const bool fused = variant.fused && variant.fused->fits(whole, true);
    const std::size_t bytes_per_pair = sizeof(Peak) + (fused ? 0 : surface_bytes(whole));
    for_parts(whole, name, bytes_per_pair, [&](const NccJob& part) {
      auto* found = static_cast<Peak*>(peaks_.reserve(part.pairs * sizeof(Peak)));
      kernels::fill(found, 0, part.pairs * sizeof(Peak), stream_.handle());  // what lies between the fields
      if (fused)
        variant.fused->launch_peaks(part, job.measure, found, stream_.handle());
      else
        kernels::launch_peaks(part, job.measure,
                              scores(variant, part, job.measure, kernels::ScoreKind::score), found,
                              workspace_.reserve(kernels::peaks_workspace_bytes(part)), stream_.handle());
      download(out.data() + part.first_pair, found, part.pairs * sizeof(Peak));
    });
  }

 private:
  /// The job with its data on the device.
  NccJob upload(const Job& job) {
    NccJob whole = job_of(job.shape());
    whole.reference = reference_.upload(job.reference, stream_);
    whole.search = search_.upload(job.search, stream_);
    kernel_seconds_ = 0;
    watch_.start(stream_);
    return whole;
  }

  /// Sums and scores of one pair.
  static std::size_t surface_bytes(const NccJob& job) {
    return job.shifts.count() * (kernels::size_of(job.sums) + sizeof(float));
  }

  /// Calls body(part) for parts of the job that fit into the memory, and waits for each.
  template <typename Body>
  void for_parts(const NccJob& whole, const std::string& name, std::size_t bytes_per_pair, Body&& body) {
    const std::size_t available = kernels::free_memory() + sums_.size() + scores_.size();
    const std::int64_t pairs_at_once =
        std::max<std::int64_t>(1, std::min(most_surface_bytes, available / 2) / bytes_per_pair);
    for (std::int64_t first = 0; first < whole.pairs; first += pairs_at_once) {
      NccJob part = whole;
      part.first_pair = first;
      part.pairs = std::min(pairs_at_once, whole.pairs - first);
      body(part);
      stream_.synchronize(kernels::describe(name, part));
      kernel_seconds_ += watch_.seconds();
      watch_.start(stream_);
    }
  }

  /// Fetches what the kernels of a part have computed.
  void download(void* host, const void* device, std::size_t bytes) {
    watch_.stop(stream_);
    kernels::download(host, device, bytes, stream_);
  }

  const void* sums(const NccVariant& variant, const NccJob& part) {
    void* out = sums_.reserve(part.outputs() * kernels::size_of(part.sums));
    kernels::launch_ncc(variant, part, out, stream_.handle());
    return out;
  }

  const float* scores(const NccVariant& variant, const NccJob& part, Measure measure,
                      kernels::ScoreKind kind) {
    auto* out = static_cast<float*>(scores_.reserve(part.outputs() * sizeof(float)));
    if (variant.fused && variant.fused->fits(part, false)) {
      variant.fused->launch_scores(part, measure, kind, out, stream_.handle());
      return out;
    }
    void* moments = moments_.reserve(part.reference.count * kernels::moments_bytes);
    if (part.first_pair == 0) kernels::launch_reference_moments(part, moments, stream_.handle());
    kernels::launch_scores(part, measure, kind, sums(variant, part), moments, out, stream_.handle());
    return out;
  }

  int device_;
  DeviceFacts facts_;
  kernels::Stream stream_;
  kernels::Stopwatch watch_;
  double kernel_seconds_ = 0;
  DeviceSide reference_, search_;
  DeviceBuffer moments_, sums_, scores_, workspace_, peaks_;
};

std::unique_ptr<Backend> open(int ordinal, int) {
  const kernels::Device device = kernels::find_device(ordinal);
  const kernels::DeviceScope scope(device.index);
  return std::make_unique<CudaBackend>(device);
}

}  // namespace

BackendEntry cuda_backend() { return {"cuda", variants, problem, plan, open}; }

}  // namespace dic::correlate

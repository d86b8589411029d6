#pragma once

#include <cstdint>
#include <dic/correlate.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dic::core {
class ThreadPool;
}

/// The interface of the backends (CPU, CUDA, OpenCL). `Correlator` checks a request once, makes a `Job` of it
/// and passes that to its backend. Listing, checks, planning and dispatch all use the table that `backends()`
/// returns, so that they agree.
namespace dic::correlate {

/// Type of the sums of products of images of this type; see Surfaces.
Surfaces::Type sum_type(ScalarType type);

/// Indices of the reference and the window of one pair of a job.
struct Pair {
  std::int64_t reference = 0;
  std::int64_t window = 0;
};

/// Pairs begin .. end - 1 of a job.
struct PairRange {
  std::int64_t begin = 0, end = 0;
};

/// A request that has been checked: one element type, sizes and counts that agree with the pairing,
/// references and masks inside their images, shifts of moderate size. Windows may lie partly or wholly
/// outside. Spans belong to the caller and live until the call returns.
struct Job {
  Pairing pairing = Pairing::one_to_one;
  Patches reference;
  Patches search;
  Shifts shifts;  ///< may be empty (count() == 0)
  Criterion criterion = Criterion::zncc;
  std::span<const ImageView> mask;  ///< empty, or one u8 image per reference image
  ScalarType type = ScalarType::u8;
  int bit_depth = 0;                 ///< significant bits; see CorrelateShape
  std::optional<float> least_score;  ///< see CorrelateRequest
  std::stop_token stop;              ///< see CorrelateRequest
  std::int64_t references = 0;
  std::int64_t windows = 0;
  std::int64_t pairs = 0;

  Pair pair(std::int64_t k) const;
  CorrelateShape shape() const;
};

/// Checks a request; throws UsageError.
Job check_request(const CorrelateRequest& request);

/// Runs jobs on one device. One call at a time.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const DeviceProperties& properties() const = 0;
  /// Seconds of the last call; see Correlator::device_seconds.
  virtual DeviceSeconds device_seconds() const { return {}; }
  /// See Correlator::repeat_kernels: 1 or more times. Backends without timing ignore it.
  virtual void repeat_kernels(std::int64_t) {}
  /// `out` arrives with type, sizes and bytes set (contents undefined); every element must be written.
  virtual void surfaces(const Job& job, const std::string& variant, Surfaces& out) = 0;
  /// `out` has job.pairs elements, each a fresh Peak{}. job.criterion is not cross_correlation.
  virtual void peaks(const Job& job, const std::string& variant, std::span<Peak> out) = 0;
};

/// Entry of a backend in the table of this build.
struct BackendEntry {
  std::string_view name;  ///< "cpu", "cuda", "opencl": the beginning of a device string
  const std::vector<CorrelateVariant>& (*variants)();  ///< every variant; empty if the backend is not built
  /// Why a variant does not support a job of this shape, beyond what its CorrelateVariant says: one sentence,
  /// or empty.
  std::string (*unsupported_reason)(std::string_view variant, const CorrelateShape& shape);
  /// Chooses one of `variants()`; a pure function. At least one of them supports the shape.
  CorrelatePlan (*plan)(const CorrelateShape& shape, const DeviceProperties& device);
  /// Opens the devices with these numbers; an empty list means all of them. pool: for loops on the CPU, lives
  /// longer. Throws DeviceError.
  std::unique_ptr<Backend> (*open)(std::span<const int> ordinals, core::ThreadPool& pool);
};

BackendEntry cpu_backend();
/// A build defines this function in exactly one file: cuda/backend_cuda.cpp or cuda/backend_cuda_stub.cpp.
BackendEntry cuda_backend();
/// A build defines this function in exactly one file: opencl/backend_opencl.cpp or
/// opencl/backend_opencl_stub.cpp.
BackendEntry opencl_backend();

/// All backends.
std::span<const BackendEntry> backends();
/// The backend with this name; throws UsageError if there is none.
const BackendEntry& backend_named(std::string_view name);

/// Why `variant` of `backend` does not support the job: one sentence, or empty if it does.
std::string unsupported_reason(const BackendEntry& backend, std::string_view variant,
                               const CorrelateShape& shape);

/// The best shift of a packed ny x nx surface of scores by the rules of `Peak`. Scores are larger-is-better
/// (ssd: negated); -infinity marks a shift that is not defined. Values in the result have the criterion's
/// sign.
Peak extract_peak(const float* scores, const Shifts& shifts, Criterion criterion);
/// Converts a score to a surface's value: with the criterion's sign, and its value for an undefined shift.
inline float score_to_value(float score, Criterion criterion) {
  const bool undefined = score == -std::numeric_limits<float>::infinity();
  if (criterion == Criterion::ssd) return undefined ? std::numeric_limits<float>::max() : -score;
  return undefined ? 0.0F : score;
}

}  // namespace dic::correlate

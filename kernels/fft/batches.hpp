#pragma once

#include <algorithm>
#include <cstdint>

#include "common/host_device.hpp"

/// Division of a job of cuda-fft into batches of transforms, and lengths of transforms.
namespace dic::kernels {

/// Smallest product of 2, 3, 5 and 7 that is at least `least` and a multiple of 4 (beyond 64: of 16, which
/// makes transforms faster).
inline int fft_length(int least) {
  const auto is_smooth = [](int n) {
    for (const int prime : {2, 3, 5, 7})
      while (n % prime == 0) n /= prime;
    return n == 1;
  };
  const int step = least > 64 ? 16 : 4;
  int length = (least + step - 1) / step * step;
  while (!is_smooth(length)) length += step;
  return length;
}

/// The pairs of one batch, with their references and windows. Indices count from the start of the whole job.
struct FftBatch {
  std::int64_t first_pair, pairs;
  std::int64_t first_reference, references;
  std::int64_t first_window, windows;
};

/// Cuts the pairs first .. first + pairs - 1 of a job, m per reference, into batches: some references with
/// all their windows, or some windows of one reference. A batch has `slots()` places for spectra: for its
/// references, for its windows and, if several references share the same windows, for its products. Otherwise
/// products overwrite the windows.
class FftBatches {
 public:
  /// shared: all references have the same m windows. most_slots: number of slots that fit into memory, at
  /// least 2.
  FftBatches(std::int64_t first, std::int64_t pairs, std::int64_t m, bool shared, std::int64_t most_slots)
      : first_(first), last_(first + pairs - 1), m_(m), shared_(shared) {
    const std::int64_t all = last_ / m - first / m + 1;
    // With shared windows, k references need k + m + k m places, otherwise k + k m.
    const std::int64_t fit = shared && all > 1 ? (most_slots - m) / (m + 1) : most_slots / (m + 1);
    references_ = fit > 0 ? balanced(all, fit) : 1;
    windows_ = fit > 0 ? m : balanced(m, std::max<std::int64_t>(most_slots - 1, 1));
    if (all == 1) windows_ = std::min(windows_, pairs);
  }

  std::int64_t references() const { return references_; }
  std::int64_t windows() const { return has_products() ? m_ : pairs(); }
  std::int64_t pairs() const { return references_ * windows_; }
  /// True if products have places of their own.
  bool has_products() const { return shared_ && references_ > 1; }
  std::int64_t slots() const { return references_ + windows() + (has_products() ? pairs() : 0); }

  /// Calls body(batch) for all batches in order.
  template <typename Body>
  void for_each(Body&& body) const {
    for (std::int64_t first = first_; first <= last_;) {
      const FftBatch batch = batch_from(first);
      body(batch);
      first += batch.pairs;
    }
  }

 private:
  /// Size of the parts if `total` is divided into as few parts of at most `most` as possible; all but the
  /// last one have this size.
  static std::int64_t balanced(std::int64_t total, std::int64_t most) {
    const std::int64_t parts = (total + most - 1) / most;
    return (total + parts - 1) / parts;
  }

  FftBatch batch_from(std::int64_t first) const {
    const std::int64_t reference = first / m_;
    const std::int64_t end =
        windows_ < m_ ? std::min(first + windows_, (reference + 1) * m_) : (reference + references_) * m_;
    const std::int64_t last = std::min(end - 1, last_);
    const FftBatch batch{first, last - first + 1, reference, last / m_ - reference + 1, first, 0};
    return with_windows(batch);
  }
  FftBatch with_windows(FftBatch batch) const {
    batch.windows = has_products() ? m_ : batch.pairs;
    if (shared_) batch.first_window = has_products() ? 0 : batch.first_pair % m_;
    return batch;
  }

  std::int64_t first_, last_, m_;
  bool shared_;
  std::int64_t references_ = 1, windows_ = 1;
};

}  // namespace dic::kernels

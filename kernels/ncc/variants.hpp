#pragma once

#include <concepts>
#include <dic/kernels/ncc.hpp>

/// Concepts that variants model, and the variants that have limits or fused scores. The registry
/// (registry.cpp) makes a VariantOperations of each. All launches expect a job that the variant supports and
/// that has outputs.
namespace dic::kernels {

/// Variants that queue sums of products: out[pair, dy, dx].
template <typename V>
concept ComputesSums = requires(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  { V::launch_sums(job, out, workspace, stream) } -> std::same_as<void>;
};

/// Variants that compute scores and peaks straight from the images: see ScoreFusion.
template <typename V>
concept FusesScores = requires(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                               Peak* peaks, Workspace& workspace, StreamHandle stream) {
  { V::fits(job, FusedOutput::scores) } -> std::same_as<bool>;
  { V::launch_scores(job, criterion, kind, scores, workspace, stream) } -> std::same_as<void>;
  { V::launch_peaks(job, criterion, peaks, workspace, stream) } -> std::same_as<void>;
};

/// Variants with limits beyond types and pairing: unsupported_reason is one sentence, or empty.
template <typename V>
concept HasLimits = requires(const NccJob& job) {
  { V::unsupported_reason(job) } -> std::same_as<std::string>;
};

/// Variants of which a block may need more shared memory than every device has.
template <typename V>
concept NeedsSharedMemory = requires(const NccJob& job) {
  { V::shared_bytes(job) } -> std::same_as<int>;
};

template <typename V>
concept Variant = ComputesSums<V> || FusesScores<V>;

/// A variant that is one launch without memory of its own.
template <void (*launch)(const NccJob& job, void* out, StreamHandle stream)>
struct SumsOnly {
  static void launch_sums(const NccJob& job, void* out, Workspace&, StreamHandle stream) {
    launch(job, out, stream);
  }
};

// simt/
void launch_block_per_shift(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_simple(const NccJob& job, void* out, StreamHandle stream);
void launch_registers(const NccJob& job, void* out, StreamHandle stream);

struct F32Scores {
  static std::string unsupported_reason(const NccJob& job);
  static int shared_bytes(const NccJob& job);
  static bool fits(const NccJob& job, FusedOutput output);
  static void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                            Workspace& workspace, StreamHandle stream);
  static void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                           StreamHandle stream);
};

// tensor/
struct FewShifts {
  static std::string unsupported_reason(const NccJob& job);
  static bool fits(const NccJob&, FusedOutput) { return true; }
  static void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                            Workspace& workspace, StreamHandle stream);
  static void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                           StreamHandle stream);
};

struct U8Tensor {
  static std::string unsupported_reason(const NccJob& job);
  static int shared_bytes(const NccJob& job);
  static void launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
  static bool fits(const NccJob& job, FusedOutput output);
  static void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                            Workspace& workspace, StreamHandle stream);
  static void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                           StreamHandle stream);
};

struct U16Tensor {
  static std::string unsupported_reason(const NccJob& job);
  static int shared_bytes(const NccJob& job);
  static void launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
  static bool fits(const NccJob& job, FusedOutput output);
  static void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                            Workspace& workspace, StreamHandle stream);
  static void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                           StreamHandle stream);
};

struct F16Tensor {
  static std::string unsupported_reason(const NccJob& job);
  static int shared_bytes(const NccJob& job);
  static bool fits(const NccJob& job, FusedOutput output);
  static void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                            Workspace& workspace, StreamHandle stream);
  static void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                           StreamHandle stream);
};

struct F32Tensor {
  static std::string unsupported_reason(const NccJob& job);
  static int shared_bytes(const NccJob& job);
  static bool fits(const NccJob& job, FusedOutput output);
  static void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                            Workspace& workspace, StreamHandle stream);
  static void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                           StreamHandle stream);
};

// masked/
struct Masked {
  static std::string unsupported_reason(const NccJob& job);
  static void launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
  static bool fits(const NccJob&, FusedOutput) { return true; }
  static void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                            Workspace& workspace, StreamHandle stream);
  static void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                           StreamHandle stream);
};

// fft/ (a folder beside ncc/)
struct Fft {
  static std::string unsupported_reason(const NccJob& job);
  static void launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
};
struct FftSplit {
  static std::string unsupported_reason(const NccJob& job);
  static void launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
};
struct FftFused {
  static std::string unsupported_reason(const NccJob& job);
  static void launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
};

}  // namespace dic::kernels

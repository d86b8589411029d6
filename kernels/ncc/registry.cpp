#include <algorithm>
#include <array>
#include <dic/shared/error.hpp>

#include "common/check.hpp"
#include "ncc/shuffle/variants.hpp"
#include "ncc/types.hpp"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr std::array all_pairings{Pairing::one_to_one, Pairing::one_to_many, Pairing::n_to_mn,
                                  Pairing::n_to_m};
constexpr std::array n_to_m_only{Pairing::n_to_m};
constexpr std::array all_types{ScalarType::u8, ScalarType::u16, ScalarType::i32, ScalarType::f32,
                               ScalarType::f64};

constexpr std::array u8_only{ScalarType::u8};
constexpr std::array u16_only{ScalarType::u16};
constexpr std::array f32_only{ScalarType::f32};
constexpr std::array fft_types{ScalarType::u8, ScalarType::u16, ScalarType::f32, ScalarType::f64};
constexpr std::array all_but_u8{ScalarType::u16, ScalarType::i32, ScalarType::f32, ScalarType::f64};

constexpr std::array all_criteria{Criterion::cross_correlation, Criterion::zncc, Criterion::ncc,
                                  Criterion::ssd};
constexpr std::array sums_only{Criterion::cross_correlation};
constexpr std::array scores_only{Criterion::zncc, Criterion::ncc, Criterion::ssd};
constexpr std::array zncc_only{Criterion::zncc};

// ---- Adapters from the concepts of variants.hpp to the interfaces of ncc.hpp ----

template <FusesScores V>
class FusionOf final : public ScoreFusion {
 public:
  bool fits(const NccJob& job, FusedOutput output) const override { return V::fits(job, output); }
  void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                     Workspace& workspace, StreamHandle stream) const override {
    V::launch_scores(job, criterion, kind, scores, workspace, stream);
  }
  void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                    StreamHandle stream) const override {
    V::launch_peaks(job, criterion, peaks, workspace, stream);
  }
};
template <FusesScores V>
constexpr FusionOf<V> fusion;

template <Variant V>
class OperationsOf final : public VariantOperations {
 public:
  std::string unsupported_reason(const NccJob& job) const override {
    if constexpr (HasLimits<V>) return V::unsupported_reason(job);
    return {};
  }
  int shared_bytes(const NccJob& job) const override {
    if constexpr (NeedsSharedMemory<V>) return V::shared_bytes(job);
    return 0;
  }
  bool computes_sums() const override { return ComputesSums<V>; }
  void launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) const override {
    if constexpr (ComputesSums<V>) V::launch_sums(job, out, workspace, stream);
  }
  const ScoreFusion* score_fusion() const override {
    if constexpr (FusesScores<V>) return &fusion<V>;
    return nullptr;
  }
};
template <Variant V>
constexpr OperationsOf<V> operations;

/// Makes a row of the registry. Does not compile if `criteria` and the launches of V disagree.
template <Variant V>
consteval NccVariant variant(const VariantTraits& traits) {
  const bool lists_sums =
      std::ranges::find(traits.criteria, Criterion::cross_correlation) != traits.criteria.end();
  if (lists_sums != ComputesSums<V>)
    throw "A variant lists cross_correlation if and only if it launches sums.";
  if (traits.criteria.empty() || traits.types.empty() || traits.pairings.empty()) throw "An empty list.";
  return NccVariant(traits, operations<V>);
}

// ---- The registry ----

/// Variant that supports everything except masks.
template <void (*launch)(const NccJob&, void*, StreamHandle)>
consteval NccVariant general(std::string_view name, std::string_view idea, bool repeatable) {
  return variant<SumsOnly<launch>>({.name = name,
                                    .idea = idea,
                                    .pairings = all_pairings,
                                    .types = all_types,
                                    .criteria = all_criteria,
                                    .repeatable = repeatable});
}

template <void (*launch)(const NccJob&, void*, StreamHandle)>
struct ImageSumsOnly : SumsOnly<launch> {
  static std::string unsupported_reason(const NccJob& job) {
    return ImageTypes::holds(job) ? "" : "This variant sums u8 in u32, u16 in u64 and f32 in f32.";
  }
};

/// Variant that computes sums of ImageTypes only.
template <void (*launch)(const NccJob&, void*, StreamHandle)>
consteval NccVariant special(std::string_view name, std::string_view idea, std::span<const Pairing> pairings,
                             bool repeatable) {
  return variant<ImageSumsOnly<launch>>({.name = name,
                                         .idea = idea,
                                         .pairings = pairings,
                                         .types = ImageTypes::elements,
                                         .criteria = sums_only,
                                         .repeatable = repeatable});
}

constexpr std::array variants{
    general<launch_basic>("cuda-basic",
                          "a thread sums one overlap: the naive kernel that others are compared with", true),
    general<launch_warp_shuffle>(
        "cuda-warp-shuffle",
        "a warp computes 32 neighbouring shifts; a window row rotates through its lanes, the reference is "
        "broadcast",
        true),
    general<launch_warp_shuffle_rectangle>(
        "cuda-warp-shuffle-rectangle",
        "cuda-warp-shuffle, overlaps divided into groups of rows, equally many groups for every shift",
        false),
    general<launch_warp_shuffle_triangle>(
        "cuda-warp-shuffle-triangle",
        "cuda-warp-shuffle, overlaps divided into groups of rows, exactly as many as there are", false),
    general<launch_multimat_right>(
        "cuda-multimat-right", "a reference row rotates through the lanes for up to 8 windows at once", true),
    general<launch_multimat_right_rectangle>(
        "cuda-multimat-right-rectangle",
        "cuda-multimat-right, overlaps divided into groups of rows, equally many groups for every shift",
        false),
    general<launch_multimat_right_triangle>(
        "cuda-multimat-right-triangle", "cuda-multimat-right, overlaps divided into groups of rows", false),
    special<launch_multimat_both>("cuda-multimat-both",
                                  "rows of 4 references rotate through the lanes for 4 windows at once",
                                  n_to_m_only, true),
    special<launch_multimat_both_rectangle>(
        "cuda-multimat-both-rectangle",
        "cuda-multimat-both, overlaps divided into groups of rows, equally many groups for every shift",
        n_to_m_only, false),
    special<launch_multimat_both_triangle>("cuda-multimat-both-triangle",
                                           "cuda-multimat-both, overlaps divided into groups of rows",
                                           n_to_m_only, false),
    special<launch_multirow_right>("cuda-multirow-right",
                                   "a reference row rotates through the lanes for 8 rows of shifts at once",
                                   all_pairings, true),
    special<launch_multirow_right_multimat_right>(
        "cuda-multirow-right-multimat-right",
        "a reference row rotates through the lanes for 2 rows of shifts of 4 windows", all_pairings, true),
    special<launch_multirow_both>("cuda-multirow-both",
                                  "4 reference rows rotate through the lanes for 8 rows of shifts",
                                  all_pairings, true),
    special<launch_multirow_both_multimat_right>(
        "cuda-multirow-both-multimat-right",
        "4 reference rows rotate through the lanes for 4 rows of shifts of 4 windows", all_pairings, true),
    special<launch_multirow_both_multimat_both>(
        "cuda-multirow-both-multimat-both",
        "4 rows of 2 references rotate through the lanes for 8 rows of shifts of 2 windows", n_to_m_only,
        true),
    general<launch_block_per_shift>("cuda-block-per-shift", "a block of 128 threads sums one overlap", true),
    general<launch_warp_per_shift>("cuda-warp-per-shift", "a warp sums one overlap, across row ends", true),
    general<launch_warp_per_shift_simple>("cuda-warp-per-shift-simple", "a warp sums one overlap, row by row",
                                          true),
    special<launch_warp_per_shift_rectangle>(
        "cuda-warp-per-shift-rectangle",
        "cuda-warp-per-shift, overlaps divided into groups of rows, equally many groups for every shift",
        all_pairings, false),
    special<launch_warp_per_shift_triangle>("cuda-warp-per-shift-triangle",
                                            "cuda-warp-per-shift, overlaps divided into groups of rows",
                                            all_pairings, false),
    special<launch_warp_per_shift_shared>(
        "cuda-warp-per-shift-shared",
        "a warp sums one overlap, 8 neighbouring ones from the same rows in shared memory", all_pairings,
        true),
    special<launch_warp_per_shift_shared_continuous>(
        "cuda-warp-per-shift-shared-continuous",
        "cuda-warp-per-shift-shared, a warp loads a stretch of rows instead of every 8th", all_pairings,
        true),
    special<launch_warp_per_shift_shared_multimat_right>(
        "cuda-warp-per-shift-shared-multimat-right",
        "cuda-warp-per-shift-shared, the reference's rows serve 4 windows", all_pairings, true),
    special<launch_warp_per_shift_shared_columns>(
        "cuda-warp-per-shift-shared-columns",
        "cuda-warp-per-shift-shared, a block per 64 columns of an overlap", all_pairings, false),
    variant<SumsOnly<launch_registers>>({.name = "cuda-registers",
                                         .idea = "a thread computes a tile of up to 33 shifts in registers; "
                                                 "threads share the rows of large tiles",
                                         .pairings = all_pairings,
                                         .types = all_but_u8,
                                         .criteria = all_criteria}),
    variant<SumsOnly<launch_registers>>({.name = "cuda-dp4a",
                                         .idea = "cuda-registers with four 8-bit products in an instruction",
                                         .pairings = all_pairings,
                                         .types = u8_only,
                                         .criteria = all_criteria}),
    variant<F32Scores>({.name = "cuda-f32-scores",
                        .idea = "cuda-registers about the means of reference and window, for scores",
                        .pairings = all_pairings,
                        .types = f32_only,
                        .criteria = zncc_only}),
    variant<FewShifts>({.name = "cuda-few-shifts",
                        .idea =
                            "a warp per pair: rows of window and reference are multiplied on tensor cores, "
                            "the diagonals of the products are the shifts; exact scores",
                        .pairings = all_pairings,
                        .types = u8_only,
                        .criteria = scores_only}),
    variant<U8Tensor>({.name = "cuda-u8-tensor",
                       .idea = "8-bit products on tensor cores, exact; for shifts that lie inside the window",
                       .pairings = all_pairings,
                       .types = u8_only,
                       .criteria = all_criteria}),
    variant<U16Tensor>({.name = "cuda-u16-tensor",
                        .idea =
                            "16-bit products as four products of bytes on tensor cores, exact; for shifts "
                            "that lie inside the window",
                        .pairings = all_pairings,
                        .types = u16_only,
                        .criteria = all_criteria}),
    variant<F16Tensor>({.name = "cuda-f16-tensor",
                        .idea =
                            "scores of images of up to 12 bit from half floats on tensor cores; for shifts "
                            "that lie inside the window",
                        .pairings = all_pairings,
                        .types = u16_only,
                        .criteria = zncc_only}),
    variant<F32Tensor>({.name = "cuda-f32-tensor",
                        .idea =
                            "scores of float images from two half floats for each element on tensor cores; "
                            "for shifts that lie inside the window",
                        .pairings = all_pairings,
                        .types = f32_only,
                        .criteria = zncc_only}),
    variant<Masked>({.name = "cuda-masked",
                     .idea = "references of which only some elements count: products by the fastest variant, "
                             "sums of the window from running sums along its rows",
                     .pairings = all_pairings,
                     .types = all_types,
                     .criteria = all_criteria,
                     .supports_masks = true}),
    variant<FftFused>({.name = "cuda-fft-fused",
                       .idea = "transforms of up to 128x128 in shared memory, from pixels to sums",
                       .pairings = all_pairings,
                       .types = f32_only,
                       .criteria = sums_only,
                       .sum_error = SumError::norms}),
    variant<FftSplit>(
        {.name = "cuda-fft-split",
         .idea = "transforms of up to 512x512 in three kernels: rows, columns with the product, rows",
         .pairings = all_pairings,
         .types = f32_only,
         .criteria = sums_only,
         .sum_error = SumError::norms}),
    variant<Fft>({.name = "cuda-fft",
                  .idea = "pads, transforms by cuFFT, multiplies, crops; integers exactly, through f64",
                  .pairings = all_pairings,
                  .types = fft_types,
                  .criteria = all_criteria,
                  .sum_error = SumError::norms,
                  .needs_cufft = true}),
};

std::string size_text(int height, int width) { return std::to_string(height) + "x" + std::to_string(width); }

}  // namespace

std::span<const NccVariant> ncc_variants() { return variants; }

const NccVariant& ncc_variant(std::string_view name) {
  const auto found = std::ranges::find(variants, name, &NccVariant::name);
  if (found == variants.end())
    throw UsageError("There is no correlation variant \"" + std::string(name) + "\".");
  return *found;
}

std::string describe(std::string_view kernel, const NccJob& job) {
  return std::string(kernel) + " (" + std::to_string(job.pairs) + " pairs, " +
         std::string(to_string(job.type)) + ", reference " +
         size_text(job.reference.height, job.reference.width) + ", window " +
         size_text(job.search.height, job.search.width) + ", " + size_text(job.shifts.ny(), job.shifts.nx()) +
         " shifts)";
}

std::string NccVariant::unsupported_reason(const NccJob& job) const {
  const std::string text(name);
  if (std::ranges::find(types, job.type) == types.end())
    return text + " does not take " + std::string(to_string(job.type)) + " images.";
  if (std::ranges::find(pairings, job.pairing) == pairings.end())
    return text + " does not do the pairing " + std::string(to_string(job.pairing)) + ".";
  if (!AllTypes::holds(job)) return text + " cannot sum " + std::string(to_string(job.type)) + " that way.";
  if (job.shifts.count() > 0x7fffffff) return text + " does at most 2^31 - 1 shifts per pair.";
  return operations_->unsupported_reason(job);
}

std::string NccVariant::unavailable_reason() const { return needs_cufft ? cufft_problem() : std::string(); }

void launch_ncc(const NccVariant& variant, const NccJob& job, void* out, Workspace& workspace,
                StreamHandle stream) {
  if (const std::string reason = variant.unavailable_reason(); !reason.empty()) throw UsageError(reason);
  if (const std::string reason = variant.unsupported_reason(job); !reason.empty()) throw UsageError(reason);
  if (!variant.computes_sums()) throw UsageError(std::string(variant.name) + " computes scores only.");
  if (job.outputs() == 0) return;
  variant.operations_->launch_sums(job, out, workspace, stream);
  check_launch(describe(variant.name, job));
}

}  // namespace dic::kernels

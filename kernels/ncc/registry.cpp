#include <algorithm>
#include <array>
#include <dic/error.hpp>

#include "common/check.hpp"
#include "ncc/types.hpp"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr std::array all_forms{Pairing::one_to_one, Pairing::one_to_many, Pairing::n_to_mn, Pairing::n_to_m};
constexpr std::array n_to_m_only{Pairing::n_to_m};
constexpr std::array all_types{ScalarType::u8, ScalarType::u16, ScalarType::i32, ScalarType::f32,
                               ScalarType::f64};

constexpr std::array u8_only{ScalarType::u8};
constexpr std::array u16_only{ScalarType::u16};
constexpr std::array f32_only{ScalarType::f32};
constexpr std::array fft_types{ScalarType::u8, ScalarType::u16, ScalarType::f32, ScalarType::f64};
constexpr std::array all_but_u8{ScalarType::u16, ScalarType::i32, ScalarType::f32, ScalarType::f64};

constexpr std::array all_measures{Criterion::cross_correlation, Criterion::zncc, Criterion::ncc,
                                  Criterion::ssd};
constexpr std::array sums_only{Criterion::cross_correlation};
constexpr std::array scores_only{Criterion::zncc, Criterion::ncc, Criterion::ssd};
constexpr std::array zncc_only{Criterion::zncc};

constexpr FusedScores masked_fused{[](const NccJob&, bool) { return true; }, launch_masked_scores,
                                   launch_masked_peaks};
constexpr FusedScores f32_fused{f32_scores_fit, launch_f32_scores, launch_f32_peaks};
constexpr FusedScores few_shifts_fused{few_shifts_fit, launch_few_shifts_scores, launch_few_shifts_peaks};
constexpr FusedScores u8_tensor_fused{u8_tensor_scores_fit, launch_u8_tensor_scores, launch_u8_tensor_peaks};
constexpr FusedScores u16_tensor_fused{u16_tensor_scores_fit, launch_u16_tensor_scores,
                                       launch_u16_tensor_peaks};
constexpr FusedScores f16_tensor_fused{f16_tensor_scores_fit, launch_f16_tensor_scores,
                                       launch_f16_tensor_peaks};

constexpr FusedScores f32_tensor_fused{f32_tensor_scores_fit, launch_f32_tensor_scores,
                                       launch_f32_tensor_peaks};

constexpr NccVariant general(std::string_view name, std::string_view idea, bool repeatable,
                             void (*launch)(const NccJob&, void*, StreamHandle)) {
  return {name, idea, all_forms, all_types, all_measures, repeatable, nullptr, launch};
}

std::string refuses_wide_sums(const NccJob& job) {
  return ImageTypes::holds(job) ? "" : "The sums that this variant gives are u32 for u8, f32 for f32.";
}

/// A variant of ImageTypes alone, for sums.
constexpr NccVariant special(std::string_view name, std::string_view idea, std::span<const Pairing> pairings,
                             bool repeatable, void (*launch)(const NccJob&, void*, StreamHandle)) {
  return {name, idea, pairings, ImageTypes::elements, sums_only, repeatable, refuses_wide_sums, launch};
}

constexpr std::array variants{
    general("cuda-basic", "a thread sums one overlap: the yardstick", true, launch_basic),
    general("cuda-warp-shuffle",
            "a warp computes 32 neighbouring shifts; a window row turns through its lanes, the reference is "
            "broadcast",
            true, launch_warp_shuffle),
    general("cuda-warp-shuffle-rectangle",
            "cuda-warp-shuffle, overlaps cut into groups of rows, equally many groups for every shift", false,
            launch_warp_shuffle_rectangle),
    general("cuda-warp-shuffle-triangle",
            "cuda-warp-shuffle, overlaps cut into groups of rows, exactly as many as there are", false,
            launch_warp_shuffle_triangle),
    general("cuda-multimat-right", "a reference row turns through the lanes for up to 8 windows at once",
            true, launch_multimat_right),
    general("cuda-multimat-right-rectangle",
            "cuda-multimat-right, overlaps cut into groups of rows, equally many groups for every shift",
            false, launch_multimat_right_rectangle),
    general("cuda-multimat-right-triangle", "cuda-multimat-right, overlaps cut into groups of rows", false,
            launch_multimat_right_triangle),
    special("cuda-multimat-both", "rows of 4 references turn through the lanes for 4 windows at once",
            n_to_m_only, true, launch_multimat_both),
    special("cuda-multimat-both-rectangle",
            "cuda-multimat-both, overlaps cut into groups of rows, equally many groups for every shift",
            n_to_m_only, false, launch_multimat_both_rectangle),
    special("cuda-multimat-both-triangle", "cuda-multimat-both, overlaps cut into groups of rows",
            n_to_m_only, false, launch_multimat_both_triangle),
    special("cuda-multirow-right", "a reference row turns through the lanes for 8 rows of shifts at once",
            all_forms, true, launch_multirow_right),
    special("cuda-multirow-right-multimat-right",
            "a reference row turns through the lanes for 2 rows of shifts of 4 windows", all_forms, true,
            launch_multirow_right_multimat_right),
    special("cuda-multirow-both", "4 reference rows turn through the lanes for 8 rows of shifts", all_forms,
            true, launch_multirow_both),
    special("cuda-multirow-both-multimat-right",
            "4 reference rows turn through the lanes for 4 rows of shifts of 4 windows", all_forms, true,
            launch_multirow_both_multimat_right),
    special("cuda-multirow-both-multimat-both",
            "4 rows of 2 references turn through the lanes for 8 rows of shifts of 2 windows", n_to_m_only,
            true, launch_multirow_both_multimat_both),
    general("cuda-block-per-shift", "a block of 128 threads sums one overlap", true, launch_block_per_shift),
    general("cuda-warp-per-shift", "a warp sums one overlap, across row ends", true, launch_warp_per_shift),
    general("cuda-warp-per-shift-simple", "a warp sums one overlap, row by row", true,
            launch_warp_per_shift_simple),
    special("cuda-warp-per-shift-rectangle",
            "cuda-warp-per-shift, overlaps cut into groups of rows, equally many groups for every shift",
            all_forms, false, launch_warp_per_shift_rectangle),
    special("cuda-warp-per-shift-triangle", "cuda-warp-per-shift, overlaps cut into groups of rows",
            all_forms, false, launch_warp_per_shift_triangle),
    special("cuda-warp-per-shift-shared",
            "a warp sums one overlap, 8 neighbouring ones from the same rows in shared memory", all_forms,
            true, launch_warp_per_shift_shared),
    special("cuda-warp-per-shift-shared-continuous",
            "cuda-warp-per-shift-shared, a warp loads a stretch of rows instead of every 8th", all_forms,
            true, launch_warp_per_shift_shared_continuous),
    special("cuda-warp-per-shift-shared-multimat-right",
            "cuda-warp-per-shift-shared, the reference's rows serve 4 windows", all_forms, true,
            launch_warp_per_shift_shared_multimat_right),
    special("cuda-warp-per-shift-shared-columns",
            "cuda-warp-per-shift-shared, a block per 64 columns of an overlap", all_forms, false,
            launch_warp_per_shift_shared_columns),
    NccVariant{
        "cuda-registers",
        "a thread computes a tile of up to 33 shifts in registers, threads share the rows of large tiles",
        all_forms, all_but_u8, all_measures, true, nullptr, launch_registers},
    NccVariant{"cuda-dp4a", "cuda-registers with four 8-bit products in an instruction", all_forms, u8_only,
               all_measures, true, nullptr, launch_registers},
    NccVariant{"cuda-f32-scores", "cuda-registers about the means of reference and window, for scores",
               all_forms, f32_only, zncc_only, true, refuses_f32_scores, nullptr, &f32_fused,
               f32_scores_shared_bytes},
    NccVariant{"cuda-few-shifts",
               "a warp per pair: rows of window and reference meet in products on tensor cores, whose "
               "diagonals are the shifts; exact scores",
               all_forms, u8_only, scores_only, true, refuses_few_shifts, nullptr, &few_shifts_fused},
    NccVariant{"cuda-u8-tensor",
               "8-bit products on tensor cores, exact; for shifts that lie inside the window", all_forms,
               u8_only, all_measures, true, refuses_u8_tensor, launch_u8_tensor, &u8_tensor_fused},
    NccVariant{
        "cuda-u16-tensor",
        "16-bit products as four products of bytes on tensor cores, exact; for shifts that lie inside the "
        "window",
        all_forms, u16_only, all_measures, true, refuses_u16_tensor, launch_u16_tensor, &u16_tensor_fused,
        u16_tensor_shared_bytes},
    NccVariant{
        "cuda-f16-tensor",
        "scores of images of up to 12 bit from half floats on tensor cores; for shifts that lie inside "
        "the window",
        all_forms, u16_only, zncc_only, true, refuses_f16_tensor, nullptr, &f16_tensor_fused,
        f16_tensor_shared_bytes},
    NccVariant{
        "cuda-f32-tensor",
        "scores of float images from two half floats for each element on tensor cores; for shifts that lie "
        "inside the window",
        all_forms, f32_only, zncc_only, true, refuses_f32_tensor, nullptr, &f32_tensor_fused,
        f32_tensor_shared_bytes},
    NccVariant{.name = "cuda-masked",
               .idea =
                   "references of which only some elements count: products by the fastest variant, sums of "
                   "the window from running sums along its rows",
               .pairings = all_forms,
               .types = all_types,
               .criteria = all_measures,
               .refuses = refuses_masked,
               .fused = &masked_fused,
               .launch_in = launch_masked_sums,
               .masks = true},
    NccVariant{.name = "cuda-fft-fused",
               .idea = "transforms of up to 128x128 in shared memory, from pixels to sums",
               .pairings = all_forms,
               .types = f32_only,
               .criteria = sums_only,
               .refuses = refuses_fft_fused,
               .error = SumError::norms,
               .launch_in = launch_fft_fused},
    NccVariant{.name = "cuda-fft-split",
               .idea = "transforms of up to 512x512 in three kernels: rows, columns with the product, rows",
               .pairings = all_forms,
               .types = f32_only,
               .criteria = sums_only,
               .refuses = refuses_fft_split,
               .error = SumError::norms,
               .launch_in = launch_fft_split},
    NccVariant{.name = "cuda-fft",
               .idea = "pads, transforms by cuFFT, multiplies, crops; integers exactly, through f64",
               .pairings = all_forms,
               .types = fft_types,
               .criteria = all_measures,
               .refuses = refuses_fft,
               .error = SumError::norms,
               .launch_in = launch_fft,
               .lacks = cufft_problem},
};

std::string size_text(int height, int width) { return std::to_string(height) + "x" + std::to_string(width); }

}  // namespace

std::span<const NccVariant> ncc_variants() { return variants; }

std::size_t size_of(Surfaces::Type type) {
  return type == Surfaces::Type::u32 || type == Surfaces::Type::f32 ? 4 : 8;
}

std::string describe(std::string_view kernel, const NccJob& job) {
  return std::string(kernel) + " (" + std::to_string(job.pairs) + " pairs, " +
         std::string(to_string(job.type)) + ", reference " +
         size_text(job.reference.height, job.reference.width) + ", window " +
         size_text(job.search.height, job.search.width) + ", " + size_text(job.shifts.ny(), job.shifts.nx()) +
         " shifts)";
}

std::string refusal(const NccVariant& variant, const NccJob& job) {
  const std::string name(variant.name);
  if (std::ranges::find(variant.types, job.type) == variant.types.end())
    return name + " does not take " + std::string(to_string(job.type)) + " images.";
  if (std::ranges::find(variant.pairings, job.pairing) == variant.pairings.end())
    return name + " does not do this form.";
  if (!AllTypes::holds(job)) return name + " cannot sum " + std::string(to_string(job.type)) + " that way.";
  if (job.shifts.count() > 0x7fffffff) return name + " does at most 2^31 - 1 shifts per pair.";
  return variant.refuses ? variant.refuses(job) : std::string();
}

std::string obstacle(const NccVariant& variant) { return variant.lacks ? variant.lacks() : std::string(); }

void launch_ncc(const NccVariant& variant, const NccJob& job, void* out, Workspace& workspace,
                StreamHandle stream) {
  if (const std::string reason = obstacle(variant); !reason.empty()) throw UsageError(reason);
  if (const std::string reason = refusal(variant, job); !reason.empty()) throw UsageError(reason);
  if (!variant.sums()) throw UsageError(std::string(variant.name) + " computes scores only.");
  if (job.outputs() == 0) return;
  if (variant.launch_in)
    variant.launch_in(job, out, workspace, stream);
  else
    variant.launch(job, out, stream);
  check_launch(describe(variant.name, job));
}

}  // namespace dic::kernels

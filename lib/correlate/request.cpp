#include <algorithm>
#include <cstdlib>
#include <dic/error.hpp>
#include <type_traits>

#include "correlate/backend.hpp"

namespace dic::correlate {
namespace {

// Keeps every sum of positions, sizes and shifts far inside int.
constexpr int kMaxExtent = 1 << 24;
// Keeps column sums of squared u8 inside 32 bits.
constexpr int kMaxReference = 1 << 15;

// The sentence is built only when it is needed: these checks run for every position of a batch.
template <typename Sentence>
void require(bool condition, const Sentence& sentence) {
  if (condition) return;
  if constexpr (std::is_invocable_v<Sentence>)
    throw UsageError(sentence());
  else
    throw UsageError(sentence);
}

std::int64_t ssize(const Matrices& matrices) { return static_cast<std::int64_t>(matrices.positions.size()); }

void check_pictures(const Matrices& matrices, ScalarType type, const std::string& side) {
  for (const ImageView& picture : matrices.pictures) {
    require(picture.type == type,
            "All pictures of a correlation must have one element type: convert the " + side + " pictures.");
    require(picture.empty() || picture.data, "A " + side + " picture has a size but no data.");
    require(picture.width <= kMaxExtent && picture.height <= kMaxExtent,
            "A " + side + " picture is larger than 16777216 px: cut it into parts.");
  }
  for (const MatrixPosition& at : matrices.positions) {
    require(at.picture >= 0 && at.picture < static_cast<std::int64_t>(matrices.pictures.size()), [&] {
      return "A " + side + " position names picture " + std::to_string(at.picture) + ", but there are " +
             std::to_string(matrices.pictures.size()) + ".";
    });
    require(std::abs(std::int64_t{at.x}) <= kMaxExtent && std::abs(std::int64_t{at.y}) <= kMaxExtent,
            [&] { return "A " + side + " position is more than 16777216 px away from the origin."; });
  }
}

void check_size(const Matrices& matrices, const std::string& side, int largest) {
  require(matrices.height >= 1 && matrices.width >= 1,
          "The " + side + " matrices need a height and a width of at least 1.");
  require(matrices.height <= largest && matrices.width <= largest,
          "The " + side + " matrices are larger than " + std::to_string(largest) + " px.");
}

void check_references_inside(const Matrices& reference) {
  for (const MatrixPosition& at : reference.positions) {
    const ImageView& picture = reference.pictures[at.picture];
    const bool inside = at.x >= 0 && at.y >= 0 && at.x + reference.width <= picture.width &&
                        at.y + reference.height <= picture.height;
    require(inside, [&] {
      return "The reference matrix at x = " + std::to_string(at.x) + ", y = " + std::to_string(at.y) +
             " does not lie inside its picture.";
    });
  }
}

void check_mask(std::span<const ImageView> mask, const Matrices& reference) {
  if (mask.empty()) return;
  require(mask.size() == reference.pictures.size(), "Give one mask per reference picture.");
  for (std::size_t i = 0; i < mask.size(); ++i)
    require(mask[i].type == ScalarType::u8 && mask[i].width == reference.pictures[i].width &&
                mask[i].height == reference.pictures[i].height,
            "A mask must be u8 and have the size of its reference picture.");
}

void check_shifts(const Shifts& shifts) {
  for (int bound : {shifts.dx_min, shifts.dx_max, shifts.dy_min, shifts.dy_max})
    require(std::abs(std::int64_t{bound}) <= kMaxExtent, "Shifts must lie within 16777216 px of zero.");
}

std::int64_t count_pairs(const Job& job) {
  const std::int64_t n = job.references, m = job.windows;
  switch (job.form) {
    case Form::one_to_one:
      require(n == m, "Form one_to_one needs as many windows as references.");
      return n;
    case Form::one_to_many:
      require(n == 1 || m == 0, "Form one_to_many needs exactly one reference.");
      return m;
    case Form::n_to_mn:
      require(n > 0 ? m % n == 0 : m == 0, "Form n_to_mn needs the same number of windows per reference.");
      return m;
    case Form::n_to_m:
      break;
  }
  return n * m;
}

/// Significant bits of the pictures of both sides; 0 where one may use all of its type.
int common_bit_depth(const Job& job) {
  int depth = 0;
  for (const std::span<const ImageView> pictures : {job.reference.pictures, job.search.pictures})
    for (const ImageView& picture : pictures) {
      if (picture.bit_depth == 0) return 0;
      depth = std::max(depth, picture.bit_depth);
    }
  return depth;
}

}  // namespace

Surfaces::Type sum_type(ScalarType type) {
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

Pair Job::pair(std::int64_t k) const {
  switch (form) {
    case Form::one_to_one:
      return {k, k};
    case Form::one_to_many:
      return {0, k};
    case Form::n_to_mn:
      return {k / (windows / references), k};
    case Form::n_to_m:
      break;
  }
  return {k / windows, k % windows};
}

CorrelateShape Job::shape() const {
  return {.form = form,
          .type = type,
          .measure = measure,
          .bit_depth = bit_depth,
          .ref_h = reference.height,
          .ref_w = reference.width,
          .search_h = search.height,
          .search_w = search.width,
          .shifts = shifts,
          .references = references,
          .pairs = pairs,
          .masked = !mask.empty()};
}

Job check_request(const CorrelateRequest& request) {
  Job job{.form = request.form,
          .reference = request.reference,
          .search = request.search,
          .shifts = request.shifts,
          .measure = request.measure,
          .mask = request.reference_mask};
  if (!job.reference.pictures.empty())
    job.type = job.reference.pictures[0].type;
  else if (!job.search.pictures.empty())
    job.type = job.search.pictures[0].type;
  job.references = ssize(job.reference);
  job.windows = ssize(job.search);
  check_pictures(job.reference, job.type, "reference");
  check_pictures(job.search, job.type, "search");
  job.bit_depth = common_bit_depth(job);
  check_shifts(job.shifts);
  check_mask(job.mask, job.reference);
  job.pairs = count_pairs(job);
  if (job.pairs == 0) return job;
  check_size(job.reference, "reference", kMaxReference);
  check_size(job.search, "search", kMaxExtent);
  check_references_inside(job.reference);
  return job;
}

}  // namespace dic::correlate

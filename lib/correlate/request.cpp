#include <algorithm>
#include <cstdlib>
#include <dic/error.hpp>
#include <type_traits>

#include "correlate/backend.hpp"

namespace dic::correlate {
namespace {

// Largest image size, position and shift; it keeps every sum of them far inside int.
constexpr int kMaxExtent = 1 << 24;
// Largest side of a reference; it keeps column sums of squared u8 inside 32 bits.
constexpr int kMaxReference = 1 << 15;

// Throws UsageError unless the condition holds. `sentence` may be a function, so that the text is built only
// on failure: these checks run for every position of a batch.
template <typename Sentence>
void require(bool condition, const Sentence& sentence) {
  if (condition) return;
  if constexpr (std::is_invocable_v<Sentence>)
    throw UsageError(sentence());
  else
    throw UsageError(sentence);
}

std::int64_t ssize(const Patches& patches) { return static_cast<std::int64_t>(patches.positions.size()); }

void check_images(const Patches& patches, ScalarType type, const std::string& role) {
  for (const ImageView& image : patches.images) {
    require(image.type == type,
            "All images of a correlation must have one element type: convert the " + role + " images.");
    require(image.empty() || image.data, "A " + role + " image has a size but no data.");
    require(image.width <= kMaxExtent && image.height <= kMaxExtent,
            "A " + role + " image is larger than 16777216 px: cut it into parts.");
  }
  for (const PatchPosition& at : patches.positions) {
    require(at.image >= 0 && at.image < static_cast<std::int64_t>(patches.images.size()), [&] {
      return "A " + role + " position names image " + std::to_string(at.image) + ", but there are " +
             std::to_string(patches.images.size()) + ".";
    });
    require(std::abs(std::int64_t{at.x}) <= kMaxExtent && std::abs(std::int64_t{at.y}) <= kMaxExtent,
            [&] { return "A " + role + " position is more than 16777216 px away from the origin."; });
  }
}

void check_size(const Patches& patches, const std::string& role, int largest) {
  require(patches.size.height >= 1 && patches.size.width >= 1,
          "The " + role + " patches need a width and a height of at least 1.");
  require(patches.size.height <= largest && patches.size.width <= largest,
          "The " + role + " patches are larger than " + std::to_string(largest) + " px.");
}

void check_references_inside(const Patches& reference) {
  for (const PatchPosition& at : reference.positions) {
    const ImageView& image = reference.images[at.image];
    const bool inside = at.x >= 0 && at.y >= 0 && at.x + reference.size.width <= image.width &&
                        at.y + reference.size.height <= image.height;
    require(inside, [&] {
      return "The reference at x = " + std::to_string(at.x) + ", y = " + std::to_string(at.y) +
             " does not lie inside its image.";
    });
  }
}

void check_mask(std::span<const ImageView> mask, const Patches& reference) {
  if (mask.empty()) return;
  require(mask.size() == reference.images.size(), "Give one mask per reference image.");
  for (std::size_t i = 0; i < mask.size(); ++i)
    require(mask[i].type == ScalarType::u8 && mask[i].width == reference.images[i].width &&
                mask[i].height == reference.images[i].height,
            "A mask must be u8 and have the size of its reference image.");
}

void check_shifts(const Shifts& shifts) {
  for (int bound : {shifts.dx_min, shifts.dx_max, shifts.dy_min, shifts.dy_max})
    require(std::abs(std::int64_t{bound}) <= kMaxExtent, "Shifts must lie within 16777216 px of zero.");
}

std::int64_t count_pairs(const Job& job) {
  const std::int64_t n = job.references, m = job.windows;
  switch (job.pairing) {
    case Pairing::one_to_one:
      require(n == m, "Pairing one_to_one needs as many windows as references.");
      return n;
    case Pairing::one_to_many:
      require(n == 1 || m == 0, "Pairing one_to_many needs exactly one reference.");
      return m;
    case Pairing::n_to_mn:
      require(n > 0 ? m % n == 0 : m == 0, "Pairing n_to_mn needs the same number of windows per reference.");
      return m;
    case Pairing::n_to_m:
      break;
  }
  return n * m;
}

/// Significant bits of all reference and search images; 0 if one of them may use all bits of its type.
int common_bit_depth(const Job& job) {
  int depth = 0;
  for (const std::span<const ImageView> images : {job.reference.images, job.search.images})
    for (const ImageView& image : images) {
      if (image.bit_depth == 0) return 0;
      depth = std::max(depth, image.bit_depth);
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
  switch (pairing) {
    case Pairing::one_to_one:
      return {k, k};
    case Pairing::one_to_many:
      return {0, k};
    case Pairing::n_to_mn:
      return {k / (windows / references), k};
    case Pairing::n_to_m:
      break;
  }
  return {k / windows, k % windows};
}

CorrelateShape Job::shape() const {
  return {.pairing = pairing,
          .type = type,
          .criterion = criterion,
          .bit_depth = bit_depth,
          .reference = reference.size,
          .search = search.size,
          .shifts = shifts,
          .references = references,
          .pairs = pairs,
          .masked = !mask.empty()};
}

Job check_request(const CorrelateRequest& request) {
  Job job{.pairing = request.pairing,
          .reference = request.reference,
          .search = request.search,
          .shifts = request.shifts,
          .criterion = request.criterion,
          .mask = request.reference_mask,
          .least_score = request.least_score,
          .stop = request.stop};
  if (!job.reference.images.empty())
    job.type = job.reference.images[0].type;
  else if (!job.search.images.empty())
    job.type = job.search.images[0].type;
  job.references = ssize(job.reference);
  job.windows = ssize(job.search);
  check_images(job.reference, job.type, "reference");
  check_images(job.search, job.type, "search");
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

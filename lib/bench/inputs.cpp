#include "bench/inputs.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <limits>

namespace dic::bench {
namespace {

// Shift of the content between the reference image and the search image, px: the position of the peak in a
// window that is centred on its reference.
constexpr int kMoveX = 3, kMoveY = -2;

template <typename T>
T random_value(std::uint64_t bits, int bit_depth) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<std::int32_t>(bits >> 32)) * T(0x1p-31);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<std::int16_t>(bits >> 48);  // 16 bits, so that sums stay exact in float64
  } else {
    return static_cast<T>(bits >> (64 - (bit_depth > 0 ? bit_depth : std::numeric_limits<T>::digits)));
  }
}

Image random_image(const Case& shape, int width, int height, Random& random) {
  Image image({width, height}, shape.type, shape.bit_depth);
  visit_scalar(shape.type, [&]<typename T>(T) {
    for (int y = 0; y < height; ++y)
      std::generate_n(image.row<T>(y), width,
                      [&] { return random_value<T>(random.next(), shape.bit_depth); });
  });
  return image;
}

/// The image shifted by (kMoveX, kMoveY), cyclically.
Image moved(const Image& image) {
  Image result(image.size(), image.type(), image.bit_depth());
  visit_scalar(image.type(), [&]<typename T>(T) {
    for (int y = 0; y < image.height(); ++y) {
      T* row = result.row<T>((y + image.height() + kMoveY) % image.height());
      std::rotate_copy(image.row<T>(y), image.row<T>(y) + image.width() - kMoveX,
                       image.row<T>(y) + image.width(), row);
    }
  });
  return result;
}

/// A mask of slanted stripes: zero excludes an element. A stripe begins every kPeriod px of a row.
Image striped_mask(int width, int height) {
  constexpr int kPeriod = 12;
  Image mask({width, height}, ScalarType::u8);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      mask.row<std::uint8_t>(y)[x] = (x + y / 2) % kPeriod < kShareThatCounts * kPeriod;
  return mask;
}

/// Offset of a window's begin from that of its reference if both have the same centre.
int offset_of(int ref, int search) { return -(search - ref) / 2; }

/// A random begin in [0, side) such that both [begin, begin + ref) and its window stay inside.
int random_begin(int side, int ref, int search, Random& random) {
  const int offset = offset_of(ref, search);
  const int first = std::max(0, -offset), last = side - std::max(ref, offset + search);
  if (last < first)
    throw UsageError("The windows do not fit into images of " + std::to_string(side) +
                     " px: use a larger image, or packed matrices (image = 0).");
  return first + static_cast<int>(random.below(last - first + 1));
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::int64_t Random::below(std::int64_t count) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
}

Inputs::Inputs(const Case& shape, std::uint64_t seed) : shape_(shape) {
  if (shape.ref_h <= 0 || shape.ref_w <= 0 || shape.search_h <= 0 || shape.search_w <= 0 ||
      shape.pairs() <= 0)
    throw UsageError("A case needs references and windows of at least 1 px and at least one pair.");
  reference_.size = {shape.ref_w, shape.ref_h};
  search_.size = {shape.search_w, shape.search_h};
  Random random(seed);
  if (shape.image > 0) {
    place_in_images(random);
  } else {
    pack(reference_, shape.references, random);
    pack(search_, shape.windows, random);
  }
  if (shape.masks)
    for (const Image& image : reference_.images)
      masks_.push_back(striped_mask(image.width(), image.height()));
  reference_.views.assign(reference_.images.begin(), reference_.images.end());
  search_.views.assign(search_.images.begin(), search_.images.end());
  mask_views_.assign(masks_.begin(), masks_.end());
}

void Inputs::pack(Side& side, std::int64_t count, Random& random) const {
  if (count * side.size.height > std::numeric_limits<int>::max())
    throw UsageError("So many packed matrices have more rows than an image can have: use fewer.");
  side.images.push_back(
      random_image(shape_, side.size.width, static_cast<int>(count) * side.size.height, random));
  for (int k = 0; k < count; ++k) side.positions.push_back({0, 0, k * side.size.height});
}

void Inputs::place_in_images(Random& random) {
  const Case& c = shape_;
  const auto random_position = [&] {
    const int x = random_begin(c.image, c.ref_w, c.search_w, random);
    return PatchPosition{0, x, random_begin(c.image, c.ref_h, c.search_h, random)};
  };
  for (std::int64_t k = 0; k < c.references; ++k) reference_.positions.push_back(random_position());
  const bool is_paired = c.pairing == Pairing::one_to_one || c.pairing == Pairing::n_to_mn;
  const auto frames = static_cast<int>(is_paired ? c.windows / c.references : 1);
  for (std::int64_t k = 0; k < c.windows; ++k) {
    PatchPosition at = is_paired ? reference_.positions[k / frames] : random_position();
    at.image = static_cast<int>(k % frames);
    at.x += offset_of(c.ref_w, c.search_w);
    at.y += offset_of(c.ref_h, c.search_h);
    search_.positions.push_back(at);
  }
  reference_.images.push_back(random_image(c, c.image, c.image, random));
  for (int frame = 0; frame < frames; ++frame) search_.images.push_back(moved(reference_.images[0]));
}

CorrelateRequest Inputs::request() const {
  return {.pairing = shape_.pairing,
          .reference = reference_.matrices(),
          .search = search_.matrices(),
          .shifts = shape_.shifts,
          .criterion = shape_.criterion,
          .reference_mask = mask_views_,
          .variant = {}};
}

}  // namespace dic::bench

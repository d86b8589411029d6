#include <algorithm>
#include <sstream>

#include "bench/bench.hpp"
#include "bench/inputs.hpp"

namespace dic::bench {

namespace {

/// Number of overlapping elements, summed over the shifts of one axis.
double overlaps(int ref, int search, int first, int last) {
  double sum = 0;
  for (int shift = first; shift <= last; ++shift)
    sum += std::max(0, std::min(ref, search - shift) - std::max(0, -shift));
  return sum;
}

std::size_t bytes_of_value(ScalarType type, Criterion criterion) {
  const bool is_wide = type == ScalarType::u16 || type == ScalarType::i32 || type == ScalarType::f64;
  return criterion == Criterion::cross_correlation && is_wide ? 8 : 4;
}

std::string size_text(int height, int width) { return std::to_string(height) + "x" + std::to_string(width); }

std::string range_text(int first, int last) { return std::to_string(first) + ":" + std::to_string(last); }

std::string shifts_text(const Case& c) {
  if (c.shifts == Shifts::full({c.ref_w, c.ref_h}, {c.search_w, c.search_h}))
    return c.ref_h == c.search_h && c.ref_w == c.search_w ? "full"
                                                          : "full in " + size_text(c.search_h, c.search_w);
  if (c.shifts != Shifts::valid({c.ref_w, c.ref_h}, {c.search_w, c.search_h}))
    return range_text(c.shifts.dx_min, c.shifts.dx_max) + "," + range_text(c.shifts.dy_min, c.shifts.dy_max) +
           " in " + size_text(c.search_h, c.search_w);
  const int more = c.search_w - c.ref_w;
  const bool is_radius = more == c.search_h - c.ref_h && more % 2 == 0;
  return is_radius ? "radius " + std::to_string(more / 2) : "valid in " + size_text(c.search_h, c.search_w);
}

}  // namespace

std::int64_t Case::pairs() const { return pairing == Pairing::n_to_m ? references * windows : windows; }

double Case::operations() const {
  return 2.0 * (masks ? kShareThatCounts : 1.0) * static_cast<double>(pairs()) *
         overlaps(ref_h, search_h, shifts.dy_min, shifts.dy_max) *
         overlaps(ref_w, search_w, shifts.dx_min, shifts.dx_max);
}

double Case::bytes() const {
  const auto bytes_of_element = static_cast<double>(size_of(type));
  // Matrices in images overlap, so each pixel of the images counts once.
  const auto elements = [&](std::int64_t count, int h, int w, std::int64_t images) {
    const double packed = static_cast<double>(count) * h * w;
    return image > 0 ? std::min(packed, static_cast<double>(images) * image * image) : packed;
  };
  const std::int64_t frames = pairing == Pairing::n_to_mn && references > 0 ? windows / references : 1;
  const auto values = static_cast<double>(pairs() * shifts.count());
  const double out = output == Output::peaks ? static_cast<double>(pairs() * sizeof(Peak))
                                             : values * static_cast<double>(bytes_of_value(type, criterion));
  const double of_references = elements(references, ref_h, ref_w, 1);
  return bytes_of_element * (of_references + elements(windows, search_h, search_w, frames)) +
         (masks ? of_references : 0) + out;
}

namespace {

/// The highest ceiling whose name begins with `what`; 0 if there is none.
double fastest(const std::vector<Ceiling>& ceilings, std::string_view what) {
  double value = 0;
  for (const Ceiling& ceiling : ceilings)
    if (ceiling.name.starts_with(what)) value = std::max(value, ceiling.value);
  return value;
}

/// Highest rate, operations per second, of products that are exact for the elements of a case.
double fastest_products(const Case& c, const std::vector<Ceiling>& ceilings) {
  switch (c.type) {
    case ScalarType::u8:
      return std::max({fastest(ceilings, "u8"), fastest(ceilings, "dp4a"), fastest(ceilings, "i16")});
    case ScalarType::u16: {
      const bool fits_half = c.bit_depth > 0 && c.bit_depth <= 12;
      const double tensor = fits_half ? fastest(ceilings, "f16 tensor") : fastest(ceilings, "u8 tensor") / 4;
      return std::max(fastest(ceilings, "i16"), tensor);
    }
    case ScalarType::f32:
      return fastest(ceilings, "f32");
    case ScalarType::i32:
    case ScalarType::f64:
      break;
  }
  return fastest(ceilings, "f64");
}

}  // namespace

double floor_seconds(const Case& shape, const std::vector<Ceiling>& ceilings) {
  const double products = fastest_products(shape, ceilings), memory = fastest(ceilings, "memory");
  if (products == 0 || memory == 0) return 0;
  return std::max(shape.operations() / products, shape.bytes() / memory);
}

std::string describe(const Case& c) {
  std::ostringstream text;
  text << to_string(c.pairing) << ' ' << to_string(c.type);
  if (c.bit_depth > 0) text << ':' << c.bit_depth;
  text << ' ' << size_text(c.ref_h, c.ref_w) << ' ' << shifts_text(c) << ", " << c.pairs()
       << (c.pairs() == 1 ? " pair" : " pairs");
  if (c.image > 0) text << " in " << size_text(c.image, c.image);
  text << (c.masks ? ", masked, " : ", ") << to_string(c.criterion);
  if (c.criterion != Criterion::cross_correlation || c.output == Output::peaks)
    text << ' ' << to_string(c.output);
  return text.str();
}

}  // namespace dic::bench

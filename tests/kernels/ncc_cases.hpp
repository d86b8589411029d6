#pragma once

#include <cmath>
#include <cstring>
#include <dic/correlate.hpp>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/requirements.hpp"

/// Jobs with known answers: random images, and correlations from the definition, computed on the host by
/// separate code.
namespace dic::test {

/// A batch of matrices in `images` images, at arbitrary positions and with odd row strides.
struct Side {
  int h = 1, w = 1;
  int image_h = 1, image_w = 1;
  int images = 1;
  std::vector<PatchPosition> positions;
};

struct Case {
  std::string name;
  Pairing pairing = Pairing::one_to_one;
  Side reference, search;
  Shifts shifts;
  std::int64_t pairs = 0;
};

struct PairIndex {
  std::int64_t reference, window;
};
inline PairIndex pair_at(const Case& c, std::int64_t k) {
  const auto n = static_cast<std::int64_t>(c.reference.positions.size());
  const auto m = static_cast<std::int64_t>(c.search.positions.size());
  if (c.pairing == Pairing::one_to_one) return {k, k};
  if (c.pairing == Pairing::one_to_many) return {0, k};
  if (c.pairing == Pairing::n_to_mn) return {k / (m / n), k};
  return {k / m, k % m};
}

/// Elements of all images of one side, image after image, packed.
template <typename T>
std::vector<T> random_pixels(const Side& side, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> pixels(static_cast<std::size_t>(side.image_h) * side.image_w * side.images);
  for (T& p : pixels) {
    if constexpr (std::is_floating_point_v<T>)
      p = static_cast<T>(std::uniform_real_distribution<double>(-2.0, 3.0)(random));
    else if constexpr (std::is_signed_v<T>)
      p = std::uniform_int_distribution<T>(-(1 << 26), 1 << 26)(random);
    else
      p = static_cast<T>(std::uniform_int_distribution<int>(0, std::numeric_limits<T>::max())(random));
  }
  return pixels;
}

template <typename T>
struct Pixels {
  const Side& side;
  const std::vector<T>& values;

  /// Element (y, x) of matrix `index`, zero outside matrix and image.
  T at(std::int64_t index, int y, int x) const {
    const PatchPosition p = side.positions[index];
    const int py = p.y + y, px = p.x + x;
    const bool inside = y >= 0 && x >= 0 && y < side.h && x < side.w && py >= 0 && px >= 0 &&
                        py < side.image_h && px < side.image_w;
    return inside ? values[(static_cast<std::size_t>(p.image) * side.image_h + py) * side.image_w + px]
                  : T{0};
  }
  /// True where the whole h x w rectangle at (y, x) of the matrix lies inside matrix and image.
  bool holds(std::int64_t index, int y, int x, int h, int w) const {
    const PatchPosition p = side.positions[index];
    return y >= 0 && x >= 0 && y + h <= side.h && x + w <= side.w && p.y + y >= 0 && p.x + x >= 0 &&
           p.y + y + h <= side.image_h && p.x + x + w <= side.image_w;
  }
};

/// Sum of products, and of their absolute values, at one shift; norm of the reference times norm of the
/// window.
template <typename Sum>
struct NaiveSum {
  Sum sum = 0;
  double magnitude = 0;
  double norms = 0;
};
template <typename T>
double norm(const Pixels<T>& side, std::int64_t index) {
  double squares = 0;
  for (int y = 0; y < side.side.h; ++y)
    for (int x = 0; x < side.side.w; ++x) {
      const auto value = static_cast<double>(side.at(index, y, x));
      squares += value * value;
    }
  return std::sqrt(squares);
}
template <typename Sum, typename T>
NaiveSum<Sum> naive_sum(const Pixels<T>& reference, std::int64_t r, const Pixels<T>& search, std::int64_t s,
                        int dy, int dx) {
  NaiveSum<Sum> result;
  for (int y = 0; y < reference.side.h; ++y) {
    if (y + dy < 0 || y + dy >= search.side.h) continue;
    for (int x = 0; x < reference.side.w; ++x) {
      const T a = reference.at(r, y, x), b = search.at(s, y + dy, x + dx);
      result.sum += static_cast<Sum>(a) * static_cast<Sum>(b);
      result.magnitude += std::abs(static_cast<double>(a) * static_cast<double>(b));
    }
  }
  return result;
}

inline std::vector<PatchPosition> scattered(int count, const Side& side, int outside, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<PatchPosition> positions;
  for (int k = 0; k < count; ++k)
    positions.push_back(
        {std::uniform_int_distribution<int>(0, side.images - 1)(random),
         std::uniform_int_distribution<int>(-outside, side.image_w - side.w + outside)(random),
         std::uniform_int_distribution<int>(-outside, side.image_h - side.h + outside)(random)});
  return positions;
}

/// A case of n references h x w in two images, and `windows` windows sh x sw in three images, up to `outside`
/// px outside of them.
inline Case make_case(std::string name, Pairing pairing, int n, int windows, int h, int w, int sh, int sw,
                      Shifts shifts, int outside = 0) {
  Case c{std::move(name), pairing, {h, w, h + 9, w + 38, 2, {}}, {sh, sw, sh + 11, sw + 35, 3, {}},
         shifts,          0};
  c.reference.positions = scattered(n, c.reference, 0, 17);
  c.search.positions = scattered(windows, c.search, outside, 18);
  c.pairs = pairing == Pairing::n_to_m ? std::int64_t{n} * windows : windows;
  return c;
}

inline std::vector<Case> ncc_cases() {
  const auto full = Shifts::full;
  const auto valid = Shifts::valid;
  std::vector<Case> cases = {
      make_case("one_element", Pairing::one_to_one, 4, 4, 1, 1, 1, 1, full({1, 1}, {1, 1})),
      make_case("full_7", Pairing::one_to_one, 5, 5, 7, 7, 7, 7, full({7, 7}, {7, 7})),
      make_case("full_31_one_to_many", Pairing::one_to_many, 1, 11, 31, 31, 31, 31, full({31, 31}, {31, 31})),
      make_case("full_32_n_to_m", Pairing::n_to_m, 3, 5, 32, 32, 32, 32, full({32, 32}, {32, 32})),
      make_case("full_33", Pairing::n_to_mn, 2, 6, 33, 33, 33, 33, full({33, 33}, {33, 33})),
      make_case("full_64", Pairing::one_to_many, 1, 2, 64, 64, 64, 64, full({64, 64}, {64, 64})),
      make_case("valid_31_15", Pairing::n_to_mn, 3, 15, 31, 31, 61, 61, valid({31, 31}, {61, 61})),
      make_case("valid_32_16", Pairing::one_to_one, 40, 40, 32, 32, 64, 64, valid({32, 32}, {64, 64})),
      make_case("valid_64_16", Pairing::one_to_one, 3, 3, 64, 64, 96, 96, valid({64, 64}, {96, 96})),
      make_case("valid_61_31", Pairing::one_to_one, 1, 1, 61, 61, 123, 123, valid({61, 61}, {123, 123})),
      make_case("templates_in_a_image", Pairing::n_to_m, 3, 1, 20, 18, 150, 170, valid({18, 20}, {170, 150})),
      make_case("valid_33_3", Pairing::one_to_many, 1, 3, 33, 33, 39, 39, valid({33, 33}, {39, 39})),
      make_case("valid_not_square", Pairing::n_to_m, 2, 3, 9, 41, 23, 57, valid({41, 9}, {57, 23})),
      make_case("wide", Pairing::one_to_one, 2, 2, 3, 420, 7, 430, valid({420, 3}, {430, 7})),
      make_case("tall", Pairing::one_to_one, 2, 2, 101, 3, 130, 5, full({3, 101}, {5, 130})),
      make_case("wide_full", Pairing::one_to_many, 1, 3, 5, 150, 7, 170, full({150, 5}, {170, 7})),
      make_case("groups_of_both_sides", Pairing::n_to_m, 9, 6, 10, 12, 14, 9, full({12, 10}, {9, 14})),
      make_case("any_rectangle", Pairing::n_to_mn, 2, 4, 5, 40, 33, 17, {-50, 20, -9, 35}),
      make_case("negative_shifts", Pairing::one_to_one, 2, 2, 11, 13, 30, 30, {-9, -4, -7, -2}),
      make_case("part_of_the_valid_shifts", Pairing::one_to_one, 3, 3, 21, 21, 63, 63, {11, 30, 20, 22}),
      make_case("no_overlap", Pairing::one_to_one, 2, 2, 4, 4, 4, 4, {10, 12, -3, 3}),
      make_case("window_smaller_than_reference", Pairing::one_to_one, 3, 3, 20, 22, 9, 13,
                full({22, 20}, {13, 9})),
      make_case("reference_is_window", Pairing::one_to_one, 3, 3, 31, 31, 31, 31, valid({31, 31}, {31, 31})),
      make_case("no_shifts", Pairing::one_to_one, 3, 3, 31, 31, 30, 30, valid({31, 31}, {30, 30})),
      make_case("no_pairs", Pairing::n_to_m, 2, 0, 7, 7, 9, 9, valid({7, 7}, {9, 9})),
      make_case("windows_across_borders", Pairing::n_to_mn, 4, 40, 15, 15, 31, 31, valid({15, 15}, {31, 31}),
                40),
      make_case("full_across_borders", Pairing::n_to_m, 2, 20, 9, 12, 19, 18, full({12, 9}, {18, 19}), 25),
      make_case("more_than_65535_pairs", Pairing::n_to_mn, 350, 70000, 3, 2, 5, 4, valid({2, 3}, {4, 5})),
  };
  Case offsets =
      make_case("every_byte_offset", Pairing::one_to_one, 32, 32, 15, 15, 29, 29, valid({15, 15}, {29, 29}));
  for (int k = 0; k < 32; ++k) {
    offsets.reference.positions[k] = {0, k, 3};
    offsets.search.positions[k] = {0, 7 * k % 32, 2};
  }
  cases.push_back(offsets);
  if (only_small_tests())
    std::erase_if(cases, [](const Case& c) {
      const auto shifts = c.pairs * c.shifts.count();
      return c.pairs > 65535 || shifts * c.reference.h * c.reference.w > 15'000'000;
    });
  return cases;
}

}  // namespace dic::test

#include "analysis/skipped_cells.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dic::analysis {
namespace {

constexpr int kSide = SkippedCells::kSide;
/// Share of the cells from which on the whole frame is a copy of another, whose displacements are right.
constexpr double kCopy = 0.95;

enum class Kind : std::uint8_t { differs, equal, plain };

/// Compares some pixels of a row.
template <typename T>
Kind compare(const T* a, const T* b) {
  if (!std::equal(a, a + kSide, b)) return Kind::differs;
  int steps = 0;
  for (int i = 1; i < kSide; ++i) steps += a[i] != a[i - 1];
  return steps < kSide / 2 ? Kind::plain : Kind::equal;
}

/// The cells whose sampled rows are equal in two images, [ny x nx]. Plain ones (saturated, or of
/// few grey levels) tell nothing.
std::vector<std::uint8_t> equal_cells(ImageView a, ImageView b, Size cells, core::ThreadPool& pool) {
  std::vector<Kind> kinds(static_cast<std::size_t>(cells.width) * cells.height, Kind::differs);
  visit_scalar(a.type, [&]<typename T>(T) {
    core::for_each_row(pool, cells.height, [&](int j) {
      Kind* row = kinds.data() + static_cast<std::ptrdiff_t>(j) * cells.width;
      for (int i = 0; i < cells.width; ++i) {
        const auto kind = [&](int k) {
          return compare(a.row<T>(2 * j + k) + i * kSide, b.row<T>(2 * j + k) + i * kSide);
        };
        const Kind first = kind(0), second = first == Kind::equal ? kind(1) : first;
        row[i] = second == Kind::plain ? first : second;
      }
    });
  });
  const auto equal = std::ranges::count(kinds, Kind::equal),
             telling = std::ssize(kinds) - std::ranges::count(kinds, Kind::plain);
  if (static_cast<double>(equal) > kCopy * static_cast<double>(telling))
    return std::vector<std::uint8_t>(kinds.size());
  std::vector<std::uint8_t> out;
  for (const Kind kind : kinds) out.push_back(kind == Kind::equal);
  return out;
}

}  // namespace

SkippedCells::SkippedCells(ImageView rows, ImageView rows_before, ImageView rows_of_reference,
                           const SkippedCells& before, core::ThreadPool& pool)
    : nx_(rows.width / kSide), ny_(rows.height / 2) {
  const Size cells{nx_, ny_};
  const std::vector<std::uint8_t> as_before = equal_cells(rows, rows_before, cells, pool);
  const bool is_first = rows_before.data == rows_of_reference.data;
  const std::vector<std::uint8_t> as_reference =
      is_first ? as_before : equal_cells(rows, rows_of_reference, cells, pool);
  age_.resize(as_before.size());
  for (std::size_t k = 0; k < age_.size(); ++k) {
    const int age = before.age_.empty() ? 0 : before.age_[k];
    if (as_reference[k] != 0)
      age_[k] = kReference;
    else if (as_before[k] != 0)
      age_[k] = static_cast<std::uint8_t>(std::min(age + 1, kReference - 1));
    any_ = any_ || age_[k] != 0;
  }
}

SkippedCells::Sum SkippedCells::around(double x, double y, int reach) const {
  const auto range = [reach](double at, int cells) {
    return std::array{std::clamp(static_cast<int>(std::floor((at - reach) / kSide)), 0, cells),
                      std::clamp(static_cast<int>(std::floor((at + reach) / kSide)) + 1, 0, cells)};
  };
  const auto [left, right] = range(x, nx_);
  const auto [top, bottom] = range(y, ny_);
  Sum sum;
  for (int j = top; j < bottom; ++j)
    for (int i = left; i < right; ++i) {
      const std::uint8_t age = age_[static_cast<std::size_t>(j) * nx_ + i];
      sum.all += 1;
      sum.skipped += age != 0;
      sum.of_reference += age == kReference;
      sum.age += age == kReference ? 0 : age;
    }
  return sum;
}

Image sampled_rows(ImageView image, core::ThreadPool& pool) {
  const int n = 2 * (image.height / kSide);
  Image out = Image::uninitialized({image.width, n}, image.type);
  core::for_each_row(pool, n, [&](int row) {
    visit_scalar(image.type, [&]<typename T>(T) {
      std::copy_n(image.row<T>(row / 2 * kSide + kSide / 2 - 1 + row % 2), image.width, out.row<T>(row));
    });
  });
  return out;
}

}  // namespace dic::analysis

#include "track/repeated_blocks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace dic::track {
namespace {

/// Rows of a block that are compared.
constexpr std::array kSampledRows = {2, 5};
/// Number of different grey levels in the compared rows of a block, 16 px, from which chance does not repeat
/// them. Saturated images and images of two values have fewer.
constexpr std::ptrdiff_t kLeastLevels = 8;
/// Number of repeated blocks below which a frame counts as one without them.
constexpr int kLeastBlocks = 2;
/// Motion since the last change of a block, px, above which its pixels are wrong. Displacements of the points
/// around scatter less.
constexpr float kMoved = 0.03F;
/// Share of the repeated blocks in which the material moved, above which all of them are wrong. Around bodies
/// that stand still in images without noise, a few are.
constexpr double kManyMoved = 1.0 / 3;
/// Distance, blocks, up to which a block takes the motion of another one.
constexpr int kReach = 2;
/// Pixels around a block that interpolation mixes with it.
constexpr int kMixed = 1;

using Samples = std::array<std::uint64_t, kSampledRows.size()>;

Samples samples_at(ImageView image, int column, int row) {
  Samples samples;
  for (std::size_t k = 0; k < samples.size(); ++k)
    std::memcpy(&samples[k],
                image.row<std::uint8_t>(row * RepeatedBlocks::kSide + kSampledRows[k]) +
                    std::ptrdiff_t{column} * RepeatedBlocks::kSide,
                sizeof samples[k]);
  return samples;
}

bool has_texture(const Samples& samples) {
  std::array<std::uint8_t, sizeof samples> greys;
  std::memcpy(greys.data(), samples.data(), sizeof samples);
  std::ranges::sort(greys);
  return std::unique(greys.begin(), greys.end()) - greys.begin() >= kLeastLevels;
}

}  // namespace

RepeatedBlocks::RepeatedBlocks(ImageView reference)
    : size_(reference.size()),
      columns_(reference.type == ScalarType::u8 ? size_.width / kSide : 0),
      rows_(size_.height / kSide),
      last_change_(blocks(), Motion{0, 0}) {
  find(reference);
}

std::shared_ptr<const BlockFlags> RepeatedBlocks::find(ImageView image) {
  const bool is_first = samples_.empty();
  samples_.resize(blocks() * kSampledRows.size());
  BlockFlags repeated;
  std::size_t found = 0, block = 0;
  bool has_changed = false;
  for (int row = 0; row < rows_; ++row)
    for (int column = 0; column < columns_; ++column, ++block) {
      const Samples now = samples_at(image, column, row);
      std::uint64_t* const before = &samples_[block * now.size()];
      if (is_first || !std::equal(now.begin(), now.end(), before)) {
        has_changed = true;
        std::ranges::copy(now, before);
      } else if (has_texture(now)) {
        repeated.resize(blocks());
        repeated[block] = 1;
        ++found;
      }
    }
  if (has_changed)
    last_ = found >= kLeastBlocks ? std::make_shared<const BlockFlags>(std::move(repeated)) : nullptr;
  return last_;
}

/// The mean motion of the points that a frame shows in each block, or in the nearest block that has any.
std::vector<RepeatedBlocks::Motion> RepeatedBlocks::motion_by_block(const Field& field) const {
  constexpr float unknown = std::numeric_limits<float>::quiet_NaN();
  std::vector<Motion> sums(blocks(), Motion{0, 0});
  std::vector<int> counts(sums.size());
  const Grid& grid = field.grid();
  for (std::int64_t node = 0; node < grid.nodes(); ++node) {
    if (field.status[node] != Status::ok) continue;
    const double x = grid.x(static_cast<int>(node % grid.nx)) + field.u[node];
    const double y = grid.y(static_cast<int>(node / grid.nx)) + field.v[node];
    if (!(x >= 0 && y >= 0 && x < columns_ * kSide && y < rows_ * kSide)) continue;
    const auto block = static_cast<std::size_t>(y / kSide) * columns_ + static_cast<std::size_t>(x / kSide);
    sums[block].u += static_cast<float>(field.u[node]), sums[block].v += static_cast<float>(field.v[node]);
    ++counts[block];
  }
  std::vector<Motion> motions(sums.size(), Motion{unknown, unknown});
  for (int row = 0; row < rows_; ++row)
    for (int column = 0; column < columns_; ++column)
      for (int reach = 0, count = 0; reach <= kReach && count == 0; ++reach) {
        Motion sum{0, 0};
        for (int j = std::max(0, row - reach); j <= std::min(rows_ - 1, row + reach); ++j)
          for (int i = std::max(0, column - reach); i <= std::min(columns_ - 1, column + reach); ++i) {
            const std::size_t near = static_cast<std::size_t>(j) * columns_ + i;
            sum.u += sums[near].u, sum.v += sums[near].v;
            count += counts[near];
          }
        const auto n = static_cast<float>(count);
        if (count > 0) motions[static_cast<std::size_t>(row) * columns_ + column] = {sum.u / n, sum.v / n};
      }
  return motions;
}

/// The repeated blocks in which the material has moved; all of them if these are many, since blocks that seem
/// to stand still are then likely to be repeated while they move, too.
std::vector<std::size_t> RepeatedBlocks::wrong_blocks(const BlockFlags& repeated,
                                                      const std::vector<Motion>& now) const {
  std::vector<std::size_t> all, moved;
  for (std::size_t block = 0; block < now.size(); ++block) {
    if (repeated[block] == 0 || std::isnan(now[block].u)) continue;
    all.push_back(block);
    const Motion &here = now[block], &then = last_change_[block];
    if (std::max(std::abs(here.u - then.u), std::abs(here.v - then.v)) > kMoved) moved.push_back(block);
  }
  return kManyMoved * static_cast<double>(all.size()) < static_cast<double>(moved.size()) ? all : moved;
}

bool RepeatedBlocks::mark(const BlockFlags& repeated, const Field& field, Image& marks,
                          std::uint8_t value) const {
  if (last_change_.empty()) return false;
  const std::vector<Motion> now = motion_by_block(field);
  const std::vector<std::size_t> wrong = wrong_blocks(repeated, now);
  for (const std::size_t block : wrong) {
    const auto [u, v] = now[block];
    const auto column = static_cast<int>(block % columns_), row = static_cast<int>(block / columns_);
    const auto begin = [](int at, float motion) {
      return std::max(0, static_cast<int>(std::floor(static_cast<float>(at) - motion)) - kMixed);
    };
    const auto end = [](int at, float motion, int size) {
      return std::min(size, static_cast<int>(std::ceil(static_cast<float>(at) - motion)) + kSide + kMixed);
    };
    const int x0 = begin(column * kSide, u), x1 = end(column * kSide, u, size_.width);
    for (int y = begin(row * kSide, v); y < end(row * kSide, v, size_.height); ++y)
      if (x0 < x1) std::fill(marks.row<std::uint8_t>(y) + x0, marks.row<std::uint8_t>(y) + x1, value);
  }
  return !wrong.empty();
}

void RepeatedBlocks::keep_motion(const BlockFlags* repeated, const Field& field) {
  constexpr float unknown = std::numeric_limits<float>::quiet_NaN();
  are_any_ |= repeated != nullptr;
  if (!are_any_) {  // as in most sequences
    last_change_.clear();
    return;
  }
  last_change_.resize(blocks(), Motion{unknown, unknown});
  const std::vector<Motion> now = motion_by_block(field);
  for (std::size_t block = 0; block < now.size(); ++block)
    if (!repeated || (*repeated)[block] == 0) last_change_[block] = now[block];
}

}  // namespace dic::track

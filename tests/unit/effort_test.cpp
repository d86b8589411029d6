#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/speckle.hpp"
#include "track/sequence.hpp"

// Limits of the effort that a sequence spends on each point.
namespace dic::track {
namespace {

constexpr int kSize = 160;

TrackOptions options() {
  TrackOptions options;
  options.refine.subset = 21;
  options.step = 8;
  options.threads = 1;
  options.device = "cpu";
  return options;
}

/// Speckle shifted by (shift, 0) px.
Image frame(double shift) {
  static const test::Speckle speckle(3 * kSize, kSize, 2, 1, 300);
  return test::converted<std::uint8_t>(
      test::image_of(kSize, kSize,
                     [&](int x, int y) { return test::grey_of(speckle(x + kSize - shift, y)); }),
      ScalarType::u8);
}

Field measured(Sequence& sequence, const Image& image) {
  return sequence.measure(sequence.take(image.view()), {})->fetch().field;
}

/// Number of points that were measured; all of them must have moved by (shift, 0) px.
std::int64_t found(const Field& field, double shift) {
  std::int64_t count = 0;
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    if (field.status[k] != Status::ok) continue;
    ++count;
    EXPECT_NEAR(field.u[k], shift, 0.1) << k;
    EXPECT_NEAR(field.v[k], 0, 0.1) << k;
  }
  return count;
}

TEST(Effort, PointsAreLeftOutOrFoundByTheirNeighbours) {
  const Image reference = frame(0);
  Sequence sequence(options(), reference.view(), {});
  const Grid& grid = sequence.grid();
  std::vector<Effort> efforts(static_cast<std::size_t>(grid.nodes()), Effort::search);
  const auto column = [&](std::size_t k) { return static_cast<int>(k) % grid.nx; };
  const int left_out = grid.nx / 2, beside = left_out + 3;
  for (std::size_t k = 0; k < efforts.size(); ++k)
    if (column(k) < beside) efforts[k] = column(k) < left_out ? Effort::none : Effort::neighbours;
  sequence.limit_effort(efforts);
  const Field field = measured(sequence, frame(6.3));
  found(field, 6.3);
  for (std::size_t k = 0; k < efforts.size(); ++k) {
    if (column(k) >= beside) continue;
    EXPECT_EQ(has_values(field.status[k]), column(k) >= left_out) << k;
  }
}

TEST(Effort, AnotherSequenceStartsWhereTheFirstOneFoundThePoints) {
  constexpr double kFar = 40.4;  // px, far more than is searched around a prediction
  const Image reference = frame(0), current = frame(kFar);
  Sequence first(options(), reference.view(), {});
  const std::int64_t by_search = found(measured(first, current), kFar);
  TrackOptions quadratic = options();
  quadratic.refine.order = 2;
  quadratic.search = 2;  // px: nothing further away is searched
  const std::vector<Effort> efforts(static_cast<std::size_t>(first.grid().nodes()), Effort::neighbours);
  Sequence second(quadratic, reference.view(), {}), blind(quadratic, reference.view(), {});
  second.start_from(first);
  for (Sequence* sequence : {&second, &blind}) sequence->limit_effort(efforts);
  EXPECT_GT(by_search, 150);
  EXPECT_GE(found(measured(second, current), kFar), by_search - 5);
  EXPECT_EQ(found(measured(blind, current), kFar), 0);
}

}  // namespace
}  // namespace dic::track

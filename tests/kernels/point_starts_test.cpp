#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <dic/kernels/common_motion.hpp>
#include <dic/kernels/follow_peaks.hpp>
#include <dic/kernels/points.hpp>
#include <vector>

#include "kernels/points_state.hpp"
#include "kernels/points_support.hpp"
#include "support/gpu_test.hpp"

// Tests the starts of the points of a frame, and the peaks that they take.
namespace dic::test {
namespace {

using kernels::PointStart;
using kernels::Stream;
using kernels::TrackedPoint;
using track::Effort;
using track::MaterialPoint;

/// Lets some lost points have left the image, and others have shown only noise.
void excuse_some(PointsState& s) {
  for (TrackedPoint& point : s.tracked)
    if (point.result.status != Status::ok && s.chance(0.5))
      point.result.status = s.chance(0.5) ? Status::out_of_image : Status::flat;
}
bool is_excused(const PointsState& s, int i) {
  const Status status = s.tracked[i].result.status;
  return trackable(s, i) && (status == Status::out_of_image || status == Status::flat);
}

TEST_F(Points, StartWhereTheyWere) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    excuse_some(s);
    const DeviceArray<TrackedPoint> last(s.tracked, stream);
    const std::vector<Effort> efforts = some_efforts(s);
    const DeviceArray<Effort> device_efforts(efforts, stream);
    for (const bool is_limited : {false, true}) {
      kernels::GridPoints points = device.points;
      points.efforts = is_limited ? device_efforts.data() : nullptr;
      const DeviceArray<PointStart> starts(s.count(), stream);
      const DeviceList without(s.count(), stream);
      const DeviceArray<std::int32_t> counts(3, stream);
      kernels::launch_starts_from_last(points, last.data(), starts.data(), without.list(), counts.data(),
                                       stream.handle());
      const auto got = starts.values(stream);
      List want, want_counts(3);
      for (int i = 0; i < s.count(); ++i) {
        const int from = measured(s, i) ? i : naive_best_neighbour(s, i);
        const bool is_left = is_limited && trackable(s, i) && from < 0 && efforts[i] != Effort::search;
        ASSERT_EQ(got[i].score, is_left ? PointStart::kLeftToNeighbours : -1);
        if (is_left) {
          ++want_counts[2];
          continue;
        }
        if (trackable(s, i) && from >= 0)
          ASSERT_NO_FATAL_FAILURE(expect_start(s, got[i].u, got[i].v, got[i].shape, from, i));
        else
          ASSERT_TRUE(same_bytes<PointStart>({got[i]}, {PointStart{}}));
        if (trackable(s, i) && from < 0) want.push_back(i);
        if (is_excused(s, i)) ++want_counts[from < 0 ? 1 : 0];
      }
      EXPECT_EQ(without.sorted(stream), want);
      want_counts[0] += want_counts[1];
      EXPECT_EQ(counts.values(stream), want_counts);
    }
  });
}

TEST_F(Points, StartAtZeroInTheFirstFrame) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<PointStart> starts(s.count(), stream);
    const DeviceList without(s.count(), stream);
    const DeviceArray<std::int32_t> counts(3, stream);
    const DeviceArray<Effort> efforts(some_efforts(s), stream);
    kernels::GridPoints points = device.points;
    points.efforts = efforts.data();  // nothing is left to neighbours, of which no motion is known
    kernels::launch_starts_from_last(points, nullptr, starts.data(), without.list(), counts.data(),
                                     stream.handle());
    EXPECT_EQ(counts.values(stream), List(3));
    EXPECT_TRUE(same_bytes(starts.values(stream), std::vector<PointStart>(s.count())));
    List want;
    for (int i = 0; i < s.count(); ++i)
      if (trackable(s, i)) want.push_back(i);
    EXPECT_EQ(without.sorted(stream), want);
  });
}

/// A coarse field that is linear, so that interpolation is exact; it ends at the outermost nodes.
struct Lines {
  track::FieldLattice lattice;
  double value, along, down;

  std::vector<float> nodes() const {
    std::vector<float> out;
    for (int j = 0; j < lattice.ny; ++j)
      for (int i = 0; i < lattice.nx; ++i)
        out.push_back(static_cast<float>(value + along * i * lattice.spacing + down * j * lattice.spacing));
    return out;
  }
  double at(int x, int y) const {
    const double r = lattice.reduction, dx = (x + 0.5) / r - 0.5 - lattice.x0,
                 dy = (y + 0.5) / r - 0.5 - lattice.y0;
    return r * (value + along * std::clamp(dx, 0.0, lattice.spacing * (lattice.nx - 1.0)) +
                down * std::clamp(dy, 0.0, lattice.spacing * (lattice.ny - 1.0)));
  }
};

TEST_F(Points, StartWhereACoarseFieldSays) {
  const track::FieldLattice lattice{4, 3, 5, 6, 9, 8};
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    List some;
    for (int i = s.count() - 1; i >= 0; i -= 2) some.push_back(i);
    const DeviceArray<std::int32_t> list(some, stream);
    for (const double slope : {0.02, 0.09}) {
      const Lines u{lattice, 7.3, 0.01, slope}, v{lattice, -2.1, -0.03, 0.04};
      const DeviceArray<float> device_u(u.nodes(), stream), device_v(v.nodes(), stream);
      const DeviceArray<PointStart> starts(s.starts, stream);
      kernels::launch_starts_from_field(device.points, {list.data(), std::ssize(some)}, lattice,
                                        device_u.data(), device_v.data(), starts.data(), stream.handle());
      const auto got = starts.values(stream);
      std::vector<PointStart> others = s.starts;
      for (const int i : some) {
        ASSERT_EQ(got[i].score, -1);
        ASSERT_NEAR(got[i].u + double{got[i].shape.u[0]}, u.at(s.x[i], s.y[i]), 1e-4);
        ASSERT_NEAR(got[i].v + double{got[i].shape.v[0]}, v.at(s.x[i], s.y[i]), 1e-4);
        const bool steep = slope > 0.05;  // smaller slopes count as noise
        ASSERT_NEAR(got[i].shape.u[1], steep ? u.along : 0, 1e-5);
        ASSERT_NEAR(got[i].shape.u[2], steep ? u.down : 0, 1e-5);
        ASSERT_NEAR(got[i].shape.v[1], steep ? v.along : 0, 1e-5);
        ASSERT_NEAR(got[i].shape.v[2], steep ? v.down : 0, 1e-5);
        others[i] = got[i];
      }
      EXPECT_TRUE(same_bytes(got, others)) << "points that are not listed changed";
    }
  });
}

TEST_F(Points, ThatWereLostBeforeAreMarked) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    std::vector<MaterialPoint> material(s.count());
    auto want = s.subsets;
    for (int i = 0; i < s.count(); ++i) {
      if (s.chance(0.7)) continue;
      material[i].status = want[i].status = Status::out_of_image;
    }
    const DeviceArray<MaterialPoint> device_material(material, stream);
    kernels::launch_mark_lost(device_material.data(), s.count(), device.subsets.data(), stream.handle());
    const auto got = device.subsets.values(stream);
    for (int i = 0; i < s.count(); ++i) ASSERT_EQ(got[i].status, want[i].status);
  });
}

TEST_F(Points, WithoutEffortAreGivenUp) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const std::vector<Effort> efforts = some_efforts(s);
    const DeviceArray<Effort> device_efforts(efforts, stream);
    kernels::GridPoints points = device.points;
    points.efforts = device_efforts.data();
    kernels::launch_give_up_effortless(points, device.subsets.data(), stream.handle());
    const auto got = device.subsets.values(stream);
    for (int i = 0; i < s.count(); ++i)
      ASSERT_EQ(got[i].status, trackable(s, i) && efforts[i] == Effort::none ? Status::low_correlation
                                                                             : s.subsets[i].status);
  });
}

bool naive_cut(const PointsState& s, int i) {
  const int r = PointsState::radius;
  return s.subsets[i].weighted || s.x[i] < r || s.y[i] < r || s.x[i] + r >= s.width || s.y[i] + r >= s.height;
}

TEST_F(Points, WholeAndCutSubsetsGoApart) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    List some;
    for (int i = s.count() - 1; i >= 0; i -= 3) some.push_back(i);
    const DeviceArray<std::int32_t> list(some, stream);
    for (const bool all : {true, false}) {
      const DeviceList whole(s.count(), stream), cut(s.count(), stream);
      kernels::launch_split_subsets(device.points, all ? nullptr : list.data(),
                                    all ? s.count() : std::ssize(some), PointsState::radius, whole.list(),
                                    cut.list(), stream.handle());
      List want_whole, want_cut;
      for (int i = 0; i < s.count(); ++i)
        if (trackable(s, i) && (all || (s.count() - 1 - i) % 3 == 0))
          (naive_cut(s, i) ? want_cut : want_whole).push_back(i);
      EXPECT_EQ(whole.sorted(stream), want_whole);
      EXPECT_EQ(cut.sorted(stream), want_cut);
    }
  });
}

int naive_rounded(std::int32_t whole, float rest) {
  const double exact = whole + double{rest};
  return static_cast<int>(exact < 0 ? std::ceil(exact - 0.5) : std::floor(exact + 0.5));
}

TEST_F(Points, WindowsLieAroundTheirStarts) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    List some;
    for (int i = s.count() - 1; i >= 0; i -= 2) some.push_back(i);
    const int n = static_cast<int>(some.size()), range = 7;
    const DeviceArray<std::int32_t> list(some, stream);
    const DeviceArray<PointStart> starts(s.starts, stream);
    const DeviceArray<PatchPosition> references(n, stream), windows(n, stream);
    kernels::launch_place_windows(device.points, list.data(), starts.data(),
                                  {references.data(), windows.data(), n, 2 * PointsState::radius + 1, range},
                                  stream.handle());
    const auto reference = references.values(stream), window = windows.values(stream);
    for (int k = 0; k < n; ++k) {
      const int i = some[k];
      const PointStart& start = s.starts[i];
      ASSERT_EQ(reference[k].image, 0);
      ASSERT_EQ(window[k].image, 0);
      ASSERT_EQ(reference[k].x, s.x[i] - PointsState::radius);
      ASSERT_EQ(reference[k].y, s.y[i] - PointsState::radius);
      ASSERT_EQ(window[k].x - reference[k].x, naive_rounded(start.u, start.shape.u[0]) - range);
      ASSERT_EQ(window[k].y - reference[k].y, naive_rounded(start.v, start.shape.v[0]) - range);
    }
  });
}

/// A peak whose neighbourhood is a quadratic surface of known maximum.
Peak peak_at(PointsState& s, double x, double y) {
  Peak peak;
  peak.dx = s.integer(0, 4);
  peak.dy = s.integer(0, 4);
  peak.at_border = peak.dx == 0 || peak.dx == 4 || peak.dy == 0 || peak.dy == 4;
  peak.found = s.chance(0.9);
  peak.score = static_cast<float>(s.uniform(0, 1));
  for (int k = 0; k < 9; ++k) {
    const double i = k % 3 - 1 - x, j = k / 3 - 1 - y;
    peak.neighbourhood[k] = static_cast<float>(0.5 - 0.2 * i * i - 0.1 * j * j + 0.05 * i * j);
  }
  return peak;
}

TEST_F(Points, TakeBetterPeaksAndFollowThem) {
  on_all([](PointsState& s, const DevicePoints&, const Stream& stream) {
    List some;
    std::vector<Peak> peaks;
    std::vector<PatchPosition> subsets, placed;
    std::vector<std::array<double, 2>> offsets;
    for (int i = 0; i < s.count(); i += 1 + s.integer(0, 1)) {
      some.push_back(i);
      const bool beyond = s.chance(0.1);  // the maximum of the fit is outside the neighbourhood
      offsets.push_back({beyond ? 1.8 : s.uniform(-0.6, 0.6), beyond ? -1.9 : s.uniform(-0.6, 0.6)});
      peaks.push_back(peak_at(s, offsets.back()[0], offsets.back()[1]));
      for (double& offset : offsets.back()) offset = std::clamp(offset, -1.0, 1.0);
      if (s.chance(0.1)) s.starts[i].score = PointStart::kLeftToNeighbours;
      subsets.push_back({0, s.integer(0, 1000), s.integer(0, 1000)});
      placed.push_back({0, subsets.back().x + s.integer(-40, 40), subsets.back().y + s.integer(-40, 40)});
    }
    const int n = static_cast<int>(some.size());
    const DeviceArray<std::int32_t> list(some, stream);
    const DeviceArray<PatchPosition> references(subsets, stream), windows(placed, stream);
    const DeviceArray<Peak> device_peaks(peaks, stream);
    for (const bool follow : {false, true}) {
      const DeviceArray<PointStart> starts(s.starts, stream);
      const DeviceList again(n, stream);
      kernels::launch_take_peaks(list.data(), {references.data(), windows.data(), n}, device_peaks.data(),
                                 follow, starts.data(), again.list(), stream.handle());
      const auto got = starts.values(stream);
      List want_again;
      std::vector<PointStart> kept = s.starts;
      for (int k = 0; k < n; ++k) {
        const int i = some[k];
        const PointStart& before = s.starts[i];
        const bool is_left = before.score == PointStart::kLeftToNeighbours;
        if (is_left || !peaks[k].found || peaks[k].score < before.score) continue;
        const double u = placed[k].x - subsets[k].x + peaks[k].dx + offsets[k][0];
        const double v = placed[k].y - subsets[k].y + peaks[k].dy + offsets[k][1];
        ASSERT_NEAR(got[i].u + double{got[i].shape.u[0]}, u, 1e-5);
        ASSERT_NEAR(got[i].v + double{got[i].shape.v[0]}, v, 1e-5);
        kept[i].u = got[i].u, kept[i].v = got[i].v, kept[i].score = peaks[k].score;
        kept[i].shape.u[0] = got[i].shape.u[0], kept[i].shape.v[0] = got[i].shape.v[0];
        if (follow && peaks[k].at_border) want_again.push_back(i);
      }
      EXPECT_TRUE(same_bytes(got, kept)) << "something else changed";
      EXPECT_EQ(again.sorted(stream), want_again);
    }
  });
}

/// Two images of smooth noise, one of them moved by (6, -5).
struct MovedNoise {
  static constexpr int u = 6, v = -5;
  int width, height;
  std::vector<std::uint8_t> reference, current;

  MovedNoise(int w, int h) : width(w), height(h), reference(w * h), current(w * h) {
    const auto lattice = random_values<std::uint8_t>(std::size_t{1} << 16, 7);
    const auto grey = [&](double x, double y) {
      const double cx = (x + 64) / 5, cy = (y + 64) / 5;
      const int i = static_cast<int>(cx), j = static_cast<int>(cy);
      const double a = cx - i, b = cy - j;
      const auto at = [&](int p, int q) { return lattice[(p * 251 + q * 7919) % lattice.size()]; };
      const double upper = (1 - a) * at(i, j) + a * at(i + 1, j);
      const double lower = (1 - a) * at(i, j + 1) + a * at(i + 1, j + 1);
      return static_cast<std::uint8_t>((1 - b) * upper + b * lower);
    };
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        reference[y * w + x] = grey(x, y);
        current[y * w + x] = grey(x - u - 0.25, y - v + 0.25);
      }
  }
  /// ZNCC of a displaced subset; NaN if it leaves the image.
  double zncc(int x0, int y0, int w, int h, int du, int dv) const {
    if (x0 + du < 0 || y0 + dv < 0 || x0 + du + w > width || y0 + dv + h > height) return NAN;
    double f = 0, g = 0, ff = 0, gg = 0, fg = 0;
    for (int y = y0; y < y0 + h; ++y)
      for (int x = x0; x < x0 + w; ++x) {
        const double p = reference[y * width + x], q = current[(y + dv) * width + x + du];
        f += p, g += q, ff += p * p, gg += q * q, fg += p * q;
      }
    const double n = w * h;
    return (n * fg - f * g) / std::sqrt((n * ff - f * f) * (n * gg - g * g));
  }
};

struct FollowedTo {
  double u, v, score;
};

/// The maximum of the quadratic surface through 3 x 3 values, from its middle.
std::array<double, 2> naive_fit(const double (&n)[3][3]) {
  double b = 0, c = 0, d = 0, e = 0, f = 0;
  for (int j = -1; j <= 1; ++j)
    for (int i = -1; i <= 1; ++i) {
      const double value = n[j + 1][i + 1];
      b += i * value / 6, c += j * value / 6, e += i * j * value / 4;
      d += (3 * i * i - 2) * value / 6, f += (3 * j * j - 2) * value / 6;
    }
  const double det = 4 * d * f - e * e;
  if (!(d < 0 && det > 0)) return {0, 0};
  return {std::clamp((e * c - 2 * f * b) / det, -1.0, 1.0), std::clamp((e * b - 2 * d * c) / det, -1.0, 1.0)};
}

/// The search of a point, step by step.
FollowedTo naive_follow(const MovedNoise& images, const kernels::PreparedSubset& s, FollowedTo start,
                        int steps) {
  const int w = s.right - s.left + 1, h = s.bottom - s.top + 1;
  for (int step = 0; step <= steps; ++step) {
    const auto centre = [](double d) {
      return static_cast<int>(d < 0 ? std::ceil(d - 0.5) : std::floor(d + 0.5));
    };
    const int u = centre(start.u), v = centre(start.v);
    const auto score = [&](int i, int j) {
      return std::max(std::abs(i), std::abs(j)) > 2
                 ? NAN
                 : images.zncc(s.x + s.left, s.y + s.top, w, h, u + i, v + j);
    };
    int at_x = 0, at_y = 0;
    double best = -2;
    for (int j = -2; j <= 2; ++j)
      for (int i = -2; i <= 2; ++i)
        if (score(i, j) > best) best = score(i, j), at_x = i, at_y = j;
    if (best < start.score) break;
    double around[3][3];
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) {
        around[j][i] = score(at_x + i - 1, at_y + j - 1);
        if (std::isnan(around[j][i])) around[j][i] = best;
      }
    const auto [x, y] = naive_fit(around);
    start = {u + at_x + x, v + at_y + y, best};
    if (std::max(std::abs(at_x), std::abs(at_y)) < 2) break;
  }
  return start;
}

TEST_F(Points, PeaksAreFollowedAsFarAsAsked) {
  constexpr int radius = PointsState::radius, size = 2 * radius + 1, range = 2;
  const Stream stream;
  PointsState s({31, 33}, 5);
  const DevicePoints device(s, stream);
  const MovedNoise images(s.width, s.height);
  List some;
  for (int i = 0; i < s.count(); ++i) {
    if (s.subsets[i].weighted || s.subsets[i].status != Status::ok) continue;
    some.push_back(i);
    PointStart& start = s.starts[i];
    start.u = MovedNoise::u + s.integer(-9, 9), start.v = MovedNoise::v + s.integer(-9, 9);
    start.score = s.chance(0.1) ? PointStart::kLeftToNeighbours : -1;
  }
  const auto n = static_cast<std::int64_t>(some.size());
  const DeviceArray<std::int32_t> list(some, stream);
  const DeviceArray<PatchPosition> windows(n, stream);
  const DeviceArray<Peak> peaks(n, stream);
  for (const int pitch : {s.width + 5, 256})  // unaligned rows, aligned rows
    for (const int steps : {0, 2, 8}) {
      SCOPED_TRACE(testing::Message() << "pitch " << pitch << ", " << steps << " steps");
      kernels::DeviceBuffer pixels[2], table;
      kernels::DeviceImage described[2];
      for (int k = 0; k < 2; ++k) {
        described[k] = {pixels[k].reserve(pitch * s.height + 256), pitch, s.width, s.height};
        kernels::upload(pixels[k].data(), pitch, (k == 0 ? images.reference : images.current).data(), s.width,
                        s.width, s.height, stream);
      }
      kernels::upload(table.reserve(sizeof(described)), described, sizeof(described), stream);
      const auto* pair = static_cast<const kernels::DeviceImage*>(table.data());
      kernels::NccJob job{
          .reference = {.images = pair, .count = n, .height = size, .width = size},
          .search = {.images = pair + 1, .count = n, .height = size + 2 * range, .width = size + 2 * range},
          .shifts = {0, 2 * range, 0, 2 * range},
          .pairs = n};
      ASSERT_EQ(kernels::follow_unsupported_reason(job), "");
      const DeviceArray<PointStart> starts(s.starts, stream);
      kernels::launch_follow_peaks(job, device.points,
                                   {list.data(), range, steps, starts.data(), windows.data(), peaks.data()},
                                   stream.handle());
      const auto got = starts.values(stream);
      int moved = 0;
      for (const int i : some) {
        const PointStart& before = s.starts[i];
        if (before.score == PointStart::kLeftToNeighbours) {
          ASSERT_TRUE(same_bytes<PointStart>({got[i]}, {before})) << i;
          continue;
        }
        const auto want = naive_follow(
            images, s.subsets[i],
            {before.u + double{before.shape.u[0]}, before.v + double{before.shape.v[0]}, -1}, steps);
        ASSERT_NEAR(got[i].u + double{got[i].shape.u[0]}, want.u, 2e-3) << i;
        ASSERT_NEAR(got[i].v + double{got[i].shape.v[0]}, want.v, 2e-3) << i;
        ASSERT_NEAR(got[i].score, want.score, 1e-5) << i;
        for (int k = 1; k < 6; ++k) ASSERT_EQ(got[i].shape.u[k], before.shape.u[k]);
        moved += std::hypot(want.u - before.u, want.v - before.v) > 5;
      }
      EXPECT_EQ(moved > 0, steps > 0);
    }
}

/// Largest error at the points of a motion that changes by 1 px per pixel: the fit to some points counts
/// their positions as uncertain by 1 px, which flattens it along the direction in which they spread least.
double flattening_at_most(const PointsState& s, const std::vector<int>& fitted) {
  Eigen::Matrix2d spread = Eigen::Matrix2d::Zero();
  Eigen::Vector2d mean = Eigen::Vector2d::Zero();
  const auto at = [&](int i) -> Eigen::Vector2d { return {s.x[i], s.y[i]}; };
  for (const int i : fitted) mean += at(i) / static_cast<double>(fitted.size());
  for (const int i : fitted)
    spread += (at(i) - mean) * (at(i) - mean).transpose() / static_cast<double>(fitted.size());
  double farthest = 0;
  for (int i = 0; i < s.count(); ++i) farthest = std::max(farthest, (at(i) - mean).norm());
  const double least = Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d>(spread).eigenvalues().minCoeff();
  return farthest / (1 + least);
}

TEST_F(Points, FollowTheMotionThatAFewTell) {
  constexpr float found = 0.5F;
  constexpr std::int32_t far = 5;
  const auto u_of = [](const PointsState& s, int i) { return far + 0.01 * s.x[i] - 0.02 * s.y[i]; };
  const auto v_of = [](const PointsState& s, int i) { return -0.6 + 0.015 * s.x[i]; };
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<TrackedPoint> last(s.tracked, stream);
    const DeviceArray<std::int32_t> list(track::kMotionSamples, stream);
    const DeviceArray<PointStart> predicted(track::kMotionSamples, stream);
    const DeviceArray<track::MotionSample> samples(2 * track::kMotionSamples, stream);
    const DeviceArray<track::LinearMotion> motion(1, stream);
    for (const int gpus : {1, 2}) {
      SCOPED_TRACE(testing::Message() << gpus << " GPUs");
      const DeviceArray<PointStart> starts(s.starts, stream);
      std::vector<int> asked_points;
      for (int gpu = 0; gpu < gpus; ++gpu) {
        kernels::GridPoints points = device.points;
        points.own = {s.count() * gpu / gpus, s.count() * (gpu + 1) / gpus};
        const kernels::AskedPoints asked{list.data(), predicted.data(),
                                         samples.data() + gpu * track::kMotionSamples};
        kernels::launch_ask_points(points, last.data(), starts.data(), asked, stream.handle());
        const std::vector<std::int32_t> listed = list.values(stream);
        std::vector<PointStart> searched = s.starts;
        for (int k = 0; k < track::kMotionSamples; ++k) {
          const int i = static_cast<int>(std::int64_t{k} * s.count() / track::kMotionSamples);
          const bool is_asked = i >= points.own.first && i < points.own.last && trackable(s, i) &&
                                !s.subsets[i].weighted && (measured(s, i) || naive_best_neighbour(s, i) >= 0);
          ASSERT_EQ(listed[k], is_asked ? i : -1);
          if (!is_asked) continue;
          asked_points.push_back(i);
          PointStart& start = searched[i];
          start = s.starts[i];
          start.u += far, start.score = 0.9F;
          start.shape.u[0] += static_cast<float>(u_of(s, i) - far);
          start.shape.v[0] += static_cast<float>(v_of(s, i));
        }
        const DeviceArray<PointStart> after(searched, stream);
        kernels::launch_sample_motion(points, asked, found, after.data(), stream.handle());
        ASSERT_TRUE(same_bytes(after.values(stream), s.starts)) << "starts are put back";
      }
      kernels::launch_follow_motion(device.points, samples.data(), gpus, 2, motion.data(), starts.data(),
                                    stream.handle());
      const auto got = starts.values(stream);
      const bool is_known = asked_points.size() >= 8;
      const double largest_slope = std::hypot(0.01, 0.02);
      const double flattened = 1e-3 + (is_known ? largest_slope * flattening_at_most(s, asked_points) : 0);
      for (int i = 0; i < s.count(); ++i) {
        const PointStart& before = s.starts[i];
        const double u = before.u + double{before.shape.u[0]}, v = before.v + double{before.shape.v[0]};
        ASSERT_NEAR(got[i].u + double{got[i].shape.u[0]}, u + (is_known ? u_of(s, i) : 0), flattened) << i;
        ASSERT_NEAR(got[i].v + double{got[i].shape.v[0]}, v + (is_known ? v_of(s, i) : 0), flattened) << i;
        for (int k = 1; k < 6; ++k) ASSERT_EQ(got[i].shape.u[k], before.shape.u[k]);
        ASSERT_EQ(got[i].score, before.score);
      }
    }
  });
}

TEST_F(Points, LostStartsAreListedAndBetterOnesKept) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<PointStart> starts(s.starts, stream);
    excuse_some(s);
    const DeviceArray<TrackedPoint> last(s.tracked, stream);
    const std::vector<Effort> efforts = some_efforts(s);
    const DeviceArray<Effort> device_efforts(efforts, stream);
    for (const bool is_limited : {false, true}) {
      kernels::GridPoints points = device.points;
      points.efforts = is_limited ? device_efforts.data() : nullptr;
      List want;
      std::int32_t want_excused = 0;
      for (int i = 0; i < s.count(); ++i) {
        if (!trackable(s, i) || s.starts[i].score >= 0.5f) continue;
        if (is_limited && efforts[i] != Effort::search) continue;
        want.push_back(i);
        want_excused += is_excused(s, i);
      }
      for (const bool has_last : {true, false}) {
        const DeviceList lost(s.count(), stream);
        const DeviceArray<std::int32_t> excused(1, stream);
        kernels::launch_list_lost_starts(points, has_last ? last.data() : nullptr, nullptr, starts.data(),
                                         0.5f, lost.list(), excused.data(), stream.handle());
        ASSERT_EQ(lost.sorted(stream), want);
        ASSERT_EQ(excused.value(stream), has_last ? want_excused : 0);
        kernels::launch_list_lost_starts(points, has_last ? last.data() : nullptr, last.data(), starts.data(),
                                         0.5f, lost.list(), excused.data(), stream.handle());
        List want_unmeasured = want;
        std::erase_if(want_unmeasured, [&](int i) { return s.tracked[i].result.status == Status::ok; });
        ASSERT_EQ(lost.sorted(stream), want_unmeasured);
      }
    }

    for (PointStart& start : s.starts)
      if (s.chance(0.1)) start.score = PointStart::kLeftToNeighbours;
    const DeviceArray<PointStart> own(s.starts, stream);
    std::vector<PointStart> others = s.starts, best = s.starts;
    for (PointStart& other : others) other.u += 100, other.score = static_cast<float>(s.uniform(-1, 1));
    for (int i = 0; i < s.count(); ++i)
      if (others[i].score > best[i].score && best[i].score != PointStart::kLeftToNeighbours)
        best[i] = others[i];
    const DeviceArray<PointStart> device_others(others, stream);
    kernels::launch_keep_better_starts(s.count(), device_others.data(), own.data(), stream.handle());
    EXPECT_TRUE(same_bytes(own.values(stream), best));
  });
}

}  // namespace
}  // namespace dic::test

#include <dic/kernels/follow_peaks.hpp>
#include <dic/kernels/points.hpp>
#include <functional>
#include <limits>

#include "kernels/points_state.hpp"
#include "support/gpu_test.hpp"

// What the kernels make of the points of a frame, against loops on the host that share no code with them.
namespace dic::test {
namespace {

using kernels::GridPoints;
using kernels::PointStart;
using kernels::RefineResult;
using kernels::RefineTask;
using kernels::RelativeShape;
using kernels::Stream;
using kernels::TrackedPoint;
using track::MaterialPoint;

using List = std::vector<std::int32_t>;

constexpr PointsCase cases[] = {
    {1, 1, false, false}, {1, 1}, {1, 9}, {17, 1}, {2, 2}, {31, 33}, {31, 33, false, false}, {310, 240},
};

/// Runs `check` on every case.
void on_all(const std::function<void(PointsState&, const DevicePoints&, const Stream&)>& check) {
  unsigned seed = 1;
  for (const PointsCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c);
    const Stream stream;
    PointsState state(c, seed++);
    check(state, DevicePoints(state, stream), stream);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// ---- displacements, written out ----

double value_at(std::int32_t whole, const float* c, double dx, double dy) {
  return whole + (double{c[0]} + c[1] * dx + c[2] * dy + c[3] * dx * dx + c[4] * dx * dy + c[5] * dy * dy);
}

void expect_continued(const float* got, std::int32_t got_whole, const float* from, std::int32_t whole,
                      double dx, double dy) {
  constexpr double tolerance = 1e-6;
  ASSERT_LE(std::abs(got[0]), 0.5 + tolerance);
  ASSERT_NEAR(got_whole + double{got[0]}, value_at(whole, from, dx, dy), tolerance);
  ASSERT_NEAR(got[1], from[1] + 2.0 * from[3] * dx + from[4] * dy, tolerance);
  ASSERT_NEAR(got[2], from[2] + from[4] * dx + 2.0 * from[5] * dy, tolerance);
  for (int k = 3; k < 6; ++k) ASSERT_FLOAT_EQ(got[k], from[k]);
}

/// Is (u, v, shape) the shape of `from`, continued from point a to point b?
void expect_start(const PointsState& s, std::int32_t u, std::int32_t v, const RelativeShape& shape, int a,
                  int b) {
  const TrackedPoint& from = s.tracked[a];
  const double dx = s.x[b] - s.x[a], dy = s.y[b] - s.y[a];
  expect_continued(shape.u, u, from.result.shape.u, from.u, dx, dy);
  expect_continued(shape.v, v, from.result.shape.v, from.v, dx, dy);
}

bool trackable(const PointsState& s, int i) { return s.subsets[i].status == Status::ok; }
bool measured(const PointsState& s, int i) { return s.tracked[i].result.status == Status::ok; }
float zncc(const PointsState& s, int i) { return s.tracked[i].result.zncc; }

bool naive_agree(const PointsState& s, int a, int b) {
  if (!measured(s, a) || !measured(s, b)) return false;
  const TrackedPoint &p = s.tracked[a], &q = s.tracked[b];
  const double dx = s.x[b] - s.x[a], dy = s.y[b] - s.y[a];
  return std::hypot(value_at(p.u, p.result.shape.u, dx, dy) - (q.u + double{q.result.shape.u[0]}),
                    value_at(p.v, p.result.shape.v, dx, dy) - (q.v + double{q.result.shape.v[0]})) <= 2;
}

int naive_best_neighbour(const PointsState& s, int i) {
  int best = -1;
  for (const int n : s.neighbours(i))
    if (measured(s, n) && (best < 0 || zncc(s, n) > zncc(s, best))) best = n;
  return best;
}

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

using Points = GpuTest;

// ---- starts ----

TEST_F(Points, StartWhereTheyWere) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<TrackedPoint> last(s.tracked, stream);
    const DeviceArray<PointStart> starts(s.count(), stream);
    const DeviceList without(s.count(), stream);
    kernels::launch_starts_from_last(device.points, last.data(), starts.data(), without.list(),
                                     stream.handle());
    const auto got = starts.values(stream);
    List want;
    for (int i = 0; i < s.count(); ++i) {
      const int from = measured(s, i) ? i : naive_best_neighbour(s, i);
      ASSERT_EQ(got[i].score, -1);
      if (trackable(s, i) && from >= 0)
        ASSERT_NO_FATAL_FAILURE(expect_start(s, got[i].u, got[i].v, got[i].shape, from, i));
      else
        ASSERT_TRUE(same_bytes<PointStart>({got[i]}, {PointStart{}}));
      if (trackable(s, i) && from < 0) want.push_back(i);
    }
    EXPECT_EQ(without.sorted(stream), want);
  });
}

TEST_F(Points, StartAtZeroInTheFirstFrame) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<PointStart> starts(s.count(), stream);
    const DeviceList without(s.count(), stream);
    kernels::launch_starts_from_last(device.points, nullptr, starts.data(), without.list(), stream.handle());
    EXPECT_TRUE(same_bytes(starts.values(stream), std::vector<PointStart>(s.count())));
    List want;
    for (int i = 0; i < s.count(); ++i)
      if (trackable(s, i)) want.push_back(i);
    EXPECT_EQ(without.sorted(stream), want);
  });
}

/// A coarse field of straight lines, which stays as it is between nodes and ends at the outermost ones.
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
      kernels::launch_starts_from_field(device.points, list.data(), std::ssize(some), lattice,
                                        device_u.data(), device_v.data(), starts.data(), stream.handle());
      const auto got = starts.values(stream);
      std::vector<PointStart> others = s.starts;
      for (const int i : some) {
        ASSERT_EQ(got[i].score, -1);
        ASSERT_NEAR(got[i].u + double{got[i].shape.u[0]}, u.at(s.x[i], s.y[i]), 1e-4);
        ASSERT_NEAR(got[i].v + double{got[i].shape.v[0]}, v.at(s.x[i], s.y[i]), 1e-4);
        const bool steep = slope > 0.05;  // else the slopes are no more than noise
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
    kernels::launch_place_windows(device.points, list.data(), n, PointsState::radius, range, starts.data(),
                                  references.data(), windows.data(), stream.handle());
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
      const bool beyond = s.chance(0.1);  // the fit's maximum lies outside the neighbourhood
      offsets.push_back({beyond ? 1.8 : s.uniform(-0.6, 0.6), beyond ? -1.9 : s.uniform(-0.6, 0.6)});
      peaks.push_back(peak_at(s, offsets.back()[0], offsets.back()[1]));
      for (double& offset : offsets.back()) offset = std::clamp(offset, -1.0, 1.0);
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
      kernels::launch_take_peaks(list.data(), n, references.data(), windows.data(), device_peaks.data(),
                                 follow, starts.data(), again.list(), stream.handle());
      const auto got = starts.values(stream);
      List want_again;
      std::vector<PointStart> kept = s.starts;
      for (int k = 0; k < n; ++k) {
        const int i = some[k];
        const PointStart& before = s.starts[i];
        if (!peaks[k].found || peaks[k].score < before.score) continue;
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

/// Two images of smooth noise, one moved by (6, -5).
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
  /// NaN where the displaced subset leaves the image.
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

/// A point's search, step by step.
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
    start.u = MovedNoise::u + s.integer(-9, 9), start.v = MovedNoise::v + s.integer(-9, 9), start.score = -1;
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

TEST_F(Points, LostStartsAreListedAndBetterOnesKept) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<PointStart> starts(s.starts, stream);
    const DeviceList lost(s.count(), stream);
    kernels::launch_list_lost_starts(device.points, starts.data(), 0.5f, lost.list(), stream.handle());
    List want;
    for (int i = 0; i < s.count(); ++i)
      if (trackable(s, i) && s.starts[i].score < 0.5f) want.push_back(i);
    ASSERT_EQ(lost.sorted(stream), want);

    std::vector<PointStart> others = s.starts, best = s.starts;
    for (PointStart& other : others) other.u += 100, other.score = static_cast<float>(s.uniform(-1, 1));
    for (int i = 0; i < s.count(); ++i)
      if (others[i].score > best[i].score) best[i] = others[i];
    const DeviceArray<PointStart> device_others(others, stream);
    kernels::launch_keep_better_starts(s.count(), device_others.data(), starts.data(), stream.handle());
    EXPECT_TRUE(same_bytes(starts.values(stream), best));
  });
}

// ---- recovery ----

std::vector<RefineTask> sorted(const DeviceArray<RefineTask>& tasks, const DeviceArray<std::int32_t>& count,
                               const Stream& stream) {
  auto all = tasks.values(stream);
  const std::int32_t n = count.value(stream);
  EXPECT_TRUE(n >= 0 && n <= std::ssize(all)) << n;
  all.resize(std::clamp<std::ptrdiff_t>(n, 0, std::ssize(all)));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.point < b.point; });
  return all;
}

RefineTask naive_task(const PointsState& s, int i, int order) {
  RefineTask task{i, s.starts[i].u, s.starts[i].v, s.starts[i].shape};
  for (int k = order == 0 ? 1 : order == 1 ? 3 : 6; k < 6; ++k) task.start.u[k] = task.start.v[k] = 0;
  return task;
}

TEST_F(Points, BeginUnrefined) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<PointStart> starts(s.starts, stream);
    for (const int order : {0, 1, 2}) {
      const DeviceArray<TrackedPoint> tracked(s.count(), stream);
      const DeviceArray<RefineTask> tasks(s.count(), stream);
      const DeviceArray<std::int32_t> count(1, stream);
      kernels::launch_initial_tasks(device.points, starts.data(), 0.4f, order, tracked.data(), tasks.data(),
                                    count.data(), stream.handle());
      std::vector<TrackedPoint> want(s.count());
      std::vector<RefineTask> want_tasks(s.count());
      for (int i = 0; i < s.count(); ++i) {
        want[i].result.status = trackable(s, i) ? Status::low_correlation : s.subsets[i].status;
        want[i].result.zncc = std::max(0.0f, s.starts[i].score);
        const bool wanted = trackable(s, i) && s.starts[i].score >= 0.4f;
        want_tasks[i] =
            wanted ? naive_task(s, i, order) : RefineTask{.point = kernels::no_point, .start = {}};
      }
      EXPECT_TRUE(same_bytes(tracked.values(stream), want));
      EXPECT_TRUE(same_bytes(tasks.values(stream), want_tasks)) << "order " << order;
      EXPECT_EQ(count.value(stream), s.count());
    }
  });
}

TEST_F(Points, SelectARungOfStarts) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<PointStart> starts(s.starts, stream);
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    for (const int order : {0, 1, 2}) {
      const DeviceArray<RefineTask> tasks(s.count(), stream);
      const DeviceArray<std::int32_t> count(1, stream);
      kernels::launch_tasks_from_starts(device.points, tracked.data(), starts.data(), 0.3f, 0.7f, order,
                                        tasks.data(), count.data(), stream.handle());
      std::vector<RefineTask> want;
      for (int i = 0; i < s.count(); ++i) {
        const PointStart& start = s.starts[i];
        if (measured(s, i) || !trackable(s, i) || start.score < 0.3f || start.score >= 0.7f) continue;
        want.push_back(naive_task(s, i, order));
      }
      EXPECT_TRUE(same_bytes(sorted(tasks, count, stream), want)) << "order " << order;
      kernels::launch_tasks_from_starts(device.points, tracked.data(), starts.data(), 0.3f, 0.7f, order,
                                        nullptr, count.data(), stream.handle());
      EXPECT_EQ(count.value(stream), std::ssize(want)) << "order " << order;
    }
  });
}

TEST_F(Points, AcceptWhatIsBetter) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    std::vector<RefineTask> tasks;
    std::vector<RefineResult> results;
    for (int i = s.count() - 1; i >= 0; i -= 1 + s.integer(0, 1)) {
      tasks.push_back({i, s.integer(-9, 9), s.integer(-9, 9), s.shape()});
      RefineResult r;
      r.shape = s.shape();
      r.zncc = s.chance(0.1) ? zncc(s, i) : static_cast<float>(s.uniform(0.6, 1));
      r.iterations = 3;
      r.status = s.chance(0.6) ? Status::ok : Status::diverged;
      results.push_back(r);
    }
    std::vector<TrackedPoint> want = s.tracked;
    std::vector<std::uint8_t> want_fresh(s.count(), 0);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      TrackedPoint& known = want[tasks[k].point];
      const bool ok = results[k].status == Status::ok, was_ok = known.result.status == Status::ok;
      const bool taken = ok ? !was_ok || results[k].zncc > known.result.zncc : known.result.iterations == 0;
      if (!taken) continue;
      known = {tasks[k].u, tasks[k].v, results[k]};
      want_fresh[tasks[k].point] = ok;
    }
    const DeviceArray<RefineTask> device_tasks(tasks, stream);
    const DeviceArray<RefineResult> device_results(results, stream);
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> fresh(s.count(), stream);
    const DeviceArray<std::int32_t> listed(std::vector{static_cast<int>(tasks.size())}, stream);
    kernels::launch_accept_results(device.points, {device_tasks.data(), s.count(), listed.data()},
                                   device_results.data(), tracked.data(), fresh.data(), stream.handle());
    EXPECT_TRUE(same_bytes(tracked.values(stream), want));
    EXPECT_EQ(fresh.values(stream), want_fresh);
  });
}

/// Three others, who know a range of the points each.
TEST_F(Points, WhatOthersKnowIsTakenOver) {
  on_all([](PointsState& s, const DevicePoints&, const Stream& stream) {
    std::vector<TrackedPoint> theirs = s.tracked;
    for (TrackedPoint& point : theirs) point.u += 1 + s.integer(0, 9);
    std::vector<std::uint8_t> fresh(s.count()), their_fresh(s.count());
    for (std::uint8_t& one : their_fresh) one = s.chance(0.5);
    const std::int64_t n = s.count();
    const kernels::PointRange first{0, n / 5}, second{n / 2, n / 2 + n / 3};
    std::vector<TrackedPoint> want = s.tracked;
    std::vector<std::uint8_t> want_fresh = fresh;
    for (const kernels::PointRange& range : {first, second, {n - n / 10, n}}) {
      std::copy(theirs.begin() + range.first, theirs.begin() + range.last, want.begin() + range.first);
      std::copy(their_fresh.begin() + range.first, their_fresh.begin() + range.last,
                want_fresh.begin() + range.first);
    }
    const DeviceArray<TrackedPoint> device_theirs(theirs, stream);
    const DeviceArray<std::uint8_t> device_their_fresh(their_fresh, stream);
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> own_fresh(fresh, stream);
    const kernels::HaloSource heard[] = {{device_theirs.data(), device_their_fresh.data(), first},
                                         {device_theirs.data(), device_their_fresh.data(), second},
                                         {device_theirs.data(), device_their_fresh.data(), {n - n / 10, n}}};
    kernels::launch_read_halo(heard, tracked.data(), own_fresh.data(), stream.handle());
    EXPECT_TRUE(same_bytes(tracked.values(stream), want));
    EXPECT_EQ(own_fresh.values(stream), want_fresh);
  });
}

TEST_F(Points, TheFrontLiesBesideFreshOnes) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    std::vector<std::uint8_t> fresh(s.count());
    for (int i = 0; i < s.count(); ++i) fresh[i] = measured(s, i) && s.chance(0.2);
    List want;
    for (int i = 0; i < s.count(); ++i) {
      if (!trackable(s, i)) continue;
      bool wanted = false;
      for (const int n : s.neighbours(i)) {
        if (!fresh[n]) continue;
        const bool doubtful = zncc(s, i) < std::min(0.9f, zncc(s, n));
        wanted = wanted || !measured(s, i) || (doubtful && !naive_agree(s, n, i));
      }
      if (wanted) want.push_back(i);
    }
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> device_fresh(fresh, stream);
    const DeviceArray<RefineTask> tasks(s.count(), stream);
    const DeviceArray<std::int32_t> count(1, stream);
    kernels::launch_recovery_tasks(device.points, tracked.data(), device_fresh.data(), tasks.data(),
                                   count.data(), stream.handle());
    const auto got = sorted(tasks, count, stream);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t k = 0; k < want.size(); ++k) {
      ASSERT_EQ(got[k].point, want[k]);
      const int from = naive_best_neighbour(s, want[k]);
      ASSERT_NO_FATAL_FAILURE(expect_start(s, got[k].u, got[k].v, got[k].start, from, want[k]));
    }
  });
}

// ---- verdicts ----

/// All points that a point reaches through neighbours that agree and are not certain.
bool naive_unconfirmed(const PointsState& s, int seed) {
  if (!measured(s, seed) || zncc(s, seed) >= 0.9f) return false;
  List island{seed};
  bool contested = false, certain = false;
  for (std::size_t head = 0; head < island.size() && island.size() <= 12; ++head)
    for (const int n : s.neighbours(island[head])) {
      if (!trackable(s, n)) continue;
      if (!naive_agree(s, island[head], n)) {
        contested = true;
        continue;
      }
      certain = certain || zncc(s, n) >= 0.9f;
      if (zncc(s, n) < 0.9f && std::find(island.begin(), island.end(), n) == island.end())
        island.push_back(n);
    }
  return contested && !certain && island.size() <= 12;
}

TEST_F(Points, SmallIslandsAreDropped) {
  int dropped_in_all = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    std::vector<TrackedPoint> want = s.tracked;
    for (int i = 0; i < s.count(); ++i) {
      if (!naive_unconfirmed(s, i)) continue;
      want[i].result.status = Status::low_correlation;
      ++dropped_in_all;
    }
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<track::NeighbourSupport> supports(s.count(), stream);
    const DeviceList dropped(s.count(), stream);
    kernels::launch_drop_unconfirmed(device.points, tracked.data(), supports.data(), dropped.list(),
                                     stream.handle());
    EXPECT_TRUE(same_bytes(tracked.values(stream), want));
    kernels::launch_restore_dropped(dropped.list(), tracked.data(), stream.handle());
    EXPECT_TRUE(same_bytes(tracked.values(stream), s.tracked));
  });
  EXPECT_GT(dropped_in_all, 100);
}

// ---- shares of several GPUs ----

/// Points of which a third is measured here; the poison hides what is not known of the others.
struct MiddleShare {
  PointsState state;
  GridPoints points;

  MiddleShare(const PointsState& s, const GridPoints& all) : state(s), points(all) {
    points.own = {s.count() / 3, 2 * s.count() / 3};
    points.known = points.own;
    if (points.own.count() == 0) return;
    const auto row_of = [&](std::int64_t i) { return s.node_of[i] / s.nx; };
    const int first = row_of(points.own.first) - kernels::kIslandReach,
              last = row_of(points.own.last - 1) + kernels::kIslandReach;
    while (points.known.first > 0 && row_of(points.known.first - 1) >= first) --points.known.first;
    while (points.known.last < s.count() && row_of(points.known.last) <= last) ++points.known.last;
    for (std::int64_t i = 0; i < s.count(); ++i)
      if (i < points.known.first || i >= points.known.last)
        std::memset(static_cast<void*>(&state.tracked[i]), device_poison, sizeof(TrackedPoint));
  }

  List own_of(List all) const {
    std::erase_if(all, [&](std::int32_t i) { return i < points.own.first || i >= points.own.last; });
    return all;
  }
};

TEST_F(Points, OfAShareAreTreatedAsAmongAll) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const MiddleShare share(s, device.points);
    std::vector<std::uint8_t> fresh(s.count());
    for (int i = 0; i < s.count(); ++i) fresh[i] = measured(s, i) && s.chance(0.2);
    const DeviceArray<std::uint8_t> device_fresh(fresh, stream);
    const DeviceArray<PointStart> starts(s.starts, stream);
    std::vector<List> lists[2];
    for (const bool all : {true, false}) {
      const GridPoints& points = all ? device.points : share.points;
      const DeviceArray<TrackedPoint> tracked(all ? s.tracked : share.state.tracked, stream);
      const DeviceArray<PointStart> from_last(s.count(), stream);
      const DeviceList without(s.count(), stream), whole(s.count(), stream), cut(s.count(), stream),
          lost(s.count(), stream);
      kernels::launch_starts_from_last(points, tracked.data(), from_last.data(), without.list(),
                                       stream.handle());
      kernels::launch_split_subsets(points, nullptr, s.count(), PointsState::radius, whole.list(), cut.list(),
                                    stream.handle());
      kernels::launch_list_lost_starts(points, starts.data(), 0.5f, lost.list(), stream.handle());
      for (const DeviceList* list : {&without, &whole, &cut, &lost})
        lists[all].push_back(list->sorted(stream));
      const DeviceArray<RefineTask> tasks(s.count(), stream);
      const DeviceArray<std::int32_t> count(1, stream);
      const auto add_points = [&] {
        List& list = lists[all].emplace_back();
        for (const RefineTask& task : sorted(tasks, count, stream)) list.push_back(task.point);
      };
      kernels::launch_tasks_from_starts(points, tracked.data(), starts.data(), 0.3f, 0.7f, 1, tasks.data(),
                                        count.data(), stream.handle());
      add_points();
      kernels::launch_recovery_tasks(points, tracked.data(), device_fresh.data(), tasks.data(), count.data(),
                                     stream.handle());
      add_points();
      const DeviceArray<TrackedPoint> begun(s.count(), stream);
      kernels::launch_initial_tasks(points, starts.data(), 0.4f, 1, begun.data(), tasks.data(), count.data(),
                                    stream.handle());
      ASSERT_EQ(count.value(stream), points.own.count());
      const std::vector<RefineTask> in_order = tasks.values(stream);
      List& list = lists[all].emplace_back();
      for (std::int64_t k = 0; k < points.own.count(); ++k) {
        if (in_order[k].point == kernels::no_point) continue;
        ASSERT_EQ(in_order[k].point, points.own.first + k);
        list.push_back(in_order[k].point);
      }
    }
    for (std::size_t k = 0; k < lists[0].size(); ++k)
      EXPECT_EQ(lists[false][k], share.own_of(lists[true][k])) << "list " << k;
  });
}

TEST_F(Points, IslandsOfAShareAreDroppedAsAmongAll) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const MiddleShare share(s, device.points);
    const DeviceArray<track::NeighbourSupport> supports(s.count(), stream);
    const DeviceArray<TrackedPoint> all(s.tracked, stream), some(share.state.tracked, stream);
    const DeviceList dropped(s.count(), stream);
    kernels::launch_drop_unconfirmed(device.points, all.data(), supports.data(), dropped.list(),
                                     stream.handle());
    kernels::launch_drop_unconfirmed(share.points, some.data(), supports.data(), dropped.list(),
                                     stream.handle());
    const auto want = all.values(stream), got = some.values(stream);
    const auto row_of = [&](std::int64_t i) { return s.node_of[i] / s.nx; };
    const auto& own = share.points.own;
    for (std::int64_t i = share.points.known.first; i < share.points.known.last; ++i)
      if (row_of(i) >= row_of(own.first) - 1 && row_of(i) <= row_of(own.last - 1) + 1) {
        EXPECT_EQ(got[i].result.status, want[i].result.status) << i;
      }
  });
}

// ---- lost points ----

/// Waves from all measured points; of neighbours in the wave before, the first is heard.
std::vector<int> naive_sources(const PointsState& s) {
  std::vector<int> source(s.count(), -1);
  for (int i = 0; i < s.count(); ++i)
    if (measured(s, i)) source[i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<int> before = source;
    for (int i = 0; i < s.count(); ++i)
      for (const int n : s.neighbours(i))
        if (source[i] < 0 && before[n] >= 0) source[i] = before[n], changed = true;
  }
  return source;
}

/// Is a part of the pixels [at - r, at + r] that was inside [0, size) moved out of it, by half a pixel at
/// least?
bool naive_leaves(int at, int size, double displacement) {
  const int r = PointsState::radius;
  const double first = std::max(0, at - r) + displacement, last = std::min(size - 1, at + r) + displacement;
  return first < -0.5 || last > size - 0.5;
}

double first_order_at(std::int32_t whole, const float* c, double dx, double dy) {
  return whole + (double{c[0]} + c[1] * dx + c[2] * dy);
}

void check_explained(PointsState& s, const DevicePoints& device, const Stream& stream, int& left) {
  std::vector<TrackedPoint> want = s.tracked;
  const std::vector<int> sources = naive_sources(s);
  for (int i = 0; i < s.count(); ++i) {
    const int a = sources[i];
    if (a < 0 || a == i || !trackable(s, i)) continue;
    const TrackedPoint& from = s.tracked[a];
    const double dx = s.x[i] - s.x[a], dy = s.y[i] - s.y[a];
    if (!naive_leaves(s.x[i], s.width, first_order_at(from.u, from.result.shape.u, dx, dy)) &&
        !naive_leaves(s.y[i], s.height, first_order_at(from.v, from.result.shape.v, dx, dy)))
      continue;
    want[i].result.status = Status::out_of_image;
    ++left;
  }
  const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
  const DeviceArray<std::uint8_t> workspace(kernels::classify_lost_workspace_bytes(s.count()), stream);
  kernels::launch_classify_lost(device.points, tracked.data(), PointsState::radius, s.width, s.height,
                                workspace.data(), stream.handle());
  EXPECT_TRUE(same_bytes(tracked.values(stream), want));
}

TEST_F(Points, ThoseThatLeftTheImageAreToldApart) {
  int left = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    check_explained(s, device, stream, left);
  });
  EXPECT_GT(left, 100);
}

TEST_F(Points, FewMeasuredPointsExplainAllOthers) {
  int left = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    for (auto& point : s.tracked)
      if (point.result.status == Status::ok) point.result.status = Status::diverged;
    check_explained(s, device, stream, left);  // nobody to ask
    for (int k = 0; k < 3; ++k) {
      const int i = s.integer(0, s.count() - 1);
      if (trackable(s, i)) s.tracked[i].result.status = Status::ok;
    }
    check_explained(s, device, stream, left);
  });
  EXPECT_GT(left, 500);
}

// ---- fields ----

/// A table of straight lines, which interpolation does not change.
double naive_gain(double displacement) { return 1 - 0.8 * std::abs(displacement - std::round(displacement)); }

double naive_noise(const PointsState& s) {
  std::vector<double> all;
  for (int i = 0; i < s.count(); ++i) {
    if (!measured(s, i)) continue;
    const TrackedPoint& p = s.tracked[i];
    double gain = 0;
    for (const double dy : {-6.7, 0.0, 6.7})
      for (const double dx : {-6.7, 0.0, 6.7})
        gain += naive_gain(value_at(0, p.result.shape.u, dx, dy)) *
                naive_gain(value_at(0, p.result.shape.v, dx, dy));
    all.push_back(p.result.residual_sd / std::sqrt(1 + gain / 9));
  }
  std::sort(all.begin(), all.end());
  return all.empty() ? 0 : all[all.size() / 2];
}

TEST_F(Points, TheNoiseIsAMedian) {
  track::NoiseGains gains;
  for (int k = 0; k <= 32; ++k) gains.gain[k] = naive_gain(k / 64.0);
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    for (const bool some : {true, false}) {
      for (auto& point : s.tracked)
        if (!some) point.result.status = Status::diverged;
      const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
      const DeviceArray<std::uint8_t> workspace(kernels::noise_workspace_bytes(s.count()), stream);
      const DeviceArray<double> noise(1, stream);
      kernels::launch_estimate_noise(device.points, tracked.data(), gains, PointsState::radius, noise.data(),
                                     workspace.data(), stream.handle());
      const double want = naive_noise(s);
      EXPECT_NEAR(noise.value(stream), want, 1e-6 * want);
    }
  });
}

TEST_F(Points, EqualResidualsAndZeroHaveAMedian) {
  const Stream stream;
  PointsState s({40, 40, false, false}, 3);
  for (const float residual : {0.0f, 1.5f}) {
    for (auto& point : s.tracked) point.result.residual_sd = residual;
    const DevicePoints device(s, stream);
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> workspace(kernels::noise_workspace_bytes(s.count()), stream);
    const DeviceArray<double> noise(1, stream);
    kernels::launch_estimate_noise(device.points, tracked.data(), {}, PointsState::radius, noise.data(),
                                   workspace.data(), stream.handle());
    EXPECT_EQ(noise.value(stream), residual);  // without gain
  }
}

struct DeviceField {
  DeviceArray<double> u, v;
  DeviceArray<float> zncc, sigma_u, sigma_v;
  DeviceArray<Status> status;
  DeviceArray<std::int16_t> iterations;
  kernels::FieldArrays arrays;

  DeviceField(std::size_t nodes, const Stream& stream)
      : u(nodes, stream),
        v(nodes, stream),
        zncc(nodes, stream),
        sigma_u(nodes, stream),
        sigma_v(nodes, stream),
        status(nodes, stream),
        iterations(nodes, stream) {
    arrays.u = u.data(), arrays.v = v.data(), arrays.zncc = zncc.data();
    arrays.sigma_u = sigma_u.data(), arrays.sigma_v = sigma_v.data();
    arrays.status = status.data(), arrays.iterations = iterations.data();
  }
};

/// NaNs are equal.
void expect_near(double got, double want, double tolerance) {
  if (std::isnan(want))
    ASSERT_TRUE(std::isnan(got)) << got;
  else
    ASSERT_NEAR(got, want, tolerance);
}

void check_field(const PointsState& s, const DevicePoints& device, const std::vector<MaterialPoint>& material,
                 const Stream& stream) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), noise = 2.5;
  const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
  const DeviceArray<MaterialPoint> device_material(material, stream);
  const DeviceArray<double> device_noise(std::vector<double>{noise}, stream);
  const DeviceField field(s.point_at.size(), stream);
  kernels::launch_fill_field(device.points, tracked.data(),
                             material.empty() ? nullptr : device_material.data(), device_noise.data(),
                             field.arrays, stream.handle());
  const auto u = field.u.values(stream), v = field.v.values(stream);
  const auto zncc = field.zncc.values(stream), sigma_u = field.sigma_u.values(stream),
             sigma_v = field.sigma_v.values(stream);
  const auto status = field.status.values(stream);
  const auto iterations = field.iterations.values(stream);
  for (std::size_t node = 0; node < s.point_at.size(); ++node) {
    const int i = s.point_at[node];
    ASSERT_EQ(status[node], i < 0 ? Status::masked : s.tracked[i].result.status);
    ASSERT_EQ(iterations[node], i < 0 ? 0 : s.tracked[i].result.iterations);
    const bool ok = i >= 0 && measured(s, i);
    const TrackedPoint p = ok ? s.tracked[i] : TrackedPoint{};
    const MaterialPoint m = ok && !material.empty() ? material[i] : MaterialPoint{};
    ASSERT_NO_FATAL_FAILURE(
        expect_near(u[node], ok ? m.u + value_at(p.u, p.result.shape.u, m.dx, m.dy) : nan, 1e-12));
    ASSERT_NO_FATAL_FAILURE(
        expect_near(v[node], ok ? m.v + value_at(p.v, p.result.shape.v, m.dx, m.dy) : nan, 1e-12));
    ASSERT_NO_FATAL_FAILURE(expect_near(zncc[node], ok ? p.result.zncc : nan, 0));
    ASSERT_NO_FATAL_FAILURE(expect_near(
        sigma_u[node], ok ? std::hypot(noise * p.result.unit_sigma_u, std::sqrt(m.variance_u)) : nan, 1e-7));
    ASSERT_NO_FATAL_FAILURE(expect_near(
        sigma_v[node], ok ? std::hypot(noise * p.result.unit_sigma_v, std::sqrt(m.variance_v)) : nan, 1e-7));
  }
}

TEST_F(Points, BecomeAField) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    check_field(s, device, {}, stream);
    std::vector<MaterialPoint> material(s.count());
    for (MaterialPoint& m : material)
      m = {s.uniform(-50, 50),
           s.uniform(-50, 50),
           s.uniform(-0.5, 0.5),
           s.uniform(-0.5, 0.5),
           static_cast<float>(s.uniform(0, 1e-4)),
           static_cast<float>(s.uniform(0, 1e-4)),
           Status::ok};
    check_field(s, device, material, stream);
  });
}

// ---- a later reference ----

/// A field that was measured in an image as large as the grid: some points left it, some are outliers.
struct FieldState {
  std::vector<double> u, v;
  std::vector<float> sigma_u, sigma_v;
  std::vector<Status> status;

  explicit FieldState(PointsState& s) {
    for (std::size_t node = 0; node < s.point_at.size(); ++node) {
      const bool ok = s.point_at[node] >= 0 && s.chance(0.9);
      constexpr double nan = std::numeric_limits<double>::quiet_NaN();
      u.push_back(ok ? s.uniform(-30, 30) : nan);
      v.push_back(ok ? s.chance(0.05) ? 2.5 : s.uniform(-30, 30) : nan);
      sigma_u.push_back(static_cast<float>(s.uniform(0.001, 0.1)));
      sigma_v.push_back(static_cast<float>(s.uniform(0.001, 0.1)));
      status.push_back(ok ? s.chance(0.1) ? Status::outlier : Status::ok : Status::low_correlation);
    }
  }
};

/// What became of point i, told without the rules.
MaterialPoint naively_followed(const PointsState& s, const FieldState& field, int i, int& x, int& y) {
  const int node = s.node_of[i];
  MaterialPoint m;
  if (field.status[node] == Status::low_correlation) {
    m.status = Status::low_correlation;
    return m;
  }
  m.u = field.u[node], m.v = field.v[node];
  m.variance_u = field.sigma_u[node] * field.sigma_u[node];
  m.variance_v = field.sigma_v[node] * field.sigma_v[node];
  const double to_x = s.x[i] + m.u, to_y = s.y[i] + m.v;
  x = static_cast<int>(to_x < 0 ? std::ceil(to_x - 0.5) : std::floor(to_x + 0.5));
  y = static_cast<int>(to_y < 0 ? std::ceil(to_y - 0.5) : std::floor(to_y + 0.5));
  m.dx = to_x - x, m.dy = to_y - y;
  const int clamped_x = std::min(std::max(x, 0), s.width - 1),
            clamped_y = std::min(std::max(y, 0), s.height - 1);
  if (x != clamped_x || y != clamped_y) m.status = Status::out_of_image;
  x = clamped_x, y = clamped_y;
  return m;
}

std::vector<std::uint8_t> naively_moved(const PointsState& s, const std::vector<MaterialPoint>& material,
                                        const std::vector<std::uint8_t>& roi) {
  std::vector<std::uint8_t> moved(roi.size(), 0);
  constexpr int margin = PointsState::margin, step = PointsState::step;
  for (int y = 0; y < s.height; ++y)
    for (int x = 0; x < s.width; ++x) {
      // The nearest node; half a step, rounded down, belongs to the one on the right.
      const auto nearest = [](int offset, int n) {
        return std::min(std::max(static_cast<int>(std::floor((offset + step / 2) / double{step})), 0), n - 1);
      };
      const int point = s.point_at[nearest(y - margin, s.ny) * s.nx + nearest(x - margin, s.nx)];
      if (!roi[y * s.width + x] || point < 0 || material[point].status != Status::ok) continue;
      for (const int b : {0, 1})
        for (const int a : {0, 1}) {
          const double to_x = std::floor(x + material[point].u) + a,
                       to_y = std::floor(y + material[point].v) + b;
          if (to_x >= 0 && to_y >= 0 && to_x < s.width && to_y < s.height)
            moved[static_cast<int>(to_y) * s.width + static_cast<int>(to_x)] = 255;
        }
    }
  return moved;
}

TEST_F(Points, AndTheirRoiAreFollowedIntoALaterReference) {
  std::int64_t left = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const FieldState state(s);
    const DeviceArray<double> u(state.u, stream), v(state.v, stream);
    const DeviceArray<float> sigma_u(state.sigma_u, stream), sigma_v(state.sigma_v, stream);
    const DeviceArray<Status> status(state.status, stream);
    kernels::FieldArrays field;
    field.u = u.data(), field.v = v.data(), field.sigma_u = sigma_u.data(), field.sigma_v = sigma_v.data();
    field.status = status.data();
    const DeviceArray<int> x(s.count(), stream), y(s.count(), stream);
    const DeviceArray<MaterialPoint> material(s.count(), stream);
    kernels::launch_follow_points(device.points, field, s.width, s.height, x.data(), y.data(),
                                  material.data(), stream.handle());
    const auto got = material.values(stream);
    const auto got_x = x.values(stream), got_y = y.values(stream);
    for (int i = 0; i < s.count(); ++i) {
      int want_x = s.x[i], want_y = s.y[i];
      const MaterialPoint want = naively_followed(s, state, i, want_x, want_y);
      ASSERT_EQ(got[i].status, want.status);
      ASSERT_EQ(got_x[i], want_x);
      ASSERT_EQ(got_y[i], want_y);
      left += want.status == Status::out_of_image;
      if (want.status == Status::low_correlation) continue;
      ASSERT_EQ(got[i].u, want.u);
      ASSERT_EQ(got[i].v, want.v);
      ASSERT_EQ(got[i].dx, want.dx);
      ASSERT_EQ(got[i].dy, want.dy);
      ASSERT_EQ(got[i].variance_u, want.variance_u);
      ASSERT_EQ(got[i].variance_v, want.variance_v);
    }

    std::vector<std::uint8_t> roi(static_cast<std::size_t>(s.width) * s.height);
    for (std::uint8_t& pixel : roi) pixel = s.chance(0.7) ? 255 : 0;
    const DeviceArray<std::uint8_t> device_roi(roi, stream), moved(roi.size(), stream);
    kernels::launch_move_roi(device.points,
                             {PointsState::margin, PointsState::margin, PointsState::step, s.nx, s.ny},
                             {device_roi.data(), ScalarType::u8, s.width, s.height, s.width}, material.data(),
                             moved.data(), stream.handle());
    EXPECT_EQ(moved.values(stream), naively_moved(s, got, roi));

    const DeviceArray<std::int32_t> count(1, stream);
    kernels::launch_count_measured(field, static_cast<std::int64_t>(state.status.size()), count.data(),
                                   stream.handle());
    EXPECT_EQ(count.value(stream),
              std::ranges::count_if(state.status, [](Status k) { return k != Status::low_correlation; }));
  });
  EXPECT_GT(left, 500);
}

}  // namespace
}  // namespace dic::test

#include <algorithm>
#include <cmath>
#include <dic/kernels/pose.hpp>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "kernels/device_data.hpp"
#include "support/gpu_test.hpp"

// Tests the kernels of the pose search against loops in float64.
namespace dic::test {
namespace {

using kernels::CoarsePatterns;
using kernels::CoarsePeak;
using kernels::DeviceBuffer;
using kernels::Stream;

template <typename T>
T* on_device(DeviceBuffer& buffer, const std::vector<T>& values, const Stream& stream) {
  T* target = buffer.reserve<T>(values.size() + 1);
  if (!values.empty()) kernels::upload(target, values.data(), values.size() * sizeof(T), stream);
  return target;
}

template <typename T>
std::vector<T> on_host(const T* values, std::size_t count, const Stream& stream) {
  std::vector<T> copy(count);
  kernels::download(copy.data(), values, count * sizeof(T), stream);
  stream.synchronize("test");
  return copy;
}

// --- pyramid ---

template <typename T>
void check_reduced(ScalarType type, int w, int h) {
  SCOPED_TRACE(testing::Message() << w << " x " << h << " " << to_string(type));
  const Stream stream;
  const auto values = random_values<T>(static_cast<std::size_t>(w) * h, 7, 250);
  const DeviceRows<T> in(w, h, values, stream);
  DeviceBuffer out;
  const std::size_t count = static_cast<std::size_t>(w / 2) * (h / 2);
  auto* reduced = out.reserve<float>(count + 1);
  kernels::launch_pose_reduced(in.image(), type, reduced, stream.handle());
  const auto at = [&](int x, int y) {
    return static_cast<double>(
        values[static_cast<std::size_t>(std::clamp(y, 0, h - 1)) * w + std::clamp(x, 0, w - 1)]);
  };
  const auto got = on_host(reduced, count, stream);
  constexpr double taps[4] = {1, 3, 3, 1};
  for (int y = 0; y < h / 2; ++y)
    for (int x = 0; x < w / 2; ++x) {
      double sum = 0;
      for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i) sum += taps[i] * taps[j] * at(2 * x - 1 + i, 2 * y - 1 + j) / 64;
      ASSERT_NEAR(got[static_cast<std::size_t>(y) * (w / 2) + x], sum, 1e-4) << x << ", " << y;
    }
}

TEST(PosePyramid, HalvesImages) {
  for (const auto& [w, h] : {std::pair{2, 2}, {3, 5}, {64, 48}, {131, 67}, {1, 9}}) {
    check_reduced<std::uint8_t>(ScalarType::u8, w, h);
    check_reduced<std::uint16_t>(ScalarType::u16, w, h);
    check_reduced<float>(ScalarType::f32, w, h);
  }
}

TEST(PosePyramid, APixelOfAMaskCountsWhereAllFourDo) {
  const Stream stream;
  const int w = 37, h = 23;
  std::vector<float> mask(static_cast<std::size_t>(w) * h);
  std::mt19937 random(3);
  for (float& v : mask) v = random() % 5 != 0 ? 1.0F : 0.0F;
  const DeviceRows<float> in(w, h, mask, stream);
  DeviceBuffer out;
  const std::size_t count = static_cast<std::size_t>(w / 2) * (h / 2);
  auto* reduced = out.reserve<float>(count);
  kernels::launch_pose_reduced_mask(in.image(), reduced, stream.handle());
  const auto got = on_host(reduced, count, stream);
  for (int y = 0; y < h / 2; ++y)
    for (int x = 0; x < w / 2; ++x) {
      bool all = true;
      for (int k = 0; k < 4; ++k)
        all &= mask[static_cast<std::size_t>(2 * y + k / 2) * w + 2 * x + k % 2] != 0;
      ASSERT_EQ(got[static_cast<std::size_t>(y) * (w / 2) + x], all ? 1.0F : 0.0F);
    }
}

// --- coarse scores ---

constexpr float kPartWeight = 0.95F, kLeastVisible = 0.45F, kLeastVariance = 2.0F;

/// Patterns of some templates at some poses; pixels are a disc with a hole, in blocks by thirds.
struct TestPatterns {
  int poses, templates, lanes, reach = 0;
  std::vector<CoarsePatterns::Offset> offsets;
  std::vector<std::int32_t> begin;
  std::vector<CoarsePatterns::Extent> extents;
  std::vector<float> t, contrast;
  std::vector<CoarsePatterns::Part> parts;

  TestPatterns(int number_of_poses, int number_of_templates)
      : poses(number_of_poses),
        templates(number_of_templates),
        lanes(templates == 1 ? 1 : (templates + 15) / 16 * 16) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    for (int pose = 0; pose < poses; ++pose) add_pixels(5 + pose % 3);
    t.assign(offsets.size() * lanes, 0.0F);
    for (std::size_t e = 0; e < offsets.size(); ++e)
      for (int k = 0; k < templates; ++k) t[e * lanes + k] = 10 * normal(random);
    for (int pose = 0; pose < poses; ++pose) add_parts(pose);
  }

  static bool has(int part, int block) {
    const int column = block % 3, row = block / 3;
    switch (part) {
      case 1:
        return column != 0;
      case 2:
        return column != 2;
      case 3:
        return row != 0;
      case 4:
        return row != 2;
      default:
        return true;
    }
  }
  int first(int pose, int block) const { return begin[pose * (kernels::kPatternBlocks + 1) + block]; }

  CoarsePatterns upload(std::vector<DeviceBuffer>& buffers, const Stream& stream) const {
    buffers.resize(12);
    CoarsePatterns patterns{.poses = poses,
                            .templates = templates,
                            .lanes = lanes,
                            .reach = reach,
                            .offsets = on_device(buffers[0], offsets, stream),
                            .begin = on_device(buffers[1], begin, stream),
                            .extents = on_device(buffers[2], extents, stream),
                            .t = on_device(buffers[3], t, stream),
                            .parts = on_device(buffers[4], parts, stream),
                            .contrast = on_device(buffers[5], contrast, stream)};
    if (templates == 1) return patterns;
    const kernels::PatternPairs pairs = kernels::pattern_pairs(offsets, begin, reach);
    const std::int64_t words = kernels::pattern_words(pairs, lanes);
    auto* halves = buffers[6].reserve<std::uint32_t>(words);
    kernels::launch_pattern_halves(patterns.t, lanes, on_device(buffers[7], pairs.elements, stream), words,
                                   halves, stream.handle());
    patterns.pairs = on_device(buffers[8], pairs.shifts, stream);
    patterns.steps = on_device(buffers[9], pairs.begin, stream);
    patterns.halves = halves;
    patterns.shifts = on_device(buffers[10], pairs.pixels, stream);
    auto* factors = buffers[11].reserve<CoarsePatterns::Factor>(kernels::pattern_factors(patterns));
    kernels::launch_pattern_factors(patterns, kLeastVisible, factors, stream.handle());
    patterns.factors = factors;
    return patterns;
  }

 private:
  void add_pixels(int radius) {
    reach = std::max(reach, radius);
    std::vector<CoarsePatterns::Offset> of_block[kernels::kPatternBlocks];
    for (int y = -radius; y <= radius; ++y)
      for (int x = -radius; x <= radius; ++x) {
        if (x * x + y * y > radius * radius || x * x + y * y < 2) continue;
        const auto third = [&](int v) { return std::clamp((v + radius) * 3 / (2 * radius + 1), 0, 2); };
        of_block[3 * third(y) + third(x)].push_back(
            {static_cast<std::int16_t>(x), static_cast<std::int16_t>(y)});
      }
    for (const auto& block : of_block) {
      begin.push_back(static_cast<std::int32_t>(offsets.size()));
      offsets.insert(offsets.end(), block.begin(), block.end());
    }
    begin.push_back(static_cast<std::int32_t>(offsets.size()));
    const auto r = static_cast<std::int16_t>(radius), minus = static_cast<std::int16_t>(-radius);
    extents.push_back({minus, r, minus, r});
  }
  void add_parts(int pose) {
    for (int part = 0; part < kernels::kPatternParts; ++part)
      for (int k = 0; k < lanes; ++k) {
        double n = 0, sum = 0, squares = 0;
        for (int block = 0; block < kernels::kPatternBlocks; ++block)
          for (int e = first(pose, block); has(part, block) && e < first(pose, block + 1); ++e)
            ++n, sum += t[e * lanes + k], squares += std::pow(t[e * lanes + k], 2);
        const double tt = squares - sum * sum / n;
        // A part of the second pose does not count.
        const float weight = k >= templates || (part == 2 && pose == 1) ? 0 : part == 0 ? 1 : kPartWeight;
        parts.push_back(CoarsePatterns::Part::of(weight, sum, tt));
        if (part == 0) contrast.push_back(static_cast<float>(0.15 * squares / n));
      }
  }
};

struct TestPlane {
  int width, height, margin, stride;
  std::vector<float> values, counts;
  bool has_mask;

  TestPlane(int w, int h, int m, bool masked)
      : width(w), height(h), margin(m), stride(w + 2 * m + 5), has_mask(masked) {
    values.assign(static_cast<std::size_t>(stride) * (h + 2 * m), 0.0F);
    counts = values;
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        if (masked && (x - 20) * (x - 20) + (y - 15) * (y - 15) < 60) continue;
        counts[place(x, y)] = 1;
        // The right part of the image has no contrast.
        values[place(x, y)] = x > w - 14 ? 3.0F : 20 * normal(random);
      }
  }
  std::size_t place(int x, int y) const { return static_cast<std::size_t>(y + margin) * stride + x + margin; }
};

double naive_score(const TestPatterns& p, const TestPlane& image, int template_index, int pose, int x, int y,
                   bool any_polarity) {
  double best = -2, visible_all = 0;
  const double whole = p.first(pose, kernels::kPatternBlocks) - p.first(pose, 0);
  for (int e = p.first(pose, 0); e < p.first(pose, kernels::kPatternBlocks); ++e)
    visible_all += image.counts[image.place(x + p.offsets[e].x, y + p.offsets[e].y)];
  const auto& extent = p.extents[pose];
  const bool is_cut = image.has_mask || x + extent.left < 0 || y + extent.top < 0 ||
                      x + extent.right >= image.width || y + extent.bottom >= image.height;
  if (is_cut) best = 0;
  for (int part = 0; part < kernels::kPatternParts; ++part) {
    const auto& of =
        p.parts[(static_cast<std::size_t>(pose) * kernels::kPatternParts + part) * p.lanes + template_index];
    if (of.weight == 0) continue;
    double n = 0, t = 0, tt = 0, v = 0, vv = 0, tv = 0;
    for (int block = 0; block < kernels::kPatternBlocks; ++block)
      for (int e = p.first(pose, block); TestPatterns::has(part, block) && e < p.first(pose, block + 1);
           ++e) {
        const std::size_t at = image.place(x + p.offsets[e].x, y + p.offsets[e].y);
        if (image.counts[at] == 0) continue;
        const double a = p.t[static_cast<std::size_t>(e) * p.lanes + template_index], b = image.values[at];
        ++n, t += a, tt += a * a, v += b, vv += b * b, tv += a * b;
      }
    if (n == 0) continue;
    const double of_t = tt - t * t / n, of_v = vv - v * v / n;
    if (is_cut && (n < kLeastVisible * whole ||
                   of_t < p.contrast[static_cast<std::size_t>(pose) * p.lanes + template_index] * n))
      continue;
    double score = of.weight * (tv - t * v / n) / std::sqrt(of_t * std::max(of_v, kLeastVariance * n));
    if (any_polarity) score = std::abs(score);
    best = std::max(best, score);
  }
  return best;
}

void check_scores(const TestPlane& image, int poses, int templates, bool any_polarity) {
  SCOPED_TRACE(testing::Message() << image.width << " x " << image.height << ", " << poses << " poses, "
                                  << templates << " templates, mask " << image.has_mask);
  const Stream stream;
  const TestPatterns patterns(poses, templates);
  std::vector<DeviceBuffer> buffers;
  DeviceBuffer values, counts, memory;
  const auto origin = static_cast<std::ptrdiff_t>(image.place(0, 0));
  const kernels::CoarsePlane plane{on_device(values, image.values, stream) + origin,
                                   on_device(counts, image.counts, stream) + origin,
                                   image.stride,
                                   image.margin,
                                   image.width,
                                   image.height,
                                   image.has_mask};
  const std::size_t places = kernels::coarse_places(image.width, image.height),
                    all = places * poses * templates;
  auto* scores = memory.reserve<float>(all);
  kernels::fill(scores, device_poison, all * sizeof(float), stream.handle());
  kernels::launch_coarse_scores(plane, patterns.upload(buffers, stream),
                                {kLeastVariance, kLeastVisible, any_polarity}, scores, stream.handle());
  const auto got = on_host(scores, all, stream);
  const double rounding = templates == 1 ? 2e-4 : 6e-4;  // several templates are multiplied as half floats
  std::size_t k = 0;
  for (int template_index = 0; template_index < templates; ++template_index)
    for (int pose = 0; pose < poses; ++pose)
      for (int y = -1; y <= image.height; ++y)
        for (int x = -1; x <= image.width; ++x, ++k)
          // Scores below 0 may be 0.
          ASSERT_NEAR(std::max(got[k], 0.0F),
                      std::max(naive_score(patterns, image, template_index, pose, x, y, any_polarity), 0.0),
                      rounding)
              << "template " << template_index << ", pose " << pose << ", " << x << ", " << y;
}

TEST(CoarseScores, AreCorrelationsOfTheBestPart) {
  check_scores(TestPlane(70, 41, 9, false), 3, 1, false);
  check_scores(TestPlane(45, 33, 8, false), 2, 5, false);
  check_scores(TestPlane(33, 60, 8, false), 1, 4, true);
  check_scores(TestPlane(120, 75, 8, false), 3, 19, false);  // several tiles are not cut
  check_scores(TestPlane(9, 7, 8, false), 3, 2, false);      // smaller than a pattern
}

TEST(CoarseScores, MaskedPixelsDoNotCount) {
  check_scores(TestPlane(50, 40, 8, true), 2, 1, false);
  check_scores(TestPlane(50, 40, 8, true), 3, 3, true);
  check_scores(TestPlane(70, 40, 8, true), 2, 17, false);
}

using Peak = std::tuple<int, int, int, int, float>;

/// The local maxima by their definition.
std::set<Peak> naive_peaks(const std::vector<float>& scores, const kernels::CoarsePlanes& planes) {
  const kernels::CoarseNeighbours& n = planes.neighbours;
  const int w = planes.width + 2, h = planes.height + 2, poses = n.turns * n.sizes;
  const auto at = [&](int k, int pose, int x, int y) {
    return scores[((static_cast<std::size_t>(k) * poses + pose) * h + y + 1) * w + x + 1];
  };
  std::set<Peak> found;
  for (int k = 0; k < planes.templates; ++k)
    for (int pose = 0; pose < poses; ++pose)
      for (int y = 0; y < planes.height; ++y)
        for (int x = 0; x < planes.width; ++x) {
          const float value = at(k, pose, x, y);
          if (value < planes.threshold) continue;
          bool is_peak = true;
          const auto compare = [&](int other, bool is_earlier) {
            for (int j = -1; j <= 1; ++j)
              for (int i = -1; i <= 1; ++i) {
                const float near = at(k, other, x + i, y + j);
                is_peak &= is_earlier ? near < value : near <= value;
              }
          };
          compare(pose, false);
          const int turn = pose % n.turns, size = pose / n.turns;
          const auto wrapped = [&](int t) { return size * n.turns + (t + n.turns) % n.turns; };
          if (n.by_turn && n.turns > 2) {
            if (turn > 0 || n.full_circle) compare(wrapped(turn - 1), true);
            if (turn + 1 < n.turns || n.full_circle) compare(wrapped(turn + 1), false);
          }
          if (n.by_size && size > 0) compare(pose - n.turns, true);
          if (n.by_size && size + 1 < n.sizes) compare(pose + n.turns, false);
          if (is_peak) found.insert({k, pose, x, y, value});
        }
  return found;
}

void check_peaks(const kernels::CoarseNeighbours& neighbours, int templates, int most) {
  SCOPED_TRACE(testing::Message() << neighbours.turns << " x " << neighbours.sizes << ", " << most);
  const Stream stream;
  kernels::CoarsePlanes planes{
      .width = 40, .height = 23, .templates = templates, .neighbours = neighbours, .threshold = 0.3F};
  const std::size_t count = kernels::coarse_places(40, 23) * templates * neighbours.turns * neighbours.sizes;
  std::mt19937 random(9);
  std::vector<float> scores(count);
  for (float& s : scores) s = static_cast<float>(random() % 1000) / 999;  // some are equal
  DeviceBuffer memory, bins_memory, cuts_memory, all_memory, peaks_memory, count_memory;
  planes.scores = on_device(memory, scores, stream);
  constexpr int capacity = 100000, kFirst = 7, kAll = 200000;
  const std::vector<std::int32_t> no_bins(static_cast<std::size_t>(kernels::kScoreBins) *
                                          (kFirst + templates));
  auto* bins = on_device(bins_memory, no_bins, stream);
  auto* cuts = cuts_memory.reserve<float>(kFirst + templates);
  auto* numbers = on_device(count_memory, std::vector<std::int32_t>{0, 0}, stream);
  const kernels::PeakList every{all_memory.reserve<CoarsePeak>(kAll), kAll, numbers};
  const kernels::PeakList highest{peaks_memory.reserve<CoarsePeak>(capacity), capacity, numbers + 1};
  kernels::launch_coarse_maxima(planes, kFirst, every, bins, stream.handle());
  kernels::launch_highest_maxima(every, bins, kFirst + templates, most, planes.threshold, cuts, highest,
                                 stream.handle());
  ASSERT_LE(on_host(numbers, 1, stream)[0], kAll);
  const int found = on_host(numbers + 1, 1, stream)[0];
  ASSERT_LE(found, capacity);
  const std::set<Peak> all = naive_peaks(scores, planes);
  std::set<Peak> got;
  for (const CoarsePeak& p : on_host(highest.peaks, found, stream))
    got.insert({p.template_index - kFirst, p.pose, p.x, p.y, p.score});
  EXPECT_EQ(static_cast<int>(got.size()), found);
  // Each template keeps its highest peaks.
  for (int k = 0; k < templates; ++k) {
    std::vector<float> wanted, is_there;
    for (const Peak& p : all)
      if (std::get<0>(p) == k) wanted.push_back(std::get<4>(p));
    for (const Peak& p : got) {
      EXPECT_TRUE(all.contains(p));
      if (std::get<0>(p) == k) is_there.push_back(std::get<4>(p));
    }
    std::ranges::sort(wanted, std::greater());
    std::ranges::sort(is_there, std::greater());
    ASSERT_GE(is_there.size(), std::min<std::size_t>(most, wanted.size()));
    for (std::size_t i = 0; i < is_there.size(); ++i) EXPECT_EQ(is_there[i], wanted[i]);
  }
}

TEST(CoarsePeaks, AreTheHighestLocalMaximaOfEachTemplate) {
  check_peaks({1, 1, false, false, false}, 1, 10);
  check_peaks({5, 1, true, false, false}, 2, 30);
  check_peaks({5, 1, true, false, true}, 3, 1 << 20);
  check_peaks({4, 3, true, true, true}, 2, 50);
  check_peaks({2, 3, true, true, true}, 2, 1 << 20);
}

// --- fits ---

/// An image and pixels of a template, both of one smooth function.
struct FitScene {
  int width = 90, height = 70;
  std::vector<float> image, mask, lists;
  std::vector<float> xi, eta, t, tx, ty;
  double mean = 0;
  int count = 0, padded = 0;
  pose::Warp truth;
  bool is_smooth;

  static double grey(double x, double y) {
    return 120 + 40 * std::sin(0.31 * x + 0.1 * y) + 30 * std::cos(0.23 * y - 0.12 * x) +
           20 * std::sin(0.05 * x * y / 9);
  }
  /// smooth: without noise; what hides a part has no edge, so that a spline of the pixels is the function.
  explicit FitScene(const pose::Warp& pose, int radius, bool smooth = false)
      : mask(static_cast<std::size_t>(width) * height, 1.0F), truth(pose), is_smooth(smooth) {
    std::mt19937 random(2);
    std::normal_distribution<double> normal;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const auto [a, b] = in_template(x, y);
        const bool is_hidden = a > radius / 2.0 && b > 0;
        image.push_back(static_cast<float>(
            smooth ? function(x, y) : (is_hidden ? 60 : 0.8 * grey(a, b) + 12) + normal(random)));
      }
    for (int y = -radius; y <= radius; ++y)
      for (int x = -radius; x <= radius; ++x) xi.push_back(x), eta.push_back(y), t.push_back(grey(x, y));
    count = static_cast<int>(t.size());
    for (const float v : t) mean += v / count;
    for (int k = 0; k < count; ++k) {
      const double x = xi[k], y = eta[k], h = 0.01;
      tx.push_back(static_cast<float>((grey(x + h, y) - grey(x - h, y)) / (2 * h)));
      ty.push_back(static_cast<float>((grey(x, y + h) - grey(x, y - h)) / (2 * h)));
      t[k] -= static_cast<float>(mean);
    }
    padded = (count + kernels::PosePixels::kPadding - 1) / kernels::PosePixels::kPadding *
             kernels::PosePixels::kPadding;
    for (auto* list : {&xi, &eta, &t, &tx, &ty}) {
      list->resize(padded, 0.0F);
      lists.insert(lists.end(), list->begin(), list->end());
    }
  }
  double squares() const {
    double sum = 0;
    for (int k = 0; k < count; k += pose::median_stride(count)) sum += static_cast<double>(t[k]) * t[k];
    return sum;
  }
  /// Template coordinates of a place of the image.
  std::pair<double, double> in_template(double x, double y) const {
    const double det = truth.xx * truth.yy - truth.xy * truth.yx;
    const double dx = x - truth.center_x, dy = y - truth.center_y;
    return {(truth.yy * dx - truth.xy * dy) / det, (truth.xx * dy - truth.yx * dx) / det};
  }
  /// The image of a smooth scene: a blob hides some pixels.
  double function(double x, double y) const {
    const auto [a, b] = in_template(x, y);
    return 0.8 * grey(a, b) + 12 + 90 * std::exp(-(std::pow(a - 7, 2) + std::pow(b - 6, 2)) / 30);
  }
  /// Bilinear, or the function of a smooth scene; NaN outside.
  double at(double x, double y) const {
    if (!(x >= 0 && y >= 0 && x <= width - 1 && y <= height - 1)) return NAN;
    if (mask[static_cast<std::size_t>(std::floor(y + 0.5)) * width + static_cast<int>(std::floor(x + 0.5))] ==
        0)
      return NAN;
    if (is_smooth) return function(x, y);
    const int i = std::min(static_cast<int>(x), width - 2), j = std::min(static_cast<int>(y), height - 2);
    const float* p = &image[static_cast<std::size_t>(j) * width + i];
    const double fx = x - i, fy = y - j;
    return (1 - fy) * ((1 - fx) * p[0] + fx * p[1]) + fy * ((1 - fx) * p[width] + fx * p[width + 1]);
  }
};

/// The same steps with sums in double.
pose::Fit naive_fit(const FitScene& scene, const pose::Warp& start, const pose::FitPlan& plan) {
  pose::FitSteps steps(plan, start, 0, scene.mean, scene.count);
  while (steps.begin_step()) {
    const pose::Warp w = steps.warp();
    std::vector<double> v;
    pose::ScoreSums s;
    for (int k = 0; k < scene.count; ++k) {
      const double xi = scene.xi[k], eta = scene.eta[k], t = scene.t[k];
      v.push_back(scene.at(w.center_x + w.xx * xi + w.xy * eta, w.center_y + w.yx * xi + w.yy * eta));
      if (std::isnan(v[k])) continue;
      s.n += 1, s.t += t, s.tt += t * t, s.v += v[k], s.vv += v[k] * v[k], s.tv += t * v[k];
    }
    if (!steps.take_scores(s)) continue;
    const auto residual = [&](int k) { return v[k] - steps.gain() * scene.t[k] - steps.offset(); };
    std::vector<double> sorted;
    for (int k = 0; k < scene.count; k += pose::median_stride(scene.count))
      if (!std::isnan(v[k])) sorted.push_back(std::abs(residual(k)));
    std::ranges::sort(sorted);
    const double limit = pose::residual_limit(plan.is_near, static_cast<float>(sorted[sorted.size() / 2]),
                                              scene.squares(), steps.gain(), scene.count);
    double products[pose::kProducts] = {}, fitting = 0;
    for (int k = 0; k < scene.count; ++k) {
      if (std::isnan(v[k])) continue;
      const double q = residual(k) / limit, rest = std::max(0.0, 1 - q * q);
      const double weight = steps.is_robust() ? rest * rest : 1;
      const double xi = scene.xi[k], eta = scene.eta[k], tx = scene.tx[k], ty = scene.ty[k];
      const double terms[pose::kTerms] = {tx, ty, xi * tx, eta * tx, xi * ty, eta * ty, scene.t[k], 1, v[k]};
      for (int i = 0; i < pose::kTerms; ++i)
        for (int j = i; j < pose::kTerms; ++j)
          products[pose::product_index(i, j)] += weight * terms[i] * terms[j];
      fitting += weight > pose::kFits;
    }
    steps.take_products(products, fitting);
  }
  return steps.result();
}

/// Correlation of the gradients of template and image at a pose, over the pixels that fit.
double naive_structure(const FitScene& scene, const pose::Fit& fit) {
  const pose::Warp& w = fit.warp;
  const auto value = [&](int k, double dx, double dy) {
    const double xi = scene.xi[k], eta = scene.eta[k];
    return scene.at(w.center_x + w.xx * xi + w.xy * eta + dx, w.center_y + w.yx * xi + w.yy * eta + dy);
  };
  const double offset = fit.offset + fit.gain * scene.mean;
  const auto residual = [&](int k) { return value(k, 0, 0) - fit.gain * scene.t[k] - offset; };
  std::vector<double> sorted;
  for (int k = 0; k < scene.count; k += pose::median_stride(scene.count))
    if (const double r = residual(k); !std::isnan(r)) sorted.push_back(std::abs(r));
  std::ranges::sort(sorted);
  const double limit = pose::residual_limit(false, static_cast<float>(sorted[sorted.size() / 2]),
                                            scene.squares(), fit.gain, scene.count);
  double tt = 0, ii = 0, ti = 0;
  for (int k = 0; k < scene.count; ++k) {
    if (std::isnan(value(k, 0, 0))) continue;
    const double q = residual(k) / limit, rest = std::max(0.0, 1 - q * q), weight = rest * rest;
    const double gx = value(k, 0.5, 0) - value(k, -0.5, 0), gy = value(k, 0, 0.5) - value(k, 0, -0.5);
    const double tx = scene.tx[k], ty = scene.ty[k];
    if (weight == 0 || std::isnan(gx + gy)) continue;  // half a pixel further is outside
    tt += weight * (tx * tx + ty * ty), ii += weight * (gx * gx + gy * gy),
        ti += weight * (tx * gx + ty * gy);
  }
  return ti / std::sqrt(tt * ii);
}

/// copies: number of fits of each start at the same time.
void check_fit(const FitScene& scene, const pose::Warp& truth, const std::vector<pose::Warp>& starts,
               const pose::FitPlan& plan, int copies = 1) {
  const Stream stream;
  DeviceBuffer image, mask, lists, pixels_memory, tasks_memory, results_memory;
  const float* first = on_device(lists, scene.lists, stream);
  const std::size_t n = scene.padded;
  const kernels::PosePixels pixels{first,       first + n,    first + 2 * n, first + 3 * n,  first + 4 * n,
                                   scene.count, scene.padded, scene.mean,    scene.squares()};
  std::vector<kernels::PoseTask> tasks;
  for (int copy = 0; copy < copies; ++copy)
    for (const pose::Warp& start : starts) tasks.push_back({0, start, plan, true});
  const bool has_mask = std::ranges::count(scene.mask, 0.0F) > 0;
  const kernels::PoseLevel level{on_device(image, scene.image, stream),
                                 has_mask ? on_device(mask, scene.mask, stream) : nullptr, scene.width,
                                 scene.height};
  auto* results = results_memory.reserve<kernels::PoseResult>(tasks.size());
  kernels::launch_pose_fits({.image = level,
                             .pixels = on_device(pixels_memory, std::vector{pixels}, stream),
                             .tasks = on_device(tasks_memory, tasks, stream),
                             .count = static_cast<int>(tasks.size()),
                             .shear = plan.freedom == pose::Freedom::affine,
                             .results = results},
                            scene.padded, stream.handle());
  const auto got = on_host(results, tasks.size(), stream);
  std::vector<pose::Fit> all;
  for (const pose::Warp& start : starts) all.push_back(naive_fit(scene, start, plan));
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    SCOPED_TRACE(testing::Message() << "start " << k);
    const pose::Fit want = all[k % starts.size()], fit = got[k].fit;
    ASSERT_EQ(fit.valid, want.valid);
    if (!want.valid) continue;
    EXPECT_NEAR(fit.warp.center_x, want.warp.center_x, 1e-3);
    EXPECT_NEAR(fit.warp.center_y, want.warp.center_y, 1e-3);
    EXPECT_NEAR(pose::rotation_of(fit.warp), pose::rotation_of(want.warp), 3e-5);
    EXPECT_NEAR(pose::scale_of(fit.warp), pose::scale_of(want.warp), 3e-5);
    EXPECT_NEAR(fit.gain, want.gain, 1e-4);
    EXPECT_NEAR(fit.offset, want.offset, 1e-2);
    EXPECT_NEAR(fit.quality, want.quality, 1e-4);
    EXPECT_NEAR(fit.score, want.score, 1e-4);
    EXPECT_NEAR(fit.visible, want.visible, 2e-3);
    EXPECT_NEAR(fit.inside, want.inside, 1e-9);
    EXPECT_NEAR(fit.warp.center_x, truth.center_x, 0.5);  // what is hidden at a side moves it
    // The kernel weighs pixels by their residuals before the last step.
    EXPECT_NEAR(got[k].structure, naive_structure(scene, want), 0.03);
  }
}

const pose::Warp kTruth = pose::similarity(41.3, 33.8, 0.2, 1.04);

TEST(PoseFits, AreThoseOfSumsInDouble) {
  std::vector<pose::Warp> starts = {pose::similarity(41.9, 33.2, 0.22, 1.03),
                                    pose::similarity(40.4, 34.6, 0.17, 1.05),
                                    pose::similarity(300, 20, 0, 1)};
  // 729, 1089 and 3025 pixels: short lists are fitted by smaller blocks
  const FitScene small(kTruth, 13), scene(kTruth, 16), large(kTruth, 27);
  for (const pose::Freedom freedom : {pose::Freedom::similarity, pose::Freedom::affine})
    for (const bool is_near : {false, true}) {
      SCOPED_TRACE(testing::Message() << parameters(freedom) << " parameters, near " << is_near);
      const pose::FitPlan plan{
          .freedom = freedom, .is_near = is_near, .most_steps = 10, .tolerance = 0.001, .rim = 22};
      check_fit(small, kTruth, starts, plan);
      check_fit(scene, kTruth, starts, plan);
      check_fit(large, kTruth, starts, plan);
      check_fit(small, kTruth, starts, plan, 600);  // so many that a warp fits each
    }
}

/// A smooth scene on the device.
struct WholeScene {
  const Stream stream;
  FitScene scene;
  DeviceBuffer image, mask, coefficients, lists, values, weights, scratch, fitted, slopes;
  kernels::PosePixels pixels;
  kernels::SplineLevel level;
  kernels::WholeMemory memory;

  /// has_mask: neither a disc counts nor pixels beside the border, where the spline is not the function.
  WholeScene(const pose::Warp& truth, int radius, bool has_mask) : scene(truth, radius, true) {
    for (int y = 0; has_mask && y < scene.height; ++y)
      for (int x = 0; x < scene.width; ++x)
        if (std::min({x, y, scene.width - 1 - x, scene.height - 1 - y}) < 7 || std::hypot(x - 15, y - 40) < 4)
          scene.mask[static_cast<std::size_t>(y) * scene.width + x] = 0;
    const kernels::PlaneLayout layout(scene.width, scene.height);
    auto* plane = coefficients.reserve<kernels::CoefficientPair>(layout.elements()) + layout.origin();
    const auto row = static_cast<std::ptrdiff_t>(scene.width * sizeof(float));
    const ImageView view{
        on_device(image, scene.image, stream), ScalarType::f32, scene.width, scene.height, row, 0};
    kernels::launch_spline_coefficients(view, Interpolation::quintic, plane, stream.handle());
    level = {plane, layout.stride, has_mask ? on_device(mask, scene.mask, stream) : nullptr, scene.width,
             scene.height};
    const float* first = on_device(lists, scene.lists, stream);
    const std::size_t n = scene.padded;
    pixels = {first,       first + n,    first + 2 * n, first + 3 * n,  first + 4 * n,
              scene.count, scene.padded, scene.mean,    scene.squares()};
    memory = {values.reserve<float>(n), weights.reserve<float>(n),
              scratch.reserve(kernels::whole_fit_bytes())};
  }
  kernels::WholeResult fit(const pose::Warp& start, const pose::FitPlan& plan) const {
    return on_host(kernels::launch_whole_fit(level, pixels, plan, start, memory, stream.handle()), 1,
                   stream)[0];
  }
};

void check_whole(const WholeScene& on_device, const pose::Warp& start, const pose::FitPlan& plan) {
  const FitScene& scene = on_device.scene;
  const pose::Fit want = naive_fit(scene, start, plan), fit = on_device.fit(start, plan).fit;
  ASSERT_TRUE(want.valid);
  ASSERT_TRUE(fit.valid);
  EXPECT_NEAR(fit.warp.center_x, want.warp.center_x, 1e-3);
  EXPECT_NEAR(fit.warp.center_y, want.warp.center_y, 1e-3);
  EXPECT_NEAR(pose::rotation_of(fit.warp), pose::rotation_of(want.warp), 3e-5);
  EXPECT_NEAR(pose::scale_of(fit.warp), pose::scale_of(want.warp), 3e-5);
  EXPECT_NEAR(fit.gain, want.gain, 1e-3);
  EXPECT_NEAR(fit.offset, want.offset, 1e-1);
  EXPECT_NEAR(fit.quality, want.quality, 1e-3);
  EXPECT_NEAR(fit.score, want.score, 1e-3);
  EXPECT_NEAR(fit.visible, want.visible, 4e-3);
  EXPECT_NEAR(fit.inside, want.inside, 1e-9);
  EXPECT_NEAR(fit.warp.center_x, scene.truth.center_x, 0.5);  // what is hidden moves it
}

TEST(PoseFits, OfTheWholeDeviceAreThoseOfSumsInDouble) {
  for (const int radius : {6, 16, 27}) {  // 169, 1089 and 3025 pixels: one block and more
    const WholeScene whole(kTruth, radius, false);
    for (const bool is_near : {false, true})
      for (const bool keeps_best : {false, true}) {
        SCOPED_TRACE(testing::Message() << radius << ", near " << is_near << ", keeps best " << keeps_best);
        const pose::FitPlan plan{.freedom = pose::Freedom::similarity,
                                 .is_near = is_near,
                                 .keeps_best = keeps_best,
                                 .most_steps = 15,
                                 .tolerance = 0.001,
                                 .rim = 22};
        check_whole(whole, pose::similarity(41.7, 33.4, 0.21, 1.035), plan);
      }
    EXPECT_FALSE(whole.fit(pose::similarity(300, 20, 0, 1), {.rim = 22}).fit.valid);
  }
  const pose::Warp cut = pose::similarity(17.3, 33.8, 0.2, 1.04);
  check_whole(WholeScene(cut, 16, true), pose::similarity(17.6, 33.5, 0.21, 1.035),
              {.freedom = pose::Freedom::similarity, .most_steps = 15, .tolerance = 0.001, .rim = 22});
}

TEST(PoseFits, GiveGroupsOfFittedPixels) {
  WholeScene whole(kTruth, 22, false);
  const FitScene& scene = whole.scene;
  // One step from the truth, so that weights and grey values are those at the start.
  const kernels::WholeResult fit = whole.fit(
      kTruth, {.freedom = pose::Freedom::similarity, .most_steps = 0, .rim = 22, .gain = 0.8, .offset = 12});
  ASSERT_TRUE(fit.fit.valid);
  constexpr int stride = 3, group = kernels::FittedPixel::kGroup;
  std::vector<int> indices;
  for (int k = 0; k < scene.count; ++k)
    if (k / group % stride == 0) indices.push_back(k);
  auto* fitted = whole.fitted.reserve<kernels::FittedPixel>(indices.size());
  auto* slopes = whole.slopes.reserve<double>(2);
  kernels::WholeResult at_truth = fit;
  at_truth.fit.warp = kTruth;
  kernels::launch_fitted_pixels(whole.level, whole.pixels, whole.memory, at_truth, stride,
                                static_cast<int>(indices.size()), fitted, slopes, whole.stream.handle());
  const auto got = on_host(fitted, indices.size(), whole.stream);
  const auto grey_at = [&](int k, double xi, double eta) {
    const double a = scene.xi[k] + xi, b = scene.eta[k] + eta;
    return scene.function(kTruth.center_x + kTruth.xx * a + kTruth.xy * b,
                          kTruth.center_y + kTruth.yx * a + kTruth.yy * b);
  };
  const double gain = fit.fit.gain, offset = fit.fit.offset + gain * scene.mean;
  int weighted = 0;
  for (std::size_t n = 0; n < indices.size(); ++n) {
    const int k = indices[n];
    SCOPED_TRACE(testing::Message() << "pixel " << k);
    ASSERT_EQ(got[n].xi, scene.xi[k]);
    ASSERT_EQ(got[n].eta, scene.eta[k]);
    ASSERT_EQ(got[n].t, scene.t[k]);
    ASSERT_EQ(got[n].tx, scene.tx[k]);
    ASSERT_EQ(got[n].ty, scene.ty[k]);
    if (got[n].weight == 0) continue;
    ++weighted;
    ASSERT_NEAR(got[n].residual, (grey_at(k, 0, 0) - offset) / gain - scene.t[k], 0.05);
    ASSERT_NEAR(got[n].ix, 2 * (grey_at(k, 0.25, 0) - grey_at(k, -0.25, 0)) / gain, 0.05);
    ASSERT_NEAR(got[n].iy, 2 * (grey_at(k, 0, 0.25) - grey_at(k, 0, -0.25)) / gain, 0.05);
    const double q = got[n].residual * gain / fit.limit;
    ASSERT_NEAR(got[n].weight, std::pow(1 - q * q, 2), 0.05);
  }
  EXPECT_GT(weighted, static_cast<int>(indices.size()) / 2);
  EXPECT_LT(weighted, static_cast<int>(indices.size()));
  const auto all_weights = on_host(whole.memory.weights, scene.count, whole.stream);
  double sums[2] = {};
  for (const float w : all_weights)
    if (w > 0) sums[0] += w, sums[1] += std::sqrt(w) * (5 * std::sqrt(w) - 4);
  const auto got_sums = on_host(slopes, 2, whole.stream);
  EXPECT_NEAR(got_sums[0], sums[0], 1e-3);
  EXPECT_NEAR(got_sums[1], sums[1], 1e-3);
}

TEST(PoseFits, CountPixelsInsideImageAndMask) {
  const pose::Warp truth = pose::similarity(10.3, 33.8, 0.2, 1.04);  // cut by the border
  FitScene scene(truth, 16);
  const pose::FitPlan plan{
      .freedom = pose::Freedom::similarity, .most_steps = 10, .tolerance = 0.001, .rim = 22};
  check_fit(scene, truth, {pose::similarity(10.9, 33.2, 0.22, 1.03)}, plan);
  for (int y = 30; y < 38; ++y)
    for (int x = 12; x < 22; ++x) scene.mask[static_cast<std::size_t>(y) * scene.width + x] = 0;
  check_fit(scene, truth, {pose::similarity(10.9, 33.2, 0.22, 1.03)}, plan);
}

}  // namespace
}  // namespace dic::test

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <dic/track.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "analysis/conditioning.hpp"
#include "analysis/power_spectrum.hpp"
#include "analysis/sensor_noise.hpp"
#include "fields/points.hpp"
#include "support/speckle.hpp"

// Tests what cameras and specimens do to images: defective pixels, ceilings below the largest value, two
// values, offsets, noise that is not white, textures that repeat, ramps. The truth is the motion of the
// pattern.
namespace dic::test {
namespace {

constexpr int kSide = 240;
using Picture = std::vector<double>;  // [kSide * kSide], grey levels

Picture picture_of(const std::function<double(int x, int y)>& grey) {
  Picture out;
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) out.push_back(grey(x, y));
  return out;
}

/// A speckle pattern of standard deviation 40, moved by (u, v).
Picture speckle(double u, double v = 0, double blob = 1.7) {
  static const Speckle usual(kSide, kSide, 1.7, 5);
  const Speckle other(kSide, kSide, blob, 5);
  const Speckle& pattern = blob == 1.7 ? usual : other;
  return picture_of([&](int x, int y) { return 128 + 40 * pattern(x - u, y - v); });
}

Picture with_noise(Picture picture, double sd, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> gauss(0, sd);
  for (double& grey : picture) grey += gauss(random);
  return picture;
}

template <typename T>
Image image_of(const Picture& picture, double factor = 1, double offset = 0) {
  Image out({kSide, kSide}, scalar_type_of<T>());
  for (int k = 0; k < kSide * kSide; ++k) {
    const double grey = factor * picture[k] + offset;
    T& pixel = out.row<T>(k / kSide)[k % kSide];
    if constexpr (std::is_floating_point_v<T>)
      pixel = static_cast<T>(grey);
    else
      pixel = static_cast<T>(std::lround(std::clamp(grey, 0.0, double(std::numeric_limits<T>::max()))));
  }
  return out;
}
Image bytes_of(const Picture& picture) { return image_of<std::uint8_t>(picture); }

struct Measured {
  std::int64_t points = 0, ok = 0, wrong = 0, flat = 0, ambiguous = 0;
  double scatter = 0, mean_u = 0, noise = 0;
};
Measured measured(const std::vector<Image>& frames, double u, double v, TrackOptions options = {}) {
  options.step = 8;
  options.device = "cpu";
  Tracker tracker(options, frames.front());
  FrameResult last;
  for (std::size_t k = 1; k < frames.size(); ++k) last = tracker.track(frames[k]);
  const Field& field = last.field;
  Measured out;
  out.noise = last.noise;
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    ++out.points;
    out.flat += field.status[k] == Status::flat;
    out.ambiguous += field.status[k] == Status::ambiguous;
    if (field.status[k] != Status::ok) continue;
    ++out.ok;
    const double eu = field.u[k] - u, ev = field.v[k] - v;
    const double du = eu / field.sigma_u[k], dv = ev / field.sigma_v[k];
    out.wrong += std::max(std::abs(du), std::abs(dv)) > 5 || std::hypot(eu, ev) > 0.5;
    out.scatter += (du * du + dv * dv) / 2;
    out.mean_u += field.u[k];
  }
  const auto n = static_cast<double>(std::max<std::int64_t>(out.ok, 1));
  out.scatter = std::sqrt(out.scatter / n);
  out.mean_u /= n;
  return out;
}

void expect_right(const Measured& m, double least_ok, double most_scatter) {
  EXPECT_GE(m.ok, least_ok * static_cast<double>(m.points));
  EXPECT_EQ(m.wrong, 0);
  EXPECT_LT(m.scatter, most_scatter);
}

/// The same where the camera changes the texture itself: 3 points in 1,000 may be wrong.
void expect_nearly_right(const Measured& m, double least_ok, double most_scatter) {
  EXPECT_GE(m.ok, least_ok * static_cast<double>(m.points));
  EXPECT_LE(m.wrong, 0.003 * static_cast<double>(m.ok));
  EXPECT_LT(m.scatter, most_scatter);
}

// ---- defective pixels ----

/// Hot and dead pixels, which stay where they are.
Image with_defects(Picture picture, double share) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (double& grey : picture)
    if (const double value = uniform(random); value < share) grey = value < share / 3 ? 0 : 255;
  return bytes_of(picture);
}

TEST(CameraFaults, DefectivePixelsDoNotHoldTheDisplacement) {
  for (const double share : {0.001, 0.003, 0.01})
    for (const double u : {0.1, 0.4}) {
      SCOPED_TRACE(testing::Message() << share << ", moved by " << u);
      const Measured m = measured({with_defects(with_noise(speckle(0), 2, 1), share),
                                   with_defects(with_noise(speckle(u), 2, 2), share)},
                                  u, 0);
      expect_right(m, 0.99, 1.2);
    }
}

TEST(CameraFaults, ATextureOfDotsHasNoDefects) {
  core::ThreadPool pool(1);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> at(0, kSide);
  for (const double blob : {0.5, 0.8, 1.7}) {  // as sharp as optics can be, and sparse as particles in a flow
    Picture dots(static_cast<std::size_t>(kSide) * kSide, 20);
    for (int n = 0; n < 800; ++n) {
      const double cx = at(random), cy = at(random);
      for (int y = std::max(0, int(cy) - 8); y < std::min(kSide, int(cy) + 9); ++y)
        for (int x = std::max(0, int(cx) - 8); x < std::min(kSide, int(cx) + 9); ++x)
          dots[y * kSide + x] +=
              200 * std::exp(-((x - cx) * (x - cx) + (y - cy) * (y - cy)) / (2 * blob * blob));
    }
    const Image image = bytes_of(with_noise(dots, 2, 1));
    EXPECT_LE(analysis::Conditioning(image, false, pool).defects(), 2) << blob;  // a few do no harm
  }
  const Image clean = bytes_of(with_noise(speckle(0), 2, 1));
  EXPECT_FALSE(analysis::Conditioning(clean, false, pool).needed());
}

TEST(CameraFaults, ADefectIsReplacedByTheSurfaceAroundIt) {
  core::ThreadPool pool(1);
  Picture picture = speckle(0);
  const double truth = picture[100 * kSide + 100];
  picture[100 * kSide + 100] = 255;
  const analysis::Conditioning conditioning(bytes_of(picture), false, pool);
  EXPECT_EQ(conditioning.defects(), 1);
  EXPECT_NEAR(conditioning(bytes_of(picture))->row<std::uint8_t>(100)[100], truth, 12);
}

TEST(CameraFaults, DefectsBesideEachOtherAndAtTheBorderAreFound) {
  core::ThreadPool pool(1);
  Picture picture = speckle(0);
  const auto set = [&](int x, int y, double grey) { picture[y * kSide + x] = grey; };
  int defects = 0;
  const auto add = [&](std::initializer_list<std::array<int, 2>> places, double grey) {
    for (const auto& [x, y] : places) set(x, y, grey), ++defects;
  };
  for (int k = 0; k < 44; ++k) add({{15 + 5 * k, 30 + 37 * k % 150}}, k % 3 == 0 ? 0 : 255);
  add({{60, 200}, {61, 200}, {62, 200}}, 255);             // along a row
  add({{90, 200}, {90, 201}, {90, 202}}, 255);             // along a column
  add({{120, 200}, {121, 200}, {120, 201}}, 255);          // an angle
  add({{150, 200}, {151, 201}, {152, 202}}, 0);            // a diagonal
  add({{0, 100}, {kSide - 1, 110}, {0, kSide - 1}}, 255);  // border, corner
  add({{20, 0}, {180, kSide - 1}}, 0);
  const std::int64_t found = analysis::Conditioning(bytes_of(picture), false, pool).defects();
  EXPECT_GE(found, defects - 4);  // some lie on blobs as bright as they are
  EXPECT_LE(found, defects);
}

TEST(CameraFaults, CorrectedImagesAreTheSameWhereAGpuReadsThem) {
  core::ThreadPool pool(2);
  constexpr std::size_t kLine = 64, kPitch = 256;
  std::vector<std::byte> memory(kSide * kPitch + kLine, std::byte{77});
  void* start = memory.data();
  std::size_t room = memory.size();
  auto* const rows = static_cast<std::byte*>(std::align(kLine, kSide * kPitch, start, room));
  for (const double ceiling : {255.0, 170.0}) {  // the second is mapped to 255
    Picture picture = speckle(0);
    for (double& grey : picture) grey = std::min(grey, ceiling);
    picture[100 * kSide + 100] = picture[3 * kSide + kSide - 1] = 0;
    const Image image = bytes_of(picture);
    const analysis::Conditioning conditioning(image, false, pool);
    ASSERT_GT(conditioning.defects(), 0);
    const auto corrected = conditioning(image);
    const auto at_ceiling = std::ranges::find(picture, ceiling) - picture.begin();
    ASSERT_EQ(corrected->row<std::uint8_t>(static_cast<int>(at_ceiling / kSide))[at_ceiling % kSide], 255);
    conditioning.write_uncached(image, rows, kPitch);
    for (int y = 0; y < kSide; ++y) {
      const auto* row = reinterpret_cast<const std::uint8_t*>(rows) + y * kPitch;
      ASSERT_TRUE(std::equal(row, row + kSide, corrected->row<std::uint8_t>(y))) << y;
      ASSERT_TRUE(std::all_of(row + kSide, row + kPitch, [](std::uint8_t grey) { return grey == 0; })) << y;
    }
  }
}

// ---- defective columns and rows ----

/// Adds to some columns, or sets them.
Picture with_columns(Picture picture, std::initializer_list<int> columns,
                     const std::function<double(double)>& change) {
  for (int y = 0; y < kSide; ++y)
    for (const int x : columns) picture[y * kSide + x] = change(picture[y * kSide + x]);
  return picture;
}
Picture with_rows(Picture picture, std::initializer_list<int> rows,
                  const std::function<double(double)>& change) {
  for (const int y : rows)
    for (int x = 0; x < kSide; ++x) picture[y * kSide + x] = change(picture[y * kSide + x]);
  return picture;
}

std::int64_t defects_in(const Picture& picture) {
  core::ThreadPool pool(1);
  return analysis::Conditioning(bytes_of(picture), false, pool).defects();
}

TEST(CameraFaults, DefectiveColumnsAndRowsAreFound) {
  const auto dead = [](double) { return 0.0; };
  const auto dirty = [](double grey) { return grey - 30; };
  const Picture noisy = with_noise(speckle(0), 2, 1);
  constexpr double few = 8;  // pixels of blobs that a line cuts
  EXPECT_NEAR(defects_in(with_columns(noisy, {30, 100, 101, 200}, dead)), 4 * kSide, few);
  EXPECT_NEAR(defects_in(with_rows(noisy, {60, 61, 180}, dead)), 3 * kSide, few);
  EXPECT_NEAR(defects_in(with_rows(with_columns(noisy, {50, 150, 151}, dirty), {70, 130}, dirty)),
              5 * kSide - 6, few);
}

TEST(CameraFaults, DefectiveColumnsAndRowsDoNotHoldTheDisplacement) {
  for (const double add : {-30.0, 60.0, -300.0})
    for (const double u : {0.1, 0.4, 2.4}) {
      SCOPED_TRACE(testing::Message() << add << ", moved by " << u);
      const auto lines = [add](double grey) { return std::max(0.0, grey + add); };
      const auto frame = [&](double at, unsigned seed) {
        const Picture noisy = with_noise(speckle(at), 2, seed);
        return bytes_of(with_rows(with_columns(noisy, {20, 60, 61, 100, 140, 180, 220}, lines),
                                  {30, 70, 110, 150, 151, 190, 230}, lines));
      };
      expect_right(measured({frame(0, 1), frame(u, 2)}, u, 0), 0.97, 1.2);
    }
}

TEST(CameraFaults, TextureInFrontOfABackgroundHasNoDefectiveLines) {
  for (const unsigned seed : {1, 2, 3, 4}) {
    const Picture picture = with_noise(speckle(0), 2, seed);
    Picture specimen = with_noise(Picture(picture.size(), 12.0), 0.3, seed);
    for (int y = 110; y < 150; ++y)
      for (int x = 60; x < 160; ++x) specimen[y * kSide + x] = picture[y * kSide + x];
    EXPECT_LT(defects_in(specimen), 10);  // not one line
  }
}

TEST(CameraFaults, TheStraightOutlineOfABodyIsNoDefectiveLine) {
  for (const unsigned seed : {1, 2, 3, 4, 5, 6})
    for (const int width : {60, 90, 110, 120, 130, 140, 150, 170}) {  // px of 240
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", body of " << width << " px");
      const Picture picture = with_noise(speckle(5.3 * seed), 2, seed);
      Picture upright = with_noise(Picture(picture.size(), 20.0), 0.3, seed), lying = upright;
      for (int y = 0; y < kSide; ++y)
        for (int x = 40; x < 40 + width; ++x)
          lying[x * kSide + y] = upright[y * kSide + x] = picture[y * kSide + x];
      EXPECT_LT(defects_in(upright), 10);  // not one line
      EXPECT_LT(defects_in(lying), 10);
    }
}

TEST(CameraFaults, LinesOfATextureAreNoDefects) {
  const Speckle pattern(kSide, kSide, 1.7, 5);
  const auto drawn = [&](double blur, double at) {
    return bytes_of(with_noise(picture_of([&](int x, int y) {
                                 double grey = 128 + 25 * pattern(x - at, y);
                                 for (const double line : {40.3, 90.5, 150.7, 200.0})
                                   grey -= 60 * std::exp(-std::pow((x - line - at) / blur, 2) / 2);
                                 return grey;
                               }),
                               2, 1));
  };
  core::ThreadPool pool(1);
  for (const double blur : {0.8, 1.0, 2.0})
    EXPECT_LT(analysis::Conditioning(drawn(blur, 0), false, pool).defects(), 10) << blur;  // not one line
}

// ---- grey values ----

TEST(CameraFaults, TwoValuedImagesAreMeasured) {
  const auto thresholded = [](double u, double white) {
    Picture picture = speckle(u);
    for (double& grey : picture) grey = grey > 140 ? white : 0;
    return bytes_of(picture);
  };
  for (const double white : {255, 254})
    for (const double u : {0.2, 0.3, 2.3}) {
      SCOPED_TRACE(testing::Message() << white << ", moved by " << u);
      const Measured m = measured({thresholded(0, white), thresholded(u, white)}, u, 0);
      expect_nearly_right(m, 0.97, 1.3);
      EXPECT_NEAR(m.mean_u, u, 0.03);
    }
}

/// Speckle beside a glare that moves the other way, saturated at 255.
Picture beside_glare(double u, double glare_x) {
  Picture picture = with_noise(speckle(u), 1, u > 0 ? 2 : 1);
  for (int k = 0; k < kSide * kSide; ++k) {
    const double x = k % kSide - glare_x, y = k / kSide - 120;
    picture[k] = std::clamp(0.5 * picture[k] + 500 * std::exp(-(x * x + y * y) / (2 * 20 * 20)), 0.0, 255.0);
  }
  return picture;
}

TEST(CameraFaults, ACameraSaturatesBelowTheLargestValueOfTheFile) {
  const Picture first = beside_glare(0, 120), second = beside_glare(2.4, 116);
  const Measured eight = measured({bytes_of(first), bytes_of(second)}, 2.4, 0);
  const double few =
      0.003 * static_cast<double>(eight.points);  // light beside the glare misleads a few points
  EXPECT_LE(static_cast<double>(eight.wrong), few);
  for (const double factor :
       {16.0, 4.0, 256.0, 15.0}) {  // 12 bits, 10 bits, left-justified, a level of its own
    SCOPED_TRACE(factor);
    const Measured m =
        measured({image_of<std::uint16_t>(first, factor), image_of<std::uint16_t>(second, factor)}, 2.4, 0);
    EXPECT_LE(m.wrong, eight.wrong);
    EXPECT_NEAR(static_cast<double>(m.ok), static_cast<double>(eight.ok),
                0.01 * static_cast<double>(m.points));
    EXPECT_NEAR(m.noise, factor * eight.noise, 0.15 * factor * eight.noise);
  }
}

TEST(CameraFaults, AnOffsetHidesNoTexture) {
  const Picture first = with_noise(speckle(0), 2, 1), second = with_noise(speckle(0.3), 2, 2);
  for (const double offset : {295.0, -295.0, 20.0, 1e4}) {
    SCOPED_TRACE(offset);
    expect_right(
        measured({image_of<float>(first, 0.01, offset), image_of<float>(second, 0.01, offset)}, 0.3, 0), 0.98,
        1.2);
  }
  for (const double offset : {8000, 30000, 60000}) {
    SCOPED_TRACE(offset);
    expect_right(
        measured({image_of<std::uint16_t>(first, 1, offset), image_of<std::uint16_t>(second, 1, offset)}, 0.3,
                 0),
        0.98, 1.2);
  }
}

TEST(CameraFaults, ARampIsFlatAtAnySlope) {
  for (const auto& [a, b] :
       std::vector<std::pair<double, double>>{{0.31, 0.17}, {0.37, -0.21}, {0.25, 0.125}, {0.4, 0.1}}) {
    const auto ramp = [a = a, b = b](double u) {
      return bytes_of(picture_of([&](int x, int y) { return 128 + a * (x - u - 120) + b * (y - 120); }));
    };
    for (const double u : {0.0, 1.0, 1.3}) {
      const Measured m = measured({ramp(0), ramp(u)}, u, 0);
      EXPECT_EQ(m.ok, 0) << a << ", " << b << ", moved by " << u;
      EXPECT_GT(m.flat, 0.9 * static_cast<double>(m.points));
    }
  }
}

// ---- noise that is not white ----

/// White noise of standard deviation 6 after a filter of 3x3 px.
Picture filtered_noise(unsigned seed) {
  const Picture white = with_noise(Picture(static_cast<std::size_t>(kSide) * kSide, 0), 6, seed);
  return picture_of([&](int x, int y) {
    double sum = 0;
    for (int j = -1; j <= 1; ++j)
      for (int i = -1; i <= 1; ++i)
        sum += (2 - std::abs(i)) * (2 - std::abs(j)) / 16.0 *
               white[(y + j + kSide) % kSide * kSide + (x + i + kSide) % kSide];
    return sum;
  });
}

TEST(CameraFaults, SigmaKnowsTheCorrelationOfTheNoise) {
  for (const unsigned seed : {1U, 3U}) {
    std::vector<Image> frames;
    for (const unsigned k : {0U, 1U}) {
      Picture picture = speckle(0.3 * k, 0.2 * k);
      const Picture noise = filtered_noise(seed + k);
      for (std::size_t n = 0; n < picture.size(); ++n) picture[n] += noise[n];
      frames.push_back(bytes_of(picture));
    }
    const Measured m = measured(frames, 0.3, 0.2);
    expect_right(m, 0.98, 1.15);
    EXPECT_GT(m.scatter, 0.7);
  }
}

/// Speckle whose rows (or columns) are displaced along themselves, as in a scanned image.
Picture scanned(double u, double jitter, bool columns, unsigned seed, double blob = 1.7) {
  std::mt19937 random(seed);
  std::normal_distribution<double> gauss(0, jitter);
  std::vector<double> shift;
  for (int k = 0; k < kSide; ++k) shift.push_back(gauss(random));
  const Speckle pattern(kSide, kSide, blob, 5);
  return with_noise(picture_of([&](int x, int y) {
                      return 128 +
                             40 * (columns ? pattern(x - u, y - shift[x]) : pattern(x - u - shift[y], y));
                    }),
                    2, seed + 1);
}

/// The picture in whole grey levels after a median filter of 3x3 px, as cameras denoise.
Picture denoised(const Picture& picture) {
  return picture_of([&](int x, int y) {
    std::array<double, 9> around;
    for (int k = 0; k < 9; ++k)
      around[k] = std::round(
          picture[std::clamp(y + k / 3 - 1, 0, kSide - 1) * kSide + std::clamp(x + k % 3 - 1, 0, kSide - 1)]);
    std::ranges::nth_element(around, around.begin() + 4);
    return around[4];
  });
}

TEST(CameraFaults, SigmaKnowsTheScatterAfterADenoisingFilter) {
  TrackOptions options;
  options.refine.subset = 15;  // many in the small picture
  double sum = 0;
  for (const unsigned seed : {1u, 5u, 9u, 13u}) {
    const Measured m = measured({bytes_of(denoised(with_noise(speckle(0), 5, seed))),
                                 bytes_of(denoised(with_noise(speckle(0.3, 0.2), 5, seed + 1)))},
                                0.3, 0.2, options);
    expect_nearly_right(m, 0.93, 1.25);  // small subsets lose points to noise
    sum += m.scatter / 4;
  }
  EXPECT_GT(sum, 0.9);
  EXPECT_LT(sum, 1.15);
}

TEST(CameraFaults, SigmaKnowsDisplacedLines) {
  for (const bool columns : {false, true})
    for (const double jitter : {0.1, 0.3}) {
      SCOPED_TRACE(testing::Message() << jitter << (columns ? ", columns" : ", rows"));
      const Measured m = measured(
          {bytes_of(scanned(0, jitter, columns, 1)), bytes_of(scanned(0.3, jitter, columns, 7))}, 0.3, 0);
      expect_right(m, 0.98, 1.25);
      EXPECT_GT(m.scatter, 0.7);
    }
}

/// Speckle with a grey value that each column and each row of the camera adds.
Picture with_lines(double u, double lines, unsigned seed) {
  std::mt19937 random(9);
  std::normal_distribution<double> gauss(0, lines);
  std::vector<double> column, row;
  for (int k = 0; k < kSide; ++k) column.push_back(gauss(random)), row.push_back(gauss(random));
  Picture picture = with_noise(speckle(u), 2, seed);
  for (int k = 0; k < kSide * kSide; ++k) picture[k] += column[k % kSide] + row[k / kSide];
  return picture;
}

TEST(CameraFaults, SigmaKnowsAPatternOfRowsAndColumns) {
  for (const double u : {0.1, 0.3, 0.7, 2.6}) {
    SCOPED_TRACE(u);
    expect_nearly_right(measured({bytes_of(with_lines(0, 3, 1)), bytes_of(with_lines(u, 3, 2))}, u, 0), 0.93,
                        1.4);
  }
}

analysis::SensorNoise noise_in(const Picture& picture) {
  Grid grid;
  grid.x0 = grid.y0 = 40, grid.step = 10, grid.nx = grid.ny = 17;
  grid.inside.assign(17 * 17, 1);
  return analysis::sensor_noise(
      analysis::PowerSpectrum::of(bytes_of(picture).view(), fields::Points(std::move(grid))).value());
}

TEST(CameraFaults, TheSpectrumTellsTheNoiseOfACamera) {
  EXPECT_NEAR(noise_in(scanned(0, 0.3, false, 1)).row_jitter, 0.3, 0.06);
  EXPECT_NEAR(noise_in(scanned(0, 0.3, true, 1)).column_jitter, 0.3, 0.06);
  EXPECT_NEAR(noise_in(with_lines(0, 3, 1)).column_pattern, 3, 1);
  EXPECT_NEAR(noise_in(with_lines(0, 3, 1)).row_pattern, 3, 1);
}

TEST(CameraFaults, ATextureHasNoNoiseOfACamera) {
  const auto expect_none = [](const Picture& picture) {
    const analysis::SensorNoise noise = noise_in(picture);
    EXPECT_EQ(noise.row_jitter, 0);
    EXPECT_EQ(noise.column_jitter, 0);
    EXPECT_EQ(noise.column_pattern, 0);
    EXPECT_EQ(noise.row_pattern, 0);
    EXPECT_EQ(noise.below_mosaic, 1);
  };
  for (const double blob : {0.6, 0.8, 1.0, 1.7, 3.0}) {
    SCOPED_TRACE(blob);
    expect_none(with_noise(speckle(0, 0, blob), 2, 1));
    Picture boxed = speckle(0, 0, blob);  // a date in a box, the straight edge of the specimen
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x)
        if ((x > 30 && x < 130 && y > 160 && y < 195) || x > 215) boxed[y * kSide + x] = 0;
    expect_none(with_noise(boxed, 2, 1));
    const Speckle pattern(4 * kSide, 4 * kSide, blob, 6);
    for (const double stretch : {2.0, 4.0}) {  // brushed along x, along y
      expect_none(
          with_noise(picture_of([&](int x, int y) { return 128 + 40 * pattern(x / stretch, y); }), 2, 1));
      expect_none(
          with_noise(picture_of([&](int x, int y) { return 128 + 40 * pattern(x, y / stretch); }), 2, 1));
    }
    expect_none(picture_of([&](int x, int y) { return pattern(x, y) > 0 ? 200 : 50; }));
  }
}

// ---- textures that repeat ----

/// Speckle that repeats every `period` px, moved by (u, v).
Picture repeating(int period, double u, double v) {
  struct Dot {
    double x, y;
  };
  std::mt19937 random(static_cast<unsigned>(period));
  std::uniform_real_distribution<double> at(0, period);
  std::vector<Dot> dots;
  for (int n = 0; n < period * period / 30; ++n) dots.push_back({at(random), at(random)});
  Picture tile;
  for (int y = 0; y < period; ++y)
    for (int x = 0; x < period; ++x) {
      double sum = 0;
      for (const Dot& dot : dots) {
        const double dx = std::remainder(x - u - dot.x, period), dy = std::remainder(y - v - dot.y, period);
        sum += std::exp(-(dx * dx + dy * dy) / 4.5);
      }
      tile.push_back(30 + 60 * sum);
    }
  return picture_of([&](int x, int y) { return tile[y % period * period + x % period]; });
}

TEST(CameraFaults, ATextureThatRepeatsFarAwayMovesTheSmallestWay) {
  for (const int period : {48, 64, 100})
    for (const double u : {0.0, 0.3, 3.3}) {
      SCOPED_TRACE(testing::Message() << period << ", moved by " << u);
      const Measured m = measured({bytes_of(with_noise(repeating(period, 0, 0), u > 0 ? 2 : 0, 1)),
                                   bytes_of(with_noise(repeating(period, u, 0.5 * u), u > 0 ? 2 : 0, 2))},
                                  u, 0.5 * u);
      expect_right(m, 0.95, 1.3);
    }
}

TEST(CameraFaults, ATextureThatRepeatsNearbyIsAmbiguous) {
  for (const double u : {0.3, 9.0}) {
    const Measured m = measured(
        {bytes_of(with_noise(repeating(20, 0, 0), 2, 1)), bytes_of(with_noise(repeating(20, u, 0), 2, 2))}, u,
        0);
    EXPECT_EQ(m.ok, 0);
    EXPECT_GT(m.ambiguous, 0.8 * static_cast<double>(m.points));
  }
}

// ---- steps ----

TEST(CameraFaults, SystematicErrorsOfStepsAddUpInSigma) {
  TrackOptions options;
  options.reference_strategy = ReferenceStrategy::previous;
  std::vector<Image> frames;
  for (int k = 0; k < 16; ++k) frames.push_back(bytes_of(with_noise(speckle(0.25 * k, 0, 0.8), 1, k)));
  const Measured m = measured(frames, 0.25 * 15, 0, options);
  EXPECT_GT(m.ok, 0.8 * static_cast<double>(m.points));
  EXPECT_EQ(m.wrong, 0);
  EXPECT_LT(m.scatter, 2);
}

}  // namespace
}  // namespace dic::test

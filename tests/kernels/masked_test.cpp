#include <cmath>
#include <dic/kernels/ncc.hpp>

#include "kernels/device_data.hpp"
#include "kernels/ncc_cases.hpp"
#include "support/gpu_test.hpp"

// Tests scores of references that extend beyond the border of their image (subsets cut by the border in the
// device pipeline) against the definition in float64. Correlator does not accept such references.
namespace dic::test {
namespace {

using kernels::DeviceBuffer;
using kernels::NccJob;
using kernels::ScoreKind;
using kernels::Stream;

constexpr int image_w = 90, image_h = 70;

enum class Mask { none, rectangle, speckle };

/// An image with its masks (one image, used as reference and current image) on the device.
template <typename T>
struct Scene {
  std::vector<T> pixels = random_values<T>(image_w * image_h, 3);
  std::vector<std::uint8_t> mask;  ///< empty: all elements count
  std::vector<PatchPosition> references, windows;
  int size, range;

  Scene(int subset, int search, Mask kind) : size(subset), range(search) {
    if (kind == Mask::speckle) mask = random_values<std::uint8_t>(pixels.size(), 5, 3);
    if (kind == Mask::rectangle)
      for (int i = 0; i < image_w * image_h; ++i) {
        const int x = i % image_w, y = i / image_w;
        mask.push_back(x >= 30 && x < 60 && y >= 20 && y < 50 ? 255 : 0);
      }
    for (int y = -size; y <= image_h; y += 7)
      for (int x = -size; x <= image_w; x += 11) {
        references.push_back({0, x, y});
        windows.push_back({0, x - range + x % 3, y - range + y % 2});
      }
  }

  bool counts(int x, int y) const {
    const bool exists = x >= 0 && y >= 0 && x < image_w && y < image_h;
    return exists && (mask.empty() || mask[y * image_w + x] != 0);
  }
  /// zncc of pair k with the reference displaced to (x, y); NaN if undefined, which is where the reference's
  /// part inside the image leaves image or window.
  double zncc(std::size_t k, int dx, int dy) const {
    const PatchPosition& r = references[k];
    const int u = windows[k].x + dx - r.x, v = windows[k].y + dy - r.y;  // displacement of the reference
    const int left = std::max(r.x, 0), right = std::min(r.x + size, image_w);
    const int top = std::max(r.y, 0), bottom = std::min(r.y + size, image_h);
    const bool inside = left + u >= std::max(windows[k].x, 0) && top + v >= std::max(windows[k].y, 0) &&
                        right + u <= std::min(windows[k].x + size + 2 * range, image_w) &&
                        bottom + v <= std::min(windows[k].y + size + 2 * range, image_h);
    if (!inside) return std::nan("");
    double n = 0, a_sum = 0, b_sum = 0, ab = 0, aa = 0, bb = 0;
    const auto at = [&](int x, int y) { return static_cast<double>(pixels[y * image_w + x]); };
    const auto for_each = [&](auto&& visit) {
      for (int y = top; y < bottom; ++y)
        for (int x = left; x < right; ++x)
          if (counts(x, y)) visit(at(x, y), at(x + u, y + v));
    };
    for_each([&](double a, double b) { ++n, a_sum += a, b_sum += b; });
    for_each([&](double a, double b) {
      const double p = a - a_sum / n, q = b - b_sum / n;
      ab += p * q, aa += p * p, bb += q * q;
    });
    return aa * bb > 0 ? ab / std::sqrt(aa * bb) : std::nan("");
  }
};

template <typename T>
std::vector<float> scores_of(const Scene<T>& scene, ScalarType type) {
  const Stream stream;
  const DeviceRows<T> image(image_w, image_h, scene.pixels, stream);
  const DeviceRows<std::uint8_t> mask(image_w, image_h, scene.mask, stream);
  const std::vector<kernels::DeviceImage> descriptions{image.image(), mask.image()};
  DeviceBuffer tables;
  const std::size_t table = descriptions.size() * sizeof descriptions[0];
  const std::size_t list = scene.references.size() * sizeof(PatchPosition);
  auto* const images = static_cast<kernels::DeviceImage*>(tables.reserve(table + 2 * list));
  auto* const references = reinterpret_cast<PatchPosition*>(images + descriptions.size());
  PatchPosition* const windows = references + scene.references.size();
  kernels::upload(images, descriptions.data(), table, stream);
  kernels::upload(references, scene.references.data(), list, stream);
  kernels::upload(windows, scene.windows.data(), list, stream);

  const auto count = static_cast<std::int64_t>(scene.references.size());
  const int window = scene.size + 2 * scene.range;
  const NccJob job{.pairing = Pairing::one_to_one,
                   .type = type,
                   .sums = kernels::sums_for_scores(type, scene.size, scene.size),
                   .reference = {images, references, count, scene.size, scene.size},
                   .search = {images, windows, count, window, window},
                   .masks = scene.mask.empty() ? nullptr : images + 1,
                   .shifts = {0, 2 * scene.range, 0, 2 * scene.range},
                   .pairs = count};
  const DeviceRows<float> scores(static_cast<int>(job.outputs()), 1, stream);
  kernels::Workspace workspace;
  kernels::launch_masked_scores(job, Criterion::zncc, ScoreKind::score, scores.data(), workspace,
                                stream.handle());
  return scores.values(stream);
}

template <typename T>
void check_scene(const Scene<T>& scene, ScalarType type, int least_defined) {
  SCOPED_TRACE("subset " + std::to_string(scene.size) + " range " + std::to_string(scene.range));
  const std::vector<float> got = scores_of(scene, type);
  std::size_t i = 0;
  int defined = 0;
  for (std::size_t k = 0; k < scene.references.size(); ++k)
    for (int dy = 0; dy <= 2 * scene.range; ++dy)
      for (int dx = 0; dx <= 2 * scene.range; ++dx, ++i) {
        const double want = scene.zncc(k, dx, dy);
        const std::string where =
            "pair " + std::to_string(k) + " shift " + std::to_string(dx) + ", " + std::to_string(dy);
        if (std::isnan(want)) {
          ASSERT_EQ(got[i], -std::numeric_limits<float>::infinity()) << where;
        } else {
          ASSERT_NEAR(got[i], want, 2e-6) << where;
          ++defined;
        }
      }
  EXPECT_GT(defined, least_defined);
}

using KernelsMasked = GpuTest;

TEST_F(KernelsMasked, ReferencesOverTheBorder) {
  for (const Mask mask : {Mask::none, Mask::rectangle, Mask::speckle})
    for (const auto& [size, range] : {std::pair{33, 2}, {33, 15}, {9, 5}, {41, 1}}) {
      // fewer references overlap the rectangle
      const int least_defined = mask == Mask::rectangle ? 300 : 500;
      check_scene(Scene<std::uint8_t>(size, range, mask), ScalarType::u8, least_defined);
      check_scene(Scene<std::uint16_t>(size, range, mask), ScalarType::u16, least_defined);
      check_scene(Scene<float>(size, range, mask), ScalarType::f32, least_defined);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace dic::test

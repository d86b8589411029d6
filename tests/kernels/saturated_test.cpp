#include <dic/image.hpp>
#include <dic/kernels/refine.hpp>
#include <dic/kernels/saturated.hpp>
#include <limits>
#include <random>

#include "kernels/device_data.hpp"
#include "support/gpu_test.hpp"

// Tests saturated pixels of images against their definition.
namespace dic::test {
namespace {

using KernelsSaturated = GpuTest;

/// Noise with rectangles of the largest value, some of them thinner than three pixels.
template <typename T>
std::vector<T> with_glare(int width, int height, unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  constexpr int most = std::numeric_limits<T>::max();
  std::vector<T> pixels(static_cast<std::size_t>(width) * height);
  for (T& pixel : pixels) pixel = static_cast<T>(any(20) == 0 ? most : any(most));
  for (int k = 0; k < 12; ++k) {
    const int x0 = any(width), y0 = any(height), w = 1 + any(40), h = 1 + any(6);
    for (int y = y0; y < std::min(height, y0 + h); ++y)
      for (int x = x0; x < std::min(width, x0 + w); ++x)
        pixels[static_cast<std::size_t>(y) * width + x] = static_cast<T>(most);
  }
  return pixels;
}

/// True if the pixel is in a 3x3 px square of the largest value.
template <typename T>
bool naive_saturated(const std::vector<T>& pixels, int width, int height, int x, int y) {
  for (int top = std::max(0, y - 2); top <= std::min(height - 3, y); ++top)
    for (int left = std::max(0, x - 2); left <= std::min(width - 3, x); ++left) {
      bool all = true;
      for (int j = top; j < top + 3; ++j)
        for (int i = left; i < left + 3; ++i)
          all = all && pixels[static_cast<std::size_t>(j) * width + i] == std::numeric_limits<T>::max();
      if (all) return true;
    }
  return false;
}

/// An image with rows as the library places them in device memory.
template <typename T>
class AlignedRows {
 public:
  AlignedRows(int width, int height, const std::vector<T>& pixels, const kernels::Stream& stream)
      : pitch_(kernels::device_pitch(width, sizeof(T))) {
    memory_.reserve(pitch_ * height);
    kernels::fill(memory_.data(), 0, pitch_ * height, stream.handle());
    kernels::upload(memory_.data(), pitch_, pixels.data(), width * sizeof(T), width * sizeof(T), height,
                    stream);
  }
  const void* data() const { return memory_.data(); }
  kernels::DeviceImage image() const { return {data(), static_cast<std::ptrdiff_t>(pitch_), 0, 0}; }

 private:
  std::size_t pitch_;
  kernels::DeviceBuffer memory_;
};

template <typename T, template <typename> typename Rows>
void check(int width, int height, bool glare) {
  SCOPED_TRACE(testing::Message() << width << " x " << height << ", " << sizeof(T) << " bytes");
  const kernels::Stream stream;
  std::vector<T> pixels = with_glare<T>(width, height, 5);
  if (!glare) std::ranges::fill(pixels, T{7});
  const Rows<T> image(width, height, pixels, stream);
  const kernels::SaturatedPixels size{nullptr, width, height};
  const DeviceRows<std::uint32_t> words(static_cast<int>(size.size()), 1, stream),
      scratch(static_cast<int>(size.size()), 1, stream);
  kernels::PinnedBuffer on_host;
  auto* any = on_host.reserve<std::int32_t>(1);
  *any = 0;
  ImageView view;
  view.data = image.data();
  view.width = width, view.height = height;
  view.row_bytes = image.image().row_bytes;
  view.type = scalar_type_of<T>();
  kernels::launch_find_saturated(view, words.data(), scratch.data(), any, stream.handle());
  const auto found = words.values(stream);
  scratch.values(stream);
  bool want_any = false;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const bool got = found[static_cast<std::size_t>(y) * size.row_words() + x / 32] >> (x % 32) & 1;
      const bool want = naive_saturated(pixels, width, height, x, y);
      want_any = want_any || want;
      ASSERT_EQ(got, want) << x << ", " << y;
    }
  EXPECT_EQ(*any != 0, want_any);
  EXPECT_EQ(want_any, glare && width > 2 && height > 2);
}

TEST_F(KernelsSaturated, SquaresOfTheLargestValue) {
  for (const bool glare : {true, false})
    for (const auto& [width, height] : {std::pair{211, 150}, {64, 64}, {97, 31}, {2, 40}, {40, 2}}) {
      check<std::uint8_t, DeviceRows>(width, height, glare);
      check<std::uint16_t, DeviceRows>(width, height, glare);
      check<std::uint8_t, AlignedRows>(width, height, glare);
      check<std::uint16_t, AlignedRows>(width, height, glare);
    }
}

/// The statuses of `count` successful results in a white image after the search for saturated pixels. All
/// tasks have this point: 0, the only one, or no_point, whose results are left unchanged (as in banded
/// images).
std::vector<Status> statuses_in_white(std::int32_t point, int count) {
  constexpr int side = 64, subset = 21, radius = subset / 2;
  const kernels::Stream stream;
  const kernels::SaturatedPixels size{nullptr, side, side};
  const DeviceRows<std::uint32_t> white(static_cast<int>(size.size()), 1,
                                        std::vector<std::uint32_t>(size.size(), ~0u), stream);
  kernels::PreparedSubset centre;
  centre.x = centre.y = side / 2;
  centre.left = centre.top = -radius;
  centre.right = centre.bottom = radius;
  kernels::RefineTask task;
  task.point = point;
  kernels::RefineResult good;
  good.status = Status::ok;
  const DeviceRows<kernels::PreparedSubset> subsets(2, 1, {centre, centre}, stream),
      listed_subsets(count, 1, stream);
  const DeviceRows<kernels::RefineTask> tasks(count, 1, std::vector(count, task), stream),
      listed_tasks(count, 1, stream);
  const DeviceRows<kernels::RefineResult> results(count, 1, std::vector(count, good), stream);
  const DeviceRows<kernels::RepeatedTask> of_task(count, 1, stream);
  const kernels::PixelMasks masks(nullptr, subset);
  const DeviceRows<std::uint32_t> hidden(count * masks.words_of(), 1, stream);
  const DeviceRows<std::int32_t> listed(1, 1, stream);
  kernels::SaturatedFrame frame;
  frame.reference = frame.current = {white.data(), side, side};
  frame.masks = masks;
  frame.subsets = subsets.data() + 1;  // the element before it is readable, too
  frame.tasks = tasks.data();
  frame.results = results.data();
  frame.count = count;
  kernels::launch_list_saturated(
      frame, {listed_subsets.data(), listed_tasks.data(), of_task.data(), hidden.data(), listed.data()},
      stream.handle());
  std::vector<kernels::RefineResult> after(count);
  kernels::download(after.data(), results.data(), count * sizeof(after[0]), stream);
  stream.synchronize("downloading");
  std::vector<Status> statuses;
  for (const kernels::RefineResult& result : after) statuses.push_back(result.status);
  return statuses;
}

TEST_F(KernelsSaturated, TasksOfNoPointAreNotLookedAt) {
  constexpr int count = 70;
  EXPECT_EQ(statuses_in_white(0, count), std::vector(count, Status::low_correlation));
  EXPECT_EQ(statuses_in_white(kernels::no_point, count), std::vector(count, Status::ok));
}

}  // namespace
}  // namespace dic::test

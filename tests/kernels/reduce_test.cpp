#include <cmath>
#include <dic/error.hpp>
#include <dic/kernels/reduce.hpp>
#include <limits>

#include "kernels/device_data.hpp"
#include "support/gpu_test.hpp"

// Tests reductions, largest elements and integral images against loops on the host.
namespace dic::test {
namespace {

using kernels::DeviceBuffer;
using kernels::Element;
using kernels::Power;
using kernels::Segments;
using kernels::Stream;
using kernels::SumOf;

struct Batch {
  int length, count;
};
constexpr Batch batches[] = {{1, 1},    {1, 5},     {2, 3},       {31, 7},     {81, 70000}, {2048, 3},
                             {2049, 3}, {8191, 20}, {40000, 300}, {100003, 2}, {0, 4},      {7, 0}};

template <typename T>
Segments<T> segments_of(const DeviceRows<T>& rows, Batch batch) {
  return {rows.data(), batch.count, batch.length, rows.pitch()};
}

template <typename T>
SumOf<T> naive_sum(const T* values, int n, double& magnitude) {
  std::conditional_t<std::is_floating_point_v<T>, long double, SumOf<T>> sum = 0;
  magnitude = 0;
  for (int i = 0; i < n; ++i) sum += values[i], magnitude += std::abs(static_cast<double>(values[i]));
  return static_cast<SumOf<T>>(sum);
}

template <typename T>
Element<T> naive_extreme(const T* values, int n, bool largest) {
  Element<T> best{T{0}, -1};
  for (int i = 0; i < n; ++i) {
    if (std::isnan(static_cast<double>(values[i]))) continue;
    if (best.index < 0 || (largest ? values[i] > best.value : values[i] < best.value)) best = {values[i], i};
  }
  return best;
}

/// Queues launch(out, workspace) twice into poisoned memory; both results must be equal.
template <typename Out, typename Launch>
std::vector<Out> run_twice(std::size_t count, std::size_t workspace_bytes, const Stream& stream,
                           const Launch& launch) {
  DeviceBuffer workspace;
  workspace.reserve(workspace_bytes);
  const DeviceRows<Out> first(static_cast<int>(count), 1, stream), second(static_cast<int>(count), 1, stream);
  for (const auto* out : {&first, &second}) {
    kernels::fill(workspace.data(), device_poison, workspace_bytes, stream.handle());
    launch(out->data(), workspace.data());
  }
  std::vector<Out> got = first.values(stream), again = second.values(stream);
  EXPECT_EQ(got, again) << "not repeatable";
  return got;
}

template <typename T>
void check_extremes(const Segments<T>& in, Batch batch, const std::vector<T>& values, const Stream& stream,
                    bool largest) {
  const auto got = run_twice<Element<T>>(
      batch.count, kernels::reduction_workspace_bytes(in), stream, [&](Element<T>* out, void* workspace) {
        (largest ? kernels::launch_maxima<T> : kernels::launch_minima<T>)(in, out, workspace,
                                                                          stream.handle());
      });
  for (int s = 0; s < batch.count; ++s) {
    const Element<T> want =
        naive_extreme(values.data() + static_cast<std::size_t>(s) * batch.length, batch.length, largest);
    ASSERT_EQ(got[s], want) << "segment " << s;
  }
}

template <typename T>
void check_reductions(Batch batch, const std::vector<T>& values) {
  SCOPED_TRACE(testing::Message() << batch.count << " segments of " << batch.length);
  const Stream stream;
  const DeviceRows<T> rows(batch.length, batch.count, values, stream);
  const Segments<T> in = segments_of(rows, batch);
  const auto sums = run_twice<SumOf<T>>(
      batch.count, kernels::reduction_workspace_bytes(in), stream,
      [&](SumOf<T>* out, void* workspace) { kernels::launch_sums(in, out, workspace, stream.handle()); });
  for (int s = 0; s < batch.count; ++s) {
    double magnitude = 0;
    const SumOf<T> want =
        naive_sum(values.data() + static_cast<std::size_t>(s) * batch.length, batch.length, magnitude);
    if constexpr (std::is_floating_point_v<T>)
      ASSERT_NEAR(sums[s], want, 1e-14 * magnitude) << "segment " << s;
    else
      ASSERT_EQ(sums[s], want) << "segment " << s;
  }
  check_extremes(in, batch, values, stream, false);
  check_extremes(in, batch, values, stream, true);
}

template <typename T>
void check_reductions() {
  for (const Batch batch : batches) {
    const std::size_t count = static_cast<std::size_t>(batch.length) * batch.count;
    if (only_small_tests() && count > 1000000) continue;
    check_reductions(batch, random_values<T>(count, 1));
    check_reductions(batch, random_values<T>(count, 2, 5));  // ties
    if (testing::Test::HasFatalFailure()) return;
  }
}

using Reduction = GpuTest;

TEST_F(Reduction, U8) { check_reductions<std::uint8_t>(); }
TEST_F(Reduction, U16) { check_reductions<std::uint16_t>(); }
TEST_F(Reduction, I32) { check_reductions<std::int32_t>(); }
TEST_F(Reduction, F32) { check_reductions<float>(); }
TEST_F(Reduction, F64) { check_reductions<double>(); }

/// Floats that are hard to rank: infinities, NaN, zeros of both signs, a denormal.
std::vector<float> awkward_floats(std::size_t count, unsigned seed) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const float awkward[] = {nan, -nan, infinity, -infinity, 0.0F, -0.0F, 1.0F, -1.0F, 1e-40F};
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = awkward[random() % std::size(awkward)];
  return values;
}

TEST_F(Reduction, ExtremesIgnoreNan) {
  const Stream stream;
  for (const Batch batch : {Batch{1, 50}, Batch{3, 50}, Batch{40000, 3}}) {
    const auto values = awkward_floats(static_cast<std::size_t>(batch.length) * batch.count, 3);
    const DeviceRows<float> rows(batch.length, batch.count, values, stream);
    check_extremes(segments_of(rows, batch), batch, values, stream, false);
    check_extremes(segments_of(rows, batch), batch, values, stream, true);
  }
}

void check_largest(Batch batch, int k, const std::vector<float>& values) {
  SCOPED_TRACE(testing::Message() << k << " of " << batch.count << " segments of " << batch.length);
  const Stream stream;
  const DeviceRows<float> rows(batch.length, batch.count, values, stream);
  const Segments<float> in = segments_of(rows, batch);
  const auto got = run_twice<Element<float>>(
      static_cast<std::size_t>(batch.count) * k, kernels::largest_workspace_bytes(in, k), stream,
      [&](Element<float>* out, void* workspace) {
        kernels::launch_largest(in, k, out, workspace, stream.handle());
      });
  for (int s = 0; s < batch.count; ++s) {
    std::vector<Element<float>> want;
    for (int i = 0; i < batch.length; ++i) {
      const float value = values[static_cast<std::size_t>(s) * batch.length + i];
      if (!std::isnan(value)) want.push_back({value, i});
    }
    std::ranges::stable_sort(want, [](const auto& a, const auto& b) { return a.value > b.value; });
    want.resize(k, {0, -1});
    for (int i = 0; i < k; ++i)
      ASSERT_EQ(got[static_cast<std::size_t>(s) * k + i], want[i]) << "segment " << s << " rank " << i;
  }
}

using Largest = GpuTest;

TEST_F(Largest, OfSegments) {
  for (const int k : {1, 2, 5, 81, 1000, 1024}) {
    for (const Batch batch : {Batch{1, 1}, Batch{31, 7}, Batch{81, 300}, Batch{2049, 3}, Batch{20011, 2},
                              Batch{200003, 2}, Batch{0, 3}, Batch{7, 0}}) {
      const std::size_t count = static_cast<std::size_t>(batch.length) * batch.count;
      check_largest(batch, k, random_values<float>(count, 4));
      check_largest(batch, k, random_values<float>(count, 5, 3));  // ties
      check_largest(batch, k, awkward_floats(count, 6));
    }
  }
}

TEST_F(Largest, OfRisingValuesReplaceAllBefore) {
  std::vector<float> values(300000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  check_largest({300000, 1}, 777, values);
}

template <typename T, Power power>
void check_integral(int w, int h) {
  SCOPED_TRACE(testing::Message() << w << " x " << h);
  using Sum = kernels::IntegralOf<T, power>;
  const Stream stream;
  const auto values = random_values<T>(static_cast<std::size_t>(w) * h, 7);
  const DeviceRows<T> in(w, h, values, stream);
  const std::size_t entries = (w + std::size_t{1}) * (h + 1);
  const auto got =
      run_twice<Sum>(entries, kernels::integral_workspace_bytes<T, power>(in.image()), stream,
                     [&](Sum* out, void* workspace) {
                       kernels::launch_integral<T, power>(in.image(), out, workspace, stream.handle());
                     });
  std::vector<Sum> columns(w + 1, Sum{0});
  double magnitude = 0;
  for (int x = 0; x <= w; ++x) ASSERT_EQ(got[x], Sum{0}) << "column " << x;
  for (int y = 0; y < h; ++y) {
    Sum row = 0;
    for (int x = 0; x <= w; ++x) {
      const Sum value = x == 0 ? Sum{0} : static_cast<Sum>(values[static_cast<std::size_t>(y) * w + x - 1]);
      row += power == Power::one ? value : value * value;
      columns[x] += row;
      const Sum found = got[(y + std::size_t{1}) * (w + 1) + x];
      if constexpr (std::is_integral_v<Sum>) {
        ASSERT_EQ(found, columns[x]) << "row " << y << " column " << x;
      } else {
        magnitude += std::abs(value) + value * value;
        ASSERT_NEAR(found, columns[x], 1e-13 * magnitude) << "row " << y << " column " << x;
      }
    }
  }
}

template <typename T>
void check_integrals() {
  for (const auto& [w, h] : {std::pair{1, 1},
                             {1, 100},
                             {500, 1},
                             {3, 2},
                             {128, 15},
                             {129, 16},
                             {127, 30},
                             {515, 301},
                             {2000, 33},
                             {0, 5},
                             {5, 0},
                             {0, 0}}) {
    check_integral<T, Power::one>(w, h);
    check_integral<T, Power::two>(w, h);
    if (testing::Test::HasFatalFailure()) return;
  }
}

using Integral = GpuTest;

TEST_F(Integral, U8) { check_integrals<std::uint8_t>(); }
TEST_F(Integral, U16) { check_integrals<std::uint16_t>(); }
TEST_F(Integral, F32) { check_integrals<float>(); }

TEST_F(Integral, SumsOfRectanglesSurviveTheWrap) {
  // 4200 x 4100 of 255 are more than 2^32; a rectangle's sum is still exact.
  constexpr int w = 4200, h = 4100;
  const Stream stream;
  const DeviceRows<std::uint8_t> in(w, h, std::vector<std::uint8_t>(std::size_t{w} * h, 255), stream);
  DeviceBuffer table, workspace;
  const std::size_t entries = (w + std::size_t{1}) * (h + 1);
  auto* out = static_cast<std::uint32_t*>(table.reserve(entries * 4));
  workspace.reserve(kernels::integral_workspace_bytes<std::uint8_t, Power::one>(in.image()));
  kernels::launch_integral<std::uint8_t, Power::one>(in.image(), out, workspace.data(), stream.handle());
  std::vector<std::uint32_t> got(entries);
  kernels::download(got.data(), out, entries * 4, stream);
  stream.synchronize("integral image");
  const auto at = [&](int y, int x) { return got[y * (w + std::size_t{1}) + x]; };
  EXPECT_EQ(at(4100, 4150) - at(50, 4150) - at(4100, 100) + at(50, 100), 255u * 4050u * 4050u);
}

}  // namespace
}  // namespace dic::test

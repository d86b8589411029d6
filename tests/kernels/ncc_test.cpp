#include <algorithm>
#include <dic/kernels/ncc.hpp>
#include <map>
#include <set>
#include <thread>

#include "kernels/ncc_parameters.hpp"
#include "support/gpu_test.hpp"

// Tests every registered variant against the definition.
namespace dic::test {
namespace {

using kernels::DeviceBuffer;
using kernels::NccJob;
using kernels::NccVariant;
using kernels::Stream;
using kernels::SumError;
using kernels::Workspace;

constexpr int poison = 0xa5;

/// One side of a case in device memory. Rows have `pad` elements between them, so that they start at every
/// alignment.
template <typename T>
struct DeviceSide {
  static constexpr int pad = 3;
  DeviceBuffer pixels, images, positions;

  kernels::DevicePatches upload(const Side& side, const std::vector<T>& values, const Stream& stream) {
    const std::size_t row = side.image_w * sizeof(T), pitch = row + pad * sizeof(T);
    const std::size_t rows = static_cast<std::size_t>(side.image_h) * side.images;
    // The data starts one element later, so that the first row is not aligned either; 4 readable bytes follow
    // it.
    const std::size_t bytes = rows * pitch + sizeof(T) + 4;
    auto* first = static_cast<T*>(pixels.reserve(bytes)) + 1;
    kernels::fill(pixels.data(), poison, bytes, stream.handle());
    kernels::upload(first, pitch, values.data(), row, row, rows, stream);
    std::vector<kernels::DeviceImage> descriptions;
    for (int p = 0; p < side.images; ++p)
      descriptions.push_back({reinterpret_cast<char*>(first) + pitch * side.image_h * p,
                              static_cast<std::ptrdiff_t>(pitch), side.image_w, side.image_h});
    return {upload_table<kernels::DeviceImage>(images, descriptions, stream),
            upload_table<PatchPosition>(positions, side.positions, stream),
            static_cast<std::int64_t>(side.positions.size()), side.h, side.w};
  }

 private:
  template <typename Row>
  static const Row* upload_table(DeviceBuffer& buffer, const std::vector<Row>& table, const Stream& stream) {
    const std::size_t bytes = table.size() * sizeof(Row);
    void* target = buffer.reserve(bytes);
    if (bytes > 0) kernels::upload(target, table.data(), bytes, stream);
    return static_cast<const Row*>(target);
  }
};

/// Runs a variant over the pairs in parts that end at `cuts`, into poisoned memory.
template <typename T, typename Sum>
std::vector<Sum> run(const NccVariant& variant, const Case& c, SurfaceType sums,
                     const std::vector<T>& reference, const std::vector<T>& search,
                     const std::vector<std::int64_t>& cuts, Workspace& workspace) {
  const Stream stream;
  DeviceSide<T> reference_side, search_side;
  NccJob job;
  job.pairing = c.pairing;
  job.type = std::is_same_v<T, std::uint8_t>    ? ScalarType::u8
             : std::is_same_v<T, std::uint16_t> ? ScalarType::u16
             : std::is_same_v<T, std::int32_t>  ? ScalarType::i32
             : std::is_same_v<T, float>         ? ScalarType::f32
                                                : ScalarType::f64;
  job.sums = sums;
  job.reference = reference_side.upload(c.reference, reference, stream);
  job.search = search_side.upload(c.search, search, stream);
  job.shifts = c.shifts;

  std::vector<Sum> result(c.pairs * c.shifts.count());
  DeviceBuffer out;
  out.reserve(result.size() * sizeof(Sum));
  kernels::fill(out.data(), poison, result.size() * sizeof(Sum), stream.handle());
  for (const std::int64_t end : cuts) {
    job.first_pair += job.pairs;
    job.pairs = end - job.first_pair;
    kernels::launch_ncc(variant, job, static_cast<Sum*>(out.data()) + job.first_pair * c.shifts.count(),
                        workspace, stream.handle());
  }
  if (!result.empty()) kernels::download(result.data(), out.data(), result.size() * sizeof(Sum), stream);
  stream.synchronize(kernels::describe(variant.name, job));
  return result;
}

template <typename T, typename Sum>
std::vector<NaiveSum<Sum>> answers(const Case& c, const std::vector<T>& reference,
                                   const std::vector<T>& search) {
  std::vector<NaiveSum<Sum>> all;
  const Pixels<T> a{c.reference, reference}, b{c.search, search};
  for (std::int64_t k = 0; k < c.pairs; ++k) {
    const auto [r, s] = pair_at(c, k);
    const double norms = norm(a, r) * norm(b, s);
    for (int dy = c.shifts.dy_min; dy <= c.shifts.dy_max; ++dy)
      for (int dx = c.shifts.dx_min; dx <= c.shifts.dx_max; ++dx) {
        all.push_back(naive_sum<Sum>(a, r, b, s, dy, dx));
        all.back().norms = norms;
      }
  }
  return all;
}

/// The naive answers of one case, computed once for all variants.
template <typename T, typename Sum>
const std::vector<NaiveSum<Sum>>& expected(const Case& c, const std::vector<T>& reference,
                                           const std::vector<T>& search) {
  static std::map<std::string, std::vector<NaiveSum<Sum>>> known;
  std::vector<NaiveSum<Sum>>& of_case = known[c.name];
  if (of_case.empty()) of_case = answers<T, Sum>(c, reference, search);
  return of_case;
}

/// Largest rounding error that a variant may have.
template <typename Sum>
double tolerance(SumError error, const NaiveSum<Sum>& want, double elements) {
  return std::numeric_limits<Sum>::epsilon() *
         (error == SumError::norms ? 8 * want.norms : elements * want.magnitude);
}

template <typename Sum>
void compare(const std::vector<Sum>& got, const std::vector<NaiveSum<Sum>>& want, double elements,
             SumError error) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if constexpr (std::is_integral_v<Sum>)
      ASSERT_EQ(got[i], want[i].sum) << "output " << i;
    else
      ASSERT_NEAR(got[i], want[i].sum, tolerance(error, want[i], elements)) << "output " << i;
  }
}

template <typename T, typename Sum>
void check(const NccVariant& variant, const Case& c, SurfaceType sums) {
  SCOPED_TRACE(c.name);
  const std::vector<T> reference = random_pixels<T>(c.reference, 1), search = random_pixels<T>(c.search, 2);
  const auto& want = expected<T, Sum>(c, reference, search);
  const double elements = static_cast<double>(c.reference.h) * c.reference.w;
  Workspace workspace;
  compare(run<T, Sum>(variant, c, sums, reference, search, {c.pairs}, workspace), want, elements,
          variant.sum_error);
  // Parts, also cut in the middle of a reference's windows, must give the same answers.
  compare(run<T, Sum>(variant, c, sums, reference, search,
                      {c.pairs / 3, c.pairs / 2 + 1 - (c.pairs < 2), c.pairs}, workspace),
          want, elements, variant.sum_error);
}

class EveryVariant : public GpuTest, public testing::WithParamInterface<NccParameter> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string obstacle = GetParam().variant->unavailable_reason();
    if (!obstacle.empty()) skip_without_gpu(obstacle);
  }

  template <typename T, typename Sum>
  void check_all() {
    for (const Case& c : ncc_cases()) {
      if (GetParam().can_do(c)) check<T, Sum>(*GetParam().variant, c, GetParam().sums);
      if (HasFatalFailure()) return;
    }
  }
};

TEST_P(EveryVariant, ComputesTheDefinition) {
  switch (GetParam().type) {
    case ScalarType::u8:
      if (GetParam().sums == SurfaceType::u32) return check_all<std::uint8_t, std::uint32_t>();
      return check_all<std::uint8_t, std::uint64_t>();
    case ScalarType::u16:
      return check_all<std::uint16_t, std::uint64_t>();
    case ScalarType::i32:
      return check_all<std::int32_t, std::int64_t>();
    case ScalarType::f32:
      if (GetParam().sums == SurfaceType::f32) return check_all<float, float>();
      return check_all<float, double>();
    case ScalarType::f64:
      return check_all<double, double>();
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryVariant, testing::ValuesIn(ncc_parameters()),
                         [](const auto& parameter) { return parameter.param.name; });

/// Additional tests of the FFT variants.
class Fft : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && !kernels::cufft_problem().empty())
      skip_without_gpu(kernels::cufft_problem());
  }

  static const NccVariant& variant(std::string_view name) {
    return *std::ranges::find(kernels::ncc_variants(), name, &NccVariant::name);
  }
  template <typename T, typename Sum>
  static void check_in(Workspace& workspace, const Case& c, SurfaceType sums,
                       std::string_view name = "cuda-fft") {
    SCOPED_TRACE(c.name);
    const std::vector<T> reference = random_pixels<T>(c.reference, 5), search = random_pixels<T>(c.search, 6);
    const double elements = static_cast<double>(c.reference.h) * c.reference.w;
    compare(run<T, Sum>(variant(name), c, sums, reference, search, {c.pairs}, workspace),
            answers<T, Sum>(c, reference, search), elements, SumError::norms);
  }
};

TEST_F(Fft, TakesOddAndPrimeSizes) {
  Workspace workspace;
  const auto primes =
      make_case("primes", Pairing::n_to_m, 2, 3, 23, 37, 31, 41, Shifts::full({37, 23}, {41, 31}));
  check_in<float, float>(workspace, primes, SurfaceType::f32);
  check_in<std::uint16_t, std::uint64_t>(workspace, primes, SurfaceType::u64);
  check_in<double, double>(workspace,
                           make_case("row", Pairing::one_to_one, 5, 5, 1, 131, 1, 257, {-9, 90, 0, 0}),
                           SurfaceType::f64);
}

TEST_F(Fft, FusedTakesEveryLength) {
  Workspace workspace;
  for (const int h : {11, 16, 24, 33, 48, 64}) {
    const auto n = std::to_string(h);
    check_in<float, float>(
        workspace, make_case("full_" + n, Pairing::n_to_mn, 2, 4, h, h, h, h, Shifts::full({h, h}, {h, h})),
        SurfaceType::f32, "cuda-fft-fused");
    check_in<float, float>(workspace,
                           make_case("valid_" + n, Pairing::one_to_one, 2, 2, h, h, 2 * h, 2 * h,
                                     Shifts::valid({h, h}, {2 * h, 2 * h})),
                           SurfaceType::f32, "cuda-fft-fused");
  }
  for (const int n : {32, 48, 64, 96, 128}) {  // more pairs than blocks
    const int h = n - 6;
    for (const Case& c :
         {make_case("own", Pairing::n_to_mn, 3, 132, h, h, n, n, Shifts::valid({h, h}, {n, n})),
          make_case("shared", Pairing::n_to_m, 13, 10, h, h, n, n, Shifts::valid({h, h}, {n, n}))})
      check_in<float, float>(workspace, c, SurfaceType::f32, "cuda-fft-fused");
  }
}

TEST_F(Fft, SplitTakesEveryLength) {
  Workspace workspace;
  for (const int n : {131, 180, 200, 250, 300, 370, 400, 511}) {
    const int h = n / 2 + 1, near = n - 2;
    for (const Case& c :
         {make_case("wide", Pairing::n_to_mn, 2, 4, 3, h, 2, n - h + 1, Shifts::full({h, 3}, {n - h + 1, 2})),
          make_case("tall", Pairing::one_to_one, 3, 3, h, 2, n - h + 1, 3,
                    Shifts::full({2, h}, {3, n - h + 1})),
          make_case("near", Pairing::n_to_m, 2, 2, near, 40, n, 90, {-3, 2, -1, 2}, 30)})
      check_in<float, float>(workspace, c, SurfaceType::f32, "cuda-fft-split");
  }
}

TEST_F(Fft, DoesJobsInPartsWhereMemoryIsSmall) {
  Workspace workspace(40000);
  for (const Case& c :
       {make_case("own", Pairing::n_to_mn, 7, 35, 9, 9, 17, 17, Shifts::valid({9, 9}, {17, 17})),
        make_case("pairs", Pairing::one_to_one, 50, 50, 9, 9, 17, 17, Shifts::full({9, 9}, {17, 17})),
        make_case("many", Pairing::one_to_many, 1, 50, 9, 9, 17, 17, Shifts::full({9, 9}, {17, 17})),
        make_case("shared", Pairing::n_to_m, 11, 3, 9, 9, 17, 17, Shifts::full({9, 9}, {17, 17})),
        make_case("wide", Pairing::n_to_m, 3, 40, 9, 9, 17, 17, Shifts::full({9, 9}, {17, 17})),
        make_case("one", Pairing::one_to_one, 2, 2, 60, 60, 90, 90, Shifts::valid({60, 60}, {90, 90}))})
    check_in<std::uint8_t, std::uint32_t>(workspace, c, SurfaceType::u32);
  Workspace larger(1 << 20);  // six spectra of 192x192
  for (const Pairing pairing : {Pairing::one_to_one, Pairing::n_to_m})
    check_in<float, float>(larger, make_case("split", pairing, 5, 5, 31, 31, 150, 150, {-30, -20, 0, 9}),
                           SurfaceType::f32, "cuda-fft-split");
}

TEST_F(Fft, KeepsItsMemory) {
  Workspace workspace;
  const auto c = make_case("c", Pairing::one_to_one, 20, 20, 9, 9, 17, 17, Shifts::full({9, 9}, {17, 17}));
  check_in<float, float>(workspace, c, SurfaceType::f32);
  const void* const memory = workspace.memory().data();
  const std::size_t size = workspace.memory().size();
  check_in<float, float>(workspace, c, SurfaceType::f32);
  EXPECT_EQ(workspace.memory().data(), memory);
  EXPECT_EQ(workspace.memory().size(), size);
}

TEST_F(Fft, ServesManyShapesInManyThreads) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      Workspace workspace;
      for (int round = 0; round < 2; ++round)
        for (int h = 3 + t; h < 20; ++h)  // more plans than the cache holds
          check_in<float, float>(
              workspace, make_case("c", Pairing::one_to_one, h, h, h, h, h, h, Shifts::full({h, h}, {h, h})),
              SurfaceType::f32);
    });
}

TEST_F(Fft, RefusesIntegersThatItCouldRoundWrongly) {
  NccJob job = shape_of(
      make_case("c", Pairing::one_to_one, 1, 1, 300, 300, 400, 400, Shifts::valid({300, 300}, {400, 400})),
      ScalarType::u16, SurfaceType::u64);
  EXPECT_NE(variant("cuda-fft").unsupported_reason(job), "");
  job.type = ScalarType::u8;
  EXPECT_EQ(variant("cuda-fft").unsupported_reason(job), "");
}

}  // namespace
}  // namespace dic::test

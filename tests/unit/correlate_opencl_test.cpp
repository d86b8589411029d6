#include <algorithm>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <string>

#include "core/parallel.hpp"
#include "correlate/opencl/backend_opencl.hpp"
#include "correlate/opencl/device.hpp"
#include "correlate/opencl/kernel_sources.hpp"
#include "support/backend_test.hpp"
#include "support/correlate_cases.hpp"

// Tests what is special to OpenCL; the results of its variants are tested with those of all variants.
namespace dic {
namespace {

using namespace test;
namespace opencl = correlate::opencl;

/// The message with which a call fails.
template <typename Expected, typename Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  return "nothing was refused";
}

class OpenCl : public testing::Test {
 protected:
  void SetUp() override { skip_without_device_of("opencl"); }
};

TEST_F(OpenCl, TellsWhatItsCompilerSays) {
  const opencl::Device device(0);
  const std::string_view wrong[] = {"kernel void correlate(global int* out) {", " out[0] = no_such_name; }"};
  const std::string message = refusal<DeviceError>([&] { device.compile(wrong, "-cl-std=CL1.2"); });
  EXPECT_NE(message.find("no_such_name"), std::string::npos) << message;
  EXPECT_NE(message.find("--device cpu"), std::string::npos) << message;
}

TEST_F(OpenCl, CompilesItsKernelsWithoutAWarning) {
  const opencl::Device device(0);
  // PoCL's own functions pass vectors of 512 bits, of which Clang warns on processors without AVX-512.
  constexpr std::string_view calm =
      "#ifdef __clang__\n#pragma clang diagnostic ignored \"-Wpsabi\"\n#endif\n";
  const auto common = std::ranges::find(opencl::kernel_sources(), "common.cl", &opencl::KernelSource::name);
  for (const opencl::KernelSource& source : opencl::kernel_sources()) {
    if (source.name == common->name) continue;
    const std::string_view sources[] = {calm, common->text, source.text};
    for (const ScalarType type : {ScalarType::u8, ScalarType::u16, ScalarType::i32, ScalarType::f32}) {
      CorrelateShape shape;
      shape.type = type;
      EXPECT_NO_THROW(device.compile(sources, opencl::build_options(shape) + " -Werror")) << source.name;
    }
  }
}

TEST_F(OpenCl, RefusesDevicesThatItDoesNotHave) {
  EXPECT_NE(refusal<DeviceError>([] { Correlator("opencl:99"); }).find("opencl:99"), std::string::npos);
  for (const char* several : {"opencl:0,0", "opencl:all"})
    EXPECT_NE(refusal<UsageError>([&] { Correlator{several}; }).find("one device"), std::string::npos)
        << several;
}

TEST_F(OpenCl, TimesWhatTheDeviceDoes) {
  const TestImage image = noise(60, 60, ScalarType::u8, 1);
  Case c{.ref_h = 21, .ref_w = 21, .search_h = 60, .search_w = 60, .shifts = {0, 39, 0, 39}};
  c.references = c.windows = {{0, 0, 0}};
  const CorrelateRequest request = request_of(c, image.view, image.view, Criterion::zncc, "");
  Correlator correlator("opencl", 1);
  Surfaces once, repeated;
  correlator.surfaces(request, once);
  EXPECT_GT(correlator.device_seconds().kernels, 0);
  EXPECT_GT(correlator.device_seconds().upload, 0);
  EXPECT_GT(correlator.device_seconds().download, 0);
  correlator.repeat_kernels(3);
  correlator.surfaces(request, repeated);
  EXPECT_EQ(repeated.bytes, once.bytes);
}

TEST_F(OpenCl, PartsOfAJobGiveTheSameBits) {
  const TestImage reference = noise(60, 50, ScalarType::f32, 3), search = noise(70, 60, ScalarType::f32, 4);
  Case c{.ref_h = 11, .ref_w = 13, .search_h = 16, .search_w = 17, .shifts = {0, 4, 0, 5}};
  c.references = {{0, 0, 0}, {0, 20, 11}, {0, 40, 30}};
  for (const Pairing pairing : {Pairing::one_to_one, Pairing::n_to_mn, Pairing::n_to_m}) {
    c.pairing = pairing;
    c.windows = {{0, 0, 1}, {0, 50, 40}, {0, 3, 3}};
    if (pairing == Pairing::n_to_mn) c.windows.insert(c.windows.end(), {{0, 9, 9}, {0, -4, 7}, {0, 30, 20}});
    for (const Criterion criterion : {Criterion::cross_correlation, Criterion::zncc}) {
      const auto job = correlate::check_request(request_of(c, reference.view, search.view, criterion, ""));
      const auto surfaces_in = [&](std::size_t part_bytes) {
        Surfaces out;
        out.type = criterion == Criterion::zncc ? Surfaces::Type::f32 : correlate::sum_type(job.type);
        out.pairs = job.pairs;
        out.ny = job.shifts.ny();
        out.nx = job.shifts.nx();
        out.bytes.resize(job.pairs * job.shifts.count() * size_of(out.type));
        core::ThreadPool pool(2);
        opencl::open(0, pool, part_bytes)->surfaces(job, "opencl-registers", out);
        return out.bytes;
      };
      const std::size_t reference_bytes = sizeof(double) * 11 * 13;
      const auto whole = surfaces_in(opencl::kPartBytes);
      EXPECT_TRUE(surfaces_in(1) == whole) << "pair by pair";
      EXPECT_TRUE(surfaces_in(2 * reference_bytes) == whole) << "two pairs at once, some references twice";
    }
  }
}

TEST_F(OpenCl, TakesImagesWhoseRowsGoUpwards) {
  const TestImage image = noise(50, 40, ScalarType::u16, 5);
  ImageView upwards = image.view;
  upwards.data = image.view.row<std::uint16_t>(39);
  upwards.row_bytes = -image.view.row_bytes;
  Case c{.ref_h = 9, .ref_w = 7, .search_h = 20, .search_w = 30, .shifts = {-3, 25, -2, 14}};
  c.references = {{0, 4, 5}};
  c.windows = {{0, 15, 17}};
  const CorrelateRequest request = request_of(c, upwards, upwards, Criterion::cross_correlation, "");
  Surfaces device, host;
  Correlator("opencl").surfaces(request, device);
  Correlator("cpu").surfaces(request, host);
  EXPECT_EQ(device.bytes, host.bytes);
}

TEST(OpenClPlan, ChoosesByShape) {
  const auto variant_for = [](const Shifts& shifts) {
    CorrelateShape shape;
    shape.reference = {31, 31};
    shape.shifts = shifts;
    shape.references = shape.pairs = 1;
    DeviceProperties device;
    device.backend = "opencl";
    return plan_correlation(shape, device).variant;
  };
  EXPECT_EQ(variant_for({-1, 1, -1, 1}), "opencl-basic");
  EXPECT_EQ(variant_for({-15, 15, -15, 15}), "opencl-registers");
  EXPECT_EQ(variant_for({0, 960, 0, 960}), "opencl-template");
  EXPECT_EQ(variant_for({0, 960, 0, 0}), "opencl-registers");
}

TEST(OpenClPlan, SaysWhatADeviceCannotDo) {
  const opencl::Limits able{
      .float64 = true, .largest_buffer = 1 << 20, .local_bytes = 32 << 10, .work_group = 256};
  const auto problem = [&](const opencl::Limits& limits, ScalarType type, int side) {
    CorrelateShape shape;
    shape.type = type;
    shape.reference = {31, 31};
    shape.shifts = {0, side - 1, 0, side - 1};
    return opencl::problem_of(limits, shape, 1000);
  };
  EXPECT_EQ(problem(able, ScalarType::f32, 10), "");
  EXPECT_EQ(problem(able, ScalarType::u8, 512), "") << "a surface of 1 MB";
  EXPECT_NE(problem(able, ScalarType::u8, 513).find("2 MB in one piece"), std::string::npos);
  EXPECT_NE(problem(able, ScalarType::u16, 512).find("in one piece"), std::string::npos) << "sums of 64 bits";

  opencl::Limits without_float64 = able;
  without_float64.float64 = false;
  EXPECT_EQ(problem(without_float64, ScalarType::u16, 10), "");
  for (const ScalarType type : {ScalarType::f32, ScalarType::f64})
    EXPECT_NE(problem(without_float64, type, 10).find("no float64"), std::string::npos);

  opencl::Limits small = able;
  small.work_group = 32;
  EXPECT_NE(problem(small, ScalarType::u8, 10).find("work groups"), std::string::npos);
}

}  // namespace
}  // namespace dic

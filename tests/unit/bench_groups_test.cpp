#include <gtest/gtest.h>

#include <algorithm>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <set>

#include "bench/bench.hpp"
#include "bench/inputs.hpp"
#include "bench/timing.hpp"
#include "bench/truth.hpp"
#include "support/bench_cases.hpp"

// Groups, the cases that they expand to, and their inputs.
namespace dic::bench {
namespace {

std::string message_of(const std::string& text) {
  try {
    parse(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BenchGroups, ListsExpandToProducts) {
  const auto tasks =
      parse("reference = [7, \"9x11\"]\nshifts = [2, \"full\"]\ntype = [\"u8\", \"u16:12\"]\nn = [1, 10]\n");
  ASSERT_EQ(tasks.size(), 16U);
  std::set<std::string> names;
  for (const Task& task : tasks) names.insert(describe(task.shape));
  EXPECT_EQ(names.size(), 16U);
  EXPECT_TRUE(names.contains("one_to_one u16:12 9x11 radius 2, 10 pairs, zncc peaks"));
  EXPECT_TRUE(names.contains("one_to_one u8 7x7 full, 1 pair, zncc peaks"));
}

TEST(BenchGroups, CountsFollowTheForm) {
  const auto tasks = parse(
      "pairing = [\"one_to_one\", \"one_to_many\", \"n_to_mn\", \"n_to_m\"]\nreference = 7\nshifts = 2\nn = "
      "3\nm = [4, 5]\n");
  std::vector<std::int64_t> pairs;
  for (const Task& task : tasks) pairs.push_back(task.shape.pairs());
  // m does not count for one_to_one, so that its two combinations are one.
  EXPECT_EQ(pairs, (std::vector<std::int64_t>{3, 4, 5, 12, 15, 12, 15}));
}

TEST(BenchGroups, ShiftsAndWindows) {
  const Case radius = parse("reference = 7\nshifts = 3\n")[0].shape;
  EXPECT_EQ(radius.search_h, 13);
  EXPECT_EQ(radius.shifts, (Shifts{0, 6, 0, 6}));
  const Case full = parse("reference = \"7x5\"\nshifts = \"full\"\n")[0].shape;
  EXPECT_EQ(full.search_w, 5);
  EXPECT_EQ(full.shifts, (Shifts{-4, 4, -6, 6}));
  const Case in_window = parse("reference = 7\nwindow = \"20x30\"\nshifts = \"valid\"\n")[0].shape;
  EXPECT_EQ(in_window.shifts, (Shifts{0, 23, 0, 13}));
  const Case rectangle = parse("reference = 7\nwindow = 20\nshifts = \"-3:4,-2:5\"\n")[0].shape;
  EXPECT_EQ(rectangle.shifts, (Shifts{-3, 4, -2, 5}));
}

TEST(BenchGroups, VariantsOfTheDevice) {
  const auto tasks =
      parse("reference = 7\nshifts = 2\ntype = \"i32\"\nvariant = [\"planner\", \"all\", \"cuda-basic\"]\n");
  std::vector<std::string> names;
  for (const Task& task : tasks) names.push_back(task.variant);
  // cpu-fft does not take i32, and another device's variants are left out.
  EXPECT_EQ(names, (std::vector<std::string>{"planner", "cpu-naive", "cpu-direct"}));
  const auto on_gpu =
      parse_tasks("[[group]]\nname=\"g\"\nreference=7\nshifts=2\nvariant=\"naive\"", "t", "cuda:1");
  EXPECT_EQ(on_gpu[0].variant, "cuda-basic");
  const auto on_opencl = parse_tasks(
      "[[group]]\nname=\"g\"\nreference=7\nshifts=2\nvariant=[\"naive\", \"cuda-basic\", \"cpu-naive\"]", "t",
      "opencl:1");
  ASSERT_EQ(on_opencl.size(), 1U);
  EXPECT_EQ(on_opencl[0].variant, "opencl-basic");
}

TEST(BenchGroups, AllVariantsForMasksTakeThem) {
  const auto names = [](const std::string& masks, const std::string& device) {
    const std::string group = "[[group]]\nname=\"g\"\nreference=7\nshifts=2\nvariant=\"all\"\nmasks=" + masks;
    std::set<std::string> found;
    for (const Task& task : parse_tasks(group, "t", device)) found.insert(task.variant);
    return found;
  };
  EXPECT_EQ(names("true", "cpu"), (std::set<std::string>{"cpu-naive", "cpu-direct", "cpu-fft"}));
  EXPECT_FALSE(names("false", "cuda").contains("cuda-masked")) << "another variant does its work";
  const bool has_cuda = !names("false", "cuda").empty();
  EXPECT_EQ(names("true", "cuda").contains("cuda-masked"), has_cuda);
  EXPECT_NE(message_of("reference = 7\nshifts = 2\nmasks = 1\n").find("\"1\" is not true or false"),
            std::string::npos);
}

TEST(BenchGroups, MistakesAreNamedWithTheirPlace) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"shifts = 2\n", "\"reference\" is missing"},
           {"reference = 7\nshifts = 2\nsize = 3\n", "no key \"size\""},
           {"reference = -7\nshifts = 2\n", "\"-7\" is not a size"},
           {"reference = 7\nshifts = 2000000000\n", "\"2000000000\" is not a radius"},
           {"reference = 7\nshifts = \"all\"\n", "\"all\" is not a set of shifts"},
           {"reference = 7\nshifts = 2\npairing = \"many\"\n", "one_to_one, one_to_many"},
           {"reference = 7\nshifts = 2\ntype = \"f32:12\"\n", "bits are for u16"},
           {"reference = 7.5\nshifts = 2\n", "takes a string, a whole number"},
           {"reference = 7\nshifts = 2\nn = 0\n", "\"0\" is not a number of references"}}) {
    const std::string message = message_of(text);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("t.toml, line 1"), std::string::npos) << message;
  }
  EXPECT_NE(message_of("reference = [\n").find("t.toml, line"), std::string::npos);
  EXPECT_THROW(parse_tasks("name = 1\n", "t.toml", "cpu"), UsageError);
  EXPECT_THROW(read_tasks("no-such-file.toml", "cpu"), FileError);
}

TEST(BenchGroups, BuiltInGroupsAreUnderstood) {
  for (const std::string device : {"cpu", "cuda", "opencl"}) {
    EXPECT_GT(default_tasks(device).size(), 50U);
    EXPECT_GT(quick_tasks(device).size(), 3U);
  }
}

TEST(BenchCase, OperationsCountRealOverlaps) {
  for (const char* shifts : {"shifts = \"full\"", "shifts = \"valid\"", "shifts = \"-9:4,-2:40\""}) {
    const Case c = parse(std::string("reference = \"4x3\"\nwindow = \"9x6\"\nn = 2\n") + shifts)[0].shape;
    double additions = 0;
    for (int dy = c.shifts.dy_min; dy <= c.shifts.dy_max; ++dy)
      for (int dx = c.shifts.dx_min; dx <= c.shifts.dx_max; ++dx)
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 3; ++j) additions += i + dy >= 0 && i + dy < 9 && j + dx >= 0 && j + dx < 6;
    EXPECT_EQ(c.operations(), 2 * 2 * additions) << shifts;
  }
}

TEST(BenchCase, BytesCountInputsAndOutputsOnce) {
  const Case sums =
      parse("reference = 4\nshifts = 1\nn = 2\ntype = \"u16\"\ncriterion = \"cross_correlation\"\n")[0].shape;
  EXPECT_EQ(sums.bytes(), 2 * (2 * 16 + 2 * 36) + 8 * 2 * 9);
  const Case peaks = parse("reference = 4\nshifts = 1\nn = 1000\nimage = 32\n")[0].shape;
  EXPECT_EQ(peaks.bytes(), 2 * 32 * 32 + 1000 * sizeof(Peak));
}

TEST(BenchInputs, TheSameFromTheSameSeed) {
  const Case c = small_case(Pairing::one_to_one, ScalarType::u16, Criterion::zncc, Output::peaks);
  const auto first_row = [&](std::uint64_t seed) {
    const Inputs inputs(c, seed);
    const ImageView image = inputs.request().search.images[0];
    return std::vector<std::uint16_t>(image.row<std::uint16_t>(0), image.row<std::uint16_t>(0) + image.width);
  };
  EXPECT_EQ(first_row(7), first_row(7));
  EXPECT_NE(first_row(7), first_row(8));
}

TEST(BenchInputs, BitsAreKept) {
  Case c = small_case(Pairing::one_to_one, ScalarType::u16, Criterion::cross_correlation, Output::surfaces);
  c.bit_depth = 10;
  const Inputs inputs(c, 1);
  const ImageView image = inputs.request().reference.images[0];
  EXPECT_EQ(image.bit_depth, 10);
  const auto* row = image.row<std::uint16_t>(0);
  EXPECT_LT(*std::max_element(row, row + image.width), 1024);
}

TEST(BenchInputs, WindowsOfImagesHoldTheirReference) {
  Case c = small_case(Pairing::n_to_mn, ScalarType::u8, Criterion::zncc, Output::peaks);
  c.image = 40;
  const Inputs inputs(c, 3);
  Correlator correlator("cpu", 1);
  std::vector<Peak> peaks;
  correlator.peaks(inputs.request(), peaks);
  ASSERT_EQ(peaks.size(), 6U);
  for (const Peak& peak : peaks) {
    EXPECT_NEAR(peak.score, 1, 1e-6);
    EXPECT_EQ(peak.dx, 4 + 3);
    EXPECT_EQ(peak.dy, 3 - 2);
  }
  c.image = 12;
  EXPECT_THROW(Inputs(c, 3), UsageError);
}

}  // namespace
}  // namespace dic::bench

#include "bench/bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "bench/inputs.hpp"
#include "bench/timing.hpp"
#include "bench/truth.hpp"

// `dic bench`: groups expand as written, figures count what they say, and a wrong result is found out.
namespace dic::bench {
namespace {

namespace fs = std::filesystem;

std::vector<Task> parse(const std::string& text) {
  return parse_tasks("[[group]]\nname = \"g\"\n" + text, "t.toml", "cpu");
}

std::string message_of(const std::string& text) {
  try {
    parse(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

Case small_case(Pairing pairing, ScalarType type, Criterion criterion, Output output) {
  Case c;
  c.group = "test";
  c.pairing = pairing, c.type = type, c.criterion = criterion, c.output = output;
  c.ref_h = 5, c.ref_w = 7, c.search_h = 11, c.search_w = 15;
  c.shifts = Shifts::valid({7, 5}, {15, 11});
  c.references = pairing == Pairing::one_to_many ? 1 : 3;
  c.windows = pairing == Pairing::n_to_mn ? 6 : 3;
  return c;
}

// --- groups ---

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
}

TEST(BenchGroups, AllVariantsForMasksTakeThem) {
  const auto names = [](const std::string& masks, const std::string& device) {
    const std::string group = "[[group]]\nname=\"g\"\nreference=7\nshifts=2\nvariant=\"all\"\nmasks=" + masks;
    std::set<std::string> found;
    for (const Task& task : parse_tasks(group, "t", device)) found.insert(task.variant);
    return found;
  };
  EXPECT_EQ(names("true", "cpu"), (std::set<std::string>{"cpu-naive", "cpu-direct"}));
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
           {"reference = 7\nshifts = 2\nform = \"many\"\n", "one_to_one, one_to_many"},
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
  for (const std::string device : {"cpu", "cuda"}) {
    EXPECT_GT(default_tasks(device).size(), 50U);
    EXPECT_GT(quick_tasks(device).size(), 3U);
  }
}

// --- what a case counts ---

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
  const Case sums = parse("reference = 4\nshifts = 1\nn = 2\ntype = \"u16\"\nmeasure = \"sums\"\n")[0].shape;
  EXPECT_EQ(sums.bytes(), 2 * (2 * 16 + 2 * 36) + 8 * 2 * 9);
  const Case peaks = parse("reference = 4\nshifts = 1\nn = 1000\nimage = 32\n")[0].shape;
  EXPECT_EQ(peaks.bytes(), 2 * 32 * 32 + 1000 * sizeof(Peak));
}

// --- inputs ---

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

// --- the check ---

class BenchTruth : public testing::TestWithParam<std::tuple<Pairing, ScalarType, Criterion, bool>> {
 protected:
  static Case case_with(Output output) {
    const auto [pairing, type, criterion, masks] = GetParam();
    Case c = small_case(pairing, type, criterion, output);
    c.masks = masks;
    return c;
  }
};

TEST_P(BenchTruth, AcceptsWhatIsRightAndNothingElse) {
  const Inputs inputs(case_with(Output::surfaces), 5);
  const Truth truth(inputs.request(), 5);
  Correlator correlator("cpu", 1);
  Surfaces surfaces;
  correlator.surfaces(inputs.request(), surfaces);
  const Check right = truth.check(surfaces);
  EXPECT_TRUE(right.ok) << right.max_difference;
  EXPECT_EQ(right.compared, surfaces.pairs * 7 * 9);

  // The lowest bits of an integer count; of a float, those that stand out of the rounding.
  Surfaces tampered = surfaces;
  const std::size_t element = tampered.bytes.size() / (surfaces.pairs * 7 * 9);
  const bool is_float = surfaces.type == Surfaces::Type::f32 || surfaces.type == Surfaces::Type::f64;
  tampered.bytes[element * 40 + (is_float ? element - 2 : 0)] ^= std::byte{0x10};
  EXPECT_FALSE(truth.check(tampered).ok);

  std::fill(surfaces.bytes.end() - static_cast<std::ptrdiff_t>(element), surfaces.bytes.end(),
            std::byte{0xff});
  EXPECT_FALSE(truth.check(surfaces).ok);  // the last value was never written
}

TEST_P(BenchTruth, AcceptsRightPeaksAndNothingElse) {
  if (std::get<Criterion>(GetParam()) == Criterion::cross_correlation) return;
  const Inputs inputs(case_with(Output::peaks), 5);
  const Truth truth(inputs.request(), 5);
  Correlator correlator("cpu", 1);
  std::vector<Peak> peaks;
  correlator.peaks(inputs.request(), peaks);
  EXPECT_TRUE(truth.check(peaks).ok);

  const auto refused = [&](auto&& change) {
    std::vector<Peak> tampered = peaks;
    change(tampered.back());
    return !truth.check(tampered).ok;
  };
  EXPECT_TRUE(refused([](Peak& p) { p.dx = p.dx == 0 ? 1 : p.dx - 1; }));
  EXPECT_TRUE(refused([](Peak& p) { p.score *= 0.99F; }));
  EXPECT_TRUE(refused([](Peak& p) { p.found = false; }));
  EXPECT_TRUE(refused([](Peak& p) { p.neighbourhood[4] *= 1.01F; }));
  EXPECT_TRUE(refused([](Peak& p) { p = Peak{.dx = 100}; }));
}

const auto all_types =
    testing::Values(ScalarType::u8, ScalarType::u16, ScalarType::i32, ScalarType::f32, ScalarType::f64);
const auto all_measures =
    testing::Values(Criterion::cross_correlation, Criterion::zncc, Criterion::ncc, Criterion::ssd);
INSTANTIATE_TEST_SUITE_P(All, BenchTruth,
                         testing::Combine(testing::Values(Pairing::one_to_one, Pairing::one_to_many,
                                                          Pairing::n_to_mn, Pairing::n_to_m),
                                          all_types, all_measures, testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(Masked, BenchTruth,
                         testing::Combine(testing::Values(Pairing::n_to_mn), all_types, all_measures,
                                          testing::Values(true)));

TEST(BenchTruthOfMasks, OtherElementsCount) {
  Case c = small_case(Pairing::one_to_one, ScalarType::u8, Criterion::zncc, Output::surfaces);
  c.masks = true;
  const Inputs inputs(c, 5);
  CorrelateRequest request = inputs.request();
  const Truth truth(request, 5);
  request.reference_mask = {};
  Correlator correlator("cpu", 1);
  Surfaces surfaces;
  correlator.surfaces(request, surfaces);
  EXPECT_FALSE(truth.check(surfaces).ok);
}

TEST(BenchTruthOfPeaks, ALocalMaximumIsNotThePeak) {
  Case c = small_case(Pairing::one_to_one, ScalarType::u8, Criterion::zncc, Output::peaks);
  const Inputs inputs(c, 9);
  const Truth truth(inputs.request(), 9);
  // A consistent answer, but for a rectangle of shifts that leaves the true peak out.
  Correlator correlator("cpu", 1);
  std::vector<Peak> peaks, elsewhere;
  CorrelateRequest request = inputs.request();
  correlator.peaks(request, peaks);
  const Surfaces surfaces = [&] {
    Surfaces s;
    correlator.surfaces(request, s);
    return s;
  }();
  Peak& peak = peaks[0];
  peak.dx = (peak.dx + 4) % 9;
  for (int k = 0; k < 9; ++k) {
    const int dy = peak.dy + k / 3 - 1, dx = peak.dx + k % 3 - 1;
    const bool inside = dy >= 0 && dy < 7 && dx >= 0 && dx < 9;
    peak.neighbourhood[k] = surfaces.surface<float>(0)[inside ? dy * 9 + dx : peak.dy * 9 + peak.dx];
  }
  peak.score = peak.neighbourhood[4];
  EXPECT_FALSE(truth.check(peaks).ok);
}

// --- runs and reports ---

Options quick_options() {
  Options options;
  options.threads = 1;
  options.min_seconds = 0;
  options.repeats = 3;
  return options;
}

const char* const kGroups =
    "reference = [5, 8]\nshifts = 2\nn = 2\nlevel = [\"call\", \"whole\"]\nvariant = [\"planner\", "
    "\"cpu-naive\", "
    "\"cpu-none\"]\n";

TEST(BenchCorrelate, FailuresAreRows) {
  const Report report = correlate(parse(kGroups), quick_options(), "command");
  ASSERT_EQ(report.rows.size(), 12U);
  for (const Row& row : report.rows) {
    if (row.task.variant == "cpu-none") {
      EXPECT_EQ(row.outcome, Outcome::failed);
      EXPECT_NE(row.problem.find("no correlation variant \"cpu-none\""), std::string::npos) << row.problem;
      continue;
    }
    EXPECT_EQ(row.outcome, Outcome::ok) << row.problem;
    EXPECT_EQ(row.seconds.repeats, 3);
    EXPECT_GT(row.seconds.first, 0);
    EXPECT_GT(row.seconds.least, 0);
    EXPECT_LE(row.seconds.least, row.seconds.median);
    EXPECT_LE(row.seconds.median, row.seconds.most);
    EXPECT_EQ(row.compared, 2 * (25 + 9 + 1));
  }
}

TEST(BenchCorrelate, KernelsAreNotTimedOnTheCpu) {
  const Report report =
      correlate(parse("reference = 5\nshifts = 1\nlevel = \"kernel\"\n"), quick_options(), "");
  EXPECT_EQ(report.rows[0].outcome, Outcome::failed);
  EXPECT_NE(report.rows[0].problem.find("GPU only"), std::string::npos) << report.rows[0].problem;
}

TEST(BenchCorrelate, RepeatsAreLongEnough) {
  Options options = quick_options();
  options.min_seconds = 0.01;
  const Report report = correlate(parse("reference = 5\nshifts = 1\n"), options, "");
  const Timing& seconds = report.rows[0].seconds;
  EXPECT_GE(static_cast<double>(seconds.iterations) * seconds.most, 0.005);
}

/// How many iterations time_repeats asks for, one after the other, of 1/512 s each by what the figures count
/// and 1/1024 s by what has to last: both have passed at once.
std::vector<std::int64_t> asked_for(const Options& options, Timing& timing) {
  std::vector<std::int64_t> asked;
  const auto run = [&](std::int64_t iterations) {
    asked.push_back(iterations);
    const double seconds = static_cast<double>(iterations) / 1024;
    return Elapsed{.counted = 2 * seconds, .lasted = seconds};
  };
  timing = time_repeats(run, options, {});
  return asked;
}

TEST(BenchTiming, IterationsAreAddedUntilTheyLastLongEnough) {
  Options options = quick_options();
  options.min_seconds = 10.0 / 1024;
  Timing timing;
  EXPECT_EQ(asked_for(options, timing), (std::vector<std::int64_t>{1, 12, 12, 12}));
  EXPECT_EQ(timing.iterations, 12);
  EXPECT_EQ(timing.repeats, 3);
  EXPECT_EQ(timing.least, 1.0 / 512);
  EXPECT_EQ(timing.median, 1.0 / 512);
  EXPECT_EQ(timing.most, 1.0 / 512);
}

TEST(BenchTiming, NoneAreAddedWithoutTimeLeft) {
  Options options = quick_options();
  options.min_seconds = 10;
  options.max_seconds = 0;
  Timing timing;
  EXPECT_EQ(asked_for(options, timing), std::vector<std::int64_t>{1});
  EXPECT_EQ(timing.repeats, 1);
}

TEST(BenchCorrelate, GoesOnWhereItStopped) {
  const auto tasks = parse(kGroups);
  std::stop_source stop;
  const auto stop_after_two = [&](const Report& report) {
    if (report.rows.size() == 2) stop.request_stop();
  };
  const Report part = correlate(tasks, quick_options(), "", {}, stop_after_two, stop.get_token());
  ASSERT_EQ(part.rows.size(), 2U);
  int run_again = 0;
  const Report whole = correlate(tasks, quick_options(), "", part, [&](const Report&) { ++run_again; });
  EXPECT_EQ(run_again, 10);
  ASSERT_EQ(whole.rows.size(), 12U);
  EXPECT_EQ(whole.rows[1].seconds.median, part.rows[1].seconds.median);

  run_again = 0;
  const Report again = correlate(tasks, quick_options(), "", whole, [&](const Report&) { ++run_again; });
  EXPECT_EQ(run_again, 4);  // what failed
  Options other = quick_options();
  other.seed = 2;
  EXPECT_THROW(correlate(tasks, other, "", whole), UsageError);
}

TEST(BenchCorrelate, RefusesOptionsThatMakeNoSense) {
  Options options = quick_options();
  options.repeats = 0;
  EXPECT_THROW(correlate(parse(kGroups), options, ""), UsageError);
  options = quick_options();
  options.device = "toaster";
  EXPECT_THROW(correlate(parse(kGroups), options, ""), UsageError);
}

TEST(BenchReport, JsonKeepsEverything) {
  Report report = correlate(parse(kGroups), quick_options(), "dic bench \"x\"");
  report.ceilings = {{"f32 multiply-adds", "op/s", 2e9}};
  const Report read = from_json(to_json(report));
  ASSERT_EQ(read.ceilings.size(), 1U);
  EXPECT_EQ(read.ceilings[0].name, "f32 multiply-adds");
  EXPECT_EQ(read.ceilings[0].unit, "op/s");
  EXPECT_EQ(read.ceilings[0].value, 2e9);
  EXPECT_EQ(read.machine.command, report.machine.command);
  EXPECT_EQ(read.machine.model, report.machine.model);
  ASSERT_EQ(read.rows.size(), report.rows.size());
  for (std::size_t k = 0; k < report.rows.size(); ++k) {
    EXPECT_EQ(read.rows[k].task, report.rows[k].task);
    EXPECT_EQ(read.rows[k].ran, report.rows[k].ran);
    EXPECT_EQ(read.rows[k].outcome, report.rows[k].outcome);
    EXPECT_EQ(read.rows[k].problem, report.rows[k].problem);
    EXPECT_EQ(read.rows[k].seconds.median, report.rows[k].seconds.median);
    EXPECT_EQ(read.rows[k].seconds.iterations, report.rows[k].seconds.iterations);
    EXPECT_EQ(read.rows[k].max_difference, report.rows[k].max_difference);
  }
  EXPECT_THROW(from_json("{}"), UsageError);
  EXPECT_THROW(from_json("no json"), UsageError);
}

TEST(BenchReport, TablesHaveALinePerRowOrCase) {
  const Report report = correlate(parse(kGroups), quick_options(), "");
  const std::string csv = to_csv(report), markdown = to_markdown(report);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 13);
  // Commas outside quotes separate: every line has as many fields as the header.
  std::set<std::size_t> fields;
  std::size_t count = 1;
  bool quoted = false;
  for (const char c : csv) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++count;
    if (c == '\n') fields.insert(std::exchange(count, 1));
  }
  EXPECT_EQ(fields.size(), 1U);
  EXPECT_NE(markdown.find("| case | planner | cpu-naive | cpu-none |"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("8x8 radius 2, 2 pairs, zncc peaks, whole |"), std::string::npos) << markdown;
}

TEST(BenchReport, PlotsFamiliesThatDifferInSize) {
  const fs::path folder = fs::path(testing::TempDir()) / "dic_bench_plots";
  fs::remove_all(folder);
  Report report = correlate(parse(kGroups), quick_options(), "");
  const auto files = write_plots(folder, report);
  ASSERT_EQ(files.size(), 2U);  // calls, and whole
  EXPECT_NE(files[0].string().find("over-cpu-naive"), std::string::npos);
  EXPECT_EQ(read_image(files[0]).width(), 1040);
  report.ceilings = {{"adds", "op/s", 1e9}, {"memory", "B/s", 1e8}};
  const auto with_roofs = write_plots(folder, report);
  ASSERT_EQ(with_roofs.size(), 3U);
  EXPECT_EQ(with_roofs[2].filename(), "roofline.png");
  const auto one_size = parse("reference = 5\nshifts = 2\nvariant = [\"planner\", \"naive\"]\n");
  EXPECT_TRUE(write_plots(folder, correlate(one_size, quick_options(), "")).empty());
  fs::remove_all(folder);
}

TEST(BenchFloor, IsTheSlowerOfArithmeticAndMemory) {
  Case c;
  c.ref_h = 10, c.ref_w = 20, c.search_h = 12, c.search_w = 22;
  c.shifts = Shifts::valid({20, 10}, {22, 12});
  const double operations = 2.0 * 9 * 200, bytes = 200 + 264 + sizeof(Peak);
  const std::vector<Ceiling> fast_memory = {
      {"dp4a multiply-adds", "op/s", 10}, {"u8 tensor multiply-adds", "op/s", 100}, {"memory", "B/s", 1e9}};
  EXPECT_DOUBLE_EQ(floor_seconds(c, fast_memory), operations / 100);
  const std::vector<Ceiling> slow_memory = {{"u8 multiply-adds", "op/s", 1e9}, {"memory", "B/s", 7}};
  EXPECT_DOUBLE_EQ(floor_seconds(c, slow_memory), bytes / 7);
  const std::vector<Ceiling> without_bytes = {{"i16 multiply-adds", "op/s", 50}, {"memory", "B/s", 1e9}};
  EXPECT_DOUBLE_EQ(floor_seconds(c, without_bytes), operations / 50) << "16 bits are exact for bytes too";
  c.type = ScalarType::u16;
  EXPECT_DOUBLE_EQ(floor_seconds(c, fast_memory), operations / 25) << "four products of bytes";
  c.type = ScalarType::f64;
  EXPECT_EQ(floor_seconds(c, fast_memory), 0) << "no ceiling for it";
}

TEST(BenchReport, GoesBetweenTheLinesOfItsName) {
  const std::string document =
      "a\n<!-- report: one -->\nold\n<!-- end of report -->\nb\n<!-- report: two -->\n<!-- end of report "
      "-->\n";
  const std::string want =
      "a\n<!-- report: one -->\nold\n<!-- end of report -->\nb\n<!-- report: two -->\nnew\n<!-- end of "
      "report -->\n";
  EXPECT_EQ(insert_report(document, "two", "new\n"), want);
  EXPECT_EQ(insert_report(want, "two", "new\n"), want);
  EXPECT_THROW(insert_report(document, "three", ""), UsageError);
  EXPECT_THROW(insert_report("<!-- report: one -->\n", "one", ""), UsageError);
}

TEST(BenchCeilings, AreAboveWhatTheNaiveVariantDoes) {
  Options options = quick_options();
  options.repeats = 1;
  const std::vector<Ceiling> roofs = ceilings(options);
  const auto value = [&](const std::string& name) {
    const auto is_it = [&](const Ceiling& c) { return c.name == name; };
    return std::find_if(roofs.begin(), roofs.end(), is_it)->value;
  };
  const Report report = correlate(
      parse("reference = 21\nshifts = 4\nn = 4\ntype = \"f32\"\nvariant = \"naive\"\n"), options, "");
  const Row& naive = report.rows[0];
  EXPECT_GT(value("f32 multiply-adds"), naive.task.shape.operations() / naive.seconds.median);
  EXPECT_GT(value("memory"), 1e8);
  EXPECT_LT(value("memory"), 1e13);
  for (const std::string device : {"toaster", "cuda:", "cuda:1x", "cuda:-1"}) {
    options.device = device;
    EXPECT_THROW(ceilings(options), UsageError) << device;
  }
}

// --- pipelines ---

TEST(BenchTrack, StagesAddUpAndTheMotionIsFound) {
  TrackCase shape;
  shape.size = 256;
  shape.repeats = 1;
  shape.options.threads = 1;
  const TrackTiming timing = track(shape);
  EXPECT_EQ(timing.points, 35 * 35);  // 173 px at step 5
  EXPECT_GE(timing.measured, 0.95 * static_cast<double>(timing.points));
  EXPECT_LT(timing.rms_error_u, 0.03);
  EXPECT_LT(timing.rms_error_v, 0.03);
  const StageSeconds& s = timing.seconds;
  for (const double stage : {s.prepare, s.search, s.refine, s.strain}) EXPECT_GT(stage, 0);
  EXPECT_LE(s.prepare + s.search + s.refine + s.strain, s.total);
  shape.repeats = 0;
  EXPECT_THROW(track(shape), UsageError);
  shape.repeats = 1;
  shape.size = 80;
  EXPECT_THROW(track(shape), UsageError);
}

TEST(BenchTrack, AStreamKeepsItsPoints) {
  TrackCase shape;
  shape.size = 200;
  shape.options.threads = 1;
  const StreamTiming timing = track_stream(shape, 5);
  EXPECT_EQ(timing.points, 24 * 24);  // 117 px at step 5
  EXPECT_LT(timing.lost, 0.05 * static_cast<double>(timing.points));
  EXPECT_GT(timing.frames_per_second, 0);
  EXPECT_GT(timing.stages.refine, 0);
  EXPECT_GT(timing.latency, timing.stages.refine);
  EXPECT_EQ(timing.gpus, 1);
  EXPECT_EQ(timing.frames_per_second_of_one, 0);
  shape.size = 80;
  EXPECT_THROW(track_stream(shape, 5), UsageError);
}

TEST(BenchTrack, SaysWhenEachStageWorkedAndDrawsIt) {
  TrackCase shape;
  shape.size = 200;
  shape.options.device = "cpu";
  shape.options.threads = 1;
  const TrackSummary run = track_files(shape, 12);
  ASSERT_EQ(run.frames.size(), 12u);
  StageSpan::Time written{};
  for (const FrameSummary& frame : run.frames) {
    std::map<std::string, StageSpan> spans;
    for (const StageSpan& span : frame.spans) spans[span.stage] = span;
    const char* const order[] = {"decode", "copy", "prefilter", "search", "refine", "strain", "write"};
    ASSERT_EQ(spans.size(), std::size(order));
    StageSpan::Time before{};
    for (const char* stage : order) {
      ASSERT_TRUE(spans.contains(stage)) << stage;
      EXPECT_LE(before, spans[stage].begin) << stage;
      EXPECT_LE(spans[stage].begin, spans[stage].end) << stage;
      before = spans[stage].end;
    }
    EXPECT_LE(written, spans["write"].begin) << "frames are written one after the other";
    written = spans["write"].end;
  }
  const fs::path file = fs::path(testing::TempDir()) / "dic_timeline.png";
  write_timeline(file, run.frames, "a run");
  EXPECT_GT(read_image(file).width(), 800);
  fs::remove(file);
  const std::vector<FrameSummary> few(run.frames.begin(), run.frames.begin() + 8);
  EXPECT_THROW(write_timeline(file, few, "too short"), UsageError);
}

TEST(BenchMatch, TheTemplateIsFound) {
  MatchCase shape;
  shape.template_size = 32;
  shape.image_size = 200;
  const MatchTiming timing = match(shape, quick_options());
  EXPECT_LT(timing.error, 0.1);
  EXPECT_GT(timing.score, 0.95);
  EXPECT_GT(timing.seconds.median, 0);
  EXPECT_GT(timing.opencv.median, 0);
  EXPECT_EQ(timing.operations, 2.0 * 169 * 169 * 32 * 32);
  shape.template_size = 101;
  EXPECT_THROW(match(shape, quick_options()), UsageError);
  shape = {.template_size = 8, .image_size = 200, .noise = 200};
  EXPECT_THROW(match(shape, quick_options()), UsageError);
}

}  // namespace
}  // namespace dic::bench

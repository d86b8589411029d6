#include <gtest/gtest.h>

#include <algorithm>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <iterator>
#include <set>

#include "bench/bench.hpp"
#include "bench/inputs.hpp"
#include "bench/timing.hpp"
#include "bench/truth.hpp"
#include "support/bench_cases.hpp"

// Tests reports: JSON, tables, drawings.
namespace dic::bench {
namespace {

namespace fs = std::filesystem;

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
  // Only commas outside quotes separate fields; every line has as many fields as the header.
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
  ASSERT_EQ(files.size(), 2U);  // one for calls, one for the whole
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

}  // namespace
}  // namespace dic::bench

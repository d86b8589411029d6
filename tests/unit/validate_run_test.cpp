#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "validate/real.hpp"
#include "validate/validate.hpp"

namespace dic::validation {
namespace {

/// A folder for one test, removed afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() { std::filesystem::create_directories(path); }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("dic_validate_" + std::to_string(getpid()) + "_" +
                                      testing::UnitTest::GetInstance()->current_test_info()->name());
};

SynthOptions small(double u = 0.3) {
  SynthOptions synth;
  synth.size = {160, 140};
  synth.noise = 2;
  synth.motion.u = u;
  return synth;
}

Options on_cpu() {
  Options options;
  options.track.device = "cpu";
  options.track.refine.subset = 21;
  return options;
}

Suite suite() { return {"mine", "", "", {}, {"ok", "lost", "false ok", "RMSE"}}; }

Case case_of(const SynthOptions& synth, const Bounds& bounds) {
  return {"one", [synth] { return synthetic_scene(synth); }, bounds};
}

TEST(Suites, HaveNamesBoundsAndCasesThatCanBeMade) {
  for (const bool quick : {false, true}) {
    Options options;
    options.quick = quick;
    std::set<std::string> names;
    for (const Suite& one : suites()) {
      EXPECT_TRUE(names.insert(one.name).second) << one.name;
      EXPECT_FALSE(one.reason.empty()) << one.name;
      EXPECT_LE(one.columns.size(), 7U) << one.name;
      std::set<std::string> cases;
      for (const Case& c : one.cases(options)) {
        SCOPED_TRACE(one.name + ": " + c.name);
        EXPECT_TRUE(cases.insert(c.name).second);
        EXPECT_FALSE(c.bounds_text().empty());
        const Scene scene = c.scene();
        EXPECT_GE(scene.frames, 2);
        EXPECT_TRUE(scene.truth(scene.frames - 1, 100, 100).has_value());
        EXPECT_TRUE(scene.origin.starts_with("dic synth -o DIR")) << scene.origin;
      }
      EXPECT_FALSE(cases.empty()) << one.name;
      EXPECT_EQ(table_of(one, {})[0].size(), one.columns.size() + 1);
    }
  }
}

TEST(Suites, WhatIsAskedForIsNotChanged) {
  Options options = on_cpu();
  options.asked.subset = true;
  const auto unrelated = std::ranges::find(suites(), "unrelated", &Suite::name);
  EXPECT_EQ(unrelated->cases(options).size(), 2U);
  Case with_variant = case_of(small(), {});
  with_variant.variant.subset = 15;
  with_variant.variant.step = 9;
  const CaseResult result = run_case(suite(), with_variant, options);
  EXPECT_EQ(result.options.refine.subset, 21);
  EXPECT_EQ(result.options.step, 9);
}

TEST(RunCase, SmallSpeckleIsMeasuredAndJudged) {
  const CaseResult result = run_case(suite(), case_of(small(), {.false_ok = 0, .lost = 0}), on_cpu());
  EXPECT_TRUE(result.holds()) << result.failure;
  EXPECT_EQ(result.total.points, 32 * 28);
  EXPECT_GT(result.total.judged, 100);
  EXPECT_LT(result.total.largest_rmse(), 0.05);
  EXPECT_EQ(result.device, "cpu");
}

TEST(RunCase, AWrongTruthBreaksTheBound) {
  Case wrong = case_of(small(), {.bias = 0.1, .false_ok = 1e-4});
  wrong.scene = [] {
    Scene scene = synthetic_scene(small());
    scene.truth = [](int, double, double) { return Truth{0.5, 0, Measurable::yes, 0}; };
    return scene;
  };
  const CaseResult result = run_case(suite(), wrong, on_cpu());
  EXPECT_EQ(result.broken.size(), 2U);
  EXPECT_FALSE(result.holds());
}

TEST(StereoBounds, EachBreaksBeyondItsValueAndWithoutAValue) {
  const StereoBounds bounds{.z_bias = 1,
                            .z_sd = 2,
                            .motion_bias = 1,
                            .motion_sd = {2, 2, 3},
                            .strain_bias = 10,
                            .strain_sd = 100,
                            .lost = 0.01};
  StereoMetrics good;
  good.expected = good.ok = good.points = 1000;
  for (StereoMetrics::Quantity& quantity : good.quantities) quantity = {0.5, 1.5, 1};
  EXPECT_TRUE(broken_bounds(bounds, good).empty());
  const auto broken_with = [&](const auto& change) {
    StereoMetrics changed = good;
    change(changed);
    return broken_bounds(bounds, changed).size();
  };
  EXPECT_EQ(broken_with([](StereoMetrics& m) { m.quantities[2].bias = -1.1; }), 1U);
  EXPECT_EQ(broken_with([](StereoMetrics& m) { m.quantities[5].sd = 3.1; }), 1U);
  EXPECT_EQ(broken_with([](StereoMetrics& m) { m.quantities[8].sd = NAN; }), 1U);
  EXPECT_EQ(broken_with([](StereoMetrics& m) { m.quantities[0].scatter = 0.8; }), 1U);
  EXPECT_EQ(broken_with([](StereoMetrics& m) { m.trace_bias = 21; }), 1U);
  EXPECT_EQ(broken_with([](StereoMetrics& m) { m.lost = 11; }), 1U);
  EXPECT_EQ(broken_with([](StereoMetrics& m) { m.wrong = 1; }), 1U);
  EXPECT_EQ(broken_with([](StereoMetrics& m) { m.expected = 0; }), 1U) << "nothing was measured";
}

TEST(RunCase, WhatIsHiddenMustNotBeOk) {
  Case hidden = case_of(small(), {.false_ok = 0});
  hidden.scene = [] {
    Scene scene = synthetic_scene(small());
    scene.truth = [](int, double, double) { return Truth{0.3, 0, Measurable::no, 0}; };
    return scene;
  };
  const CaseResult result = run_case(suite(), hidden, on_cpu());
  EXPECT_EQ(result.total.hidden_ok, result.total.ok);
  EXPECT_EQ(result.total.lost, 0);
  EXPECT_EQ(result.broken.size(), 1U);
}

TEST(RunCase, ProblemsAreFailuresOfTheCase) {
  Options options = on_cpu();
  options.track.refine.subset = 20;
  const CaseResult result = run_case(suite(), case_of(small(), {}), options);
  EXPECT_FALSE(result.failure.empty());
  EXPECT_FALSE(result.holds());
}

TEST(FolderScene, GivesWhatTheImagesInMemoryGive) {
  const TemporaryFolder folder;
  const auto path = folder.path / "sequence";
  synth_sequence(small(), path, 5, "");
  const CaseResult from_files = run_case(suite(), folder_suite(path).cases({})[0], on_cpu());
  const CaseResult in_memory = run_case(suite(), case_of(small(), {}), on_cpu());
  ASSERT_TRUE(from_files.failure.empty()) << from_files.failure;
  EXPECT_EQ(from_files.total.points, in_memory.total.points);
  EXPECT_EQ(from_files.total.ok, in_memory.total.ok);
  EXPECT_DOUBLE_EQ(from_files.total.rmse[0], in_memory.total.rmse[0]);
  EXPECT_EQ(from_files.total.false_ok, 0);
}

TEST(FolderScene, FoldersWithoutTruthAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THROW(folder_suite(folder.path), FileError);
  synth_sequence(small(), folder.path / "s", 5, "");
  std::filesystem::remove(folder.path / "s/frame_0001.png");
  EXPECT_THROW(folder_scene(folder.path / "s"), FileError);
}

TEST(SynthCommand, HasEveryOptionThatIsNotTheDefault) {
  SynthOptions synth = small();
  synth.motion.cx = 79.5;
  synth.motion.cy = synth.motion.crack_y = 69.5;
  EXPECT_EQ(synth_command(synth), "dic synth -o DIR --width 160 --height 140 --noise 2 --u 0.3");
  synth.texture = Texture::dots;
  synth.motion.kind = MotionKind::bodies;
  synth.motion.bodies = {{10, 20, 5, 1, 0, 0.5}};
  EXPECT_EQ(
      synth_command(synth),
      "dic synth -o DIR --width 160 --height 140 --texture dots --noise 2 --motion bodies --u 0.3 --body "
      "10,20,5,1,0,0.5");
  synth = small();
  synth.motion.cx = 79.5;
  synth.motion.cy = synth.motion.crack_y = 69.5;
  synth.faults = {.repeat = 40, .line_jitter = 0.2, .correlated_noise = true, .defective = 0.01, .median = 3};
  EXPECT_EQ(synth_command(synth),
            "dic synth -o DIR --width 160 --height 140 --noise 2 --repeat 40 --line-jitter 0.2 "
            "--correlated-noise --defective 0.01 --median 3 --u 0.3");
}

TEST(Report, TablesGoBetweenTheLinesOfADocument) {
  Report report;
  report.cases.push_back(run_case(suite(), case_of(small(), {.rmse = 1e-9}), on_cpu()));
  EXPECT_EQ(report.broken(), 1);
  const std::string document = "a\n<!-- report: mine -->\nbefore\n<!-- end of report -->\nb\n";
  const std::string filled = insert_tables(document, {suite()}, report);
  EXPECT_TRUE(filled.starts_with("a\n<!-- report: mine -->\n\n| images | ok of points |")) << filled;
  EXPECT_NE(filled.find("- one: RMSE in px: "), std::string::npos) << filled;
  EXPECT_TRUE(filled.ends_with("<!-- end of report -->\nb\n")) << filled;
  EXPECT_EQ(filled.find("before"), std::string::npos);
  EXPECT_THROW(insert_tables("", {suite()}, report), UsageError);
}

TEST(Validate, RealImagesWithoutTheirTruthAreRefused) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path / "challenge14");
  const auto cases = real_cases(folder.path);
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_THROW(cases[0].scene(), FileError);
}

}  // namespace
}  // namespace dic::validation

#include "bench/bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <iterator>
#include <map>

#include "bench/inputs.hpp"
#include "bench/timing.hpp"
#include "bench/truth.hpp"
#include "support/bench_cases.hpp"

// Tests what is timed, and how often.
namespace dic::bench {
namespace {

namespace fs = std::filesystem;

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
  EXPECT_NE(report.rows[0].problem.find("CUDA and OpenCL only"), std::string::npos) << report.rows[0].problem;
}

TEST(BenchCorrelate, RepeatsAreLongEnough) {
  Options options = quick_options();
  options.min_seconds = 0.01;
  const Report report = correlate(parse("reference = 5\nshifts = 1\n"), options, "");
  const Timing& seconds = report.rows[0].seconds;
  EXPECT_GE(static_cast<double>(seconds.iterations) * seconds.most, 0.005);
}

/// Numbers of iterations that time_repeats requests, one after the other. Each iteration reports 1/512 s and
/// lasts 1/1024 s.
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
  EXPECT_EQ(run_again, 4);  // only the failed tasks
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

TEST(BenchMatch, ATurnedTemplateIsFound) {
  const MatchTiming timing =
      match({.template_size = 48, .image_size = 200, .noise = 1, .poses = true}, quick_options());
  EXPECT_LT(timing.error, 0.05);
  EXPECT_LT(timing.turn_error, 0.1);
  EXPECT_GT(timing.score, 0.95);
  EXPECT_GT(timing.seconds.median, 0);
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

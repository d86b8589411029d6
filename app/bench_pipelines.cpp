#include "bench_pipelines.hpp"

#include <algorithm>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/info.hpp>
#include <memory>
#include <string>
#include <utility>

#include "commands.hpp"
#include "interruption.hpp"

namespace dic::app {
namespace {

void print_stage(const char* name, double seconds, std::int64_t points) {
  std::printf("  %-8s %10.1f ms %14.0f points/s\n", name, 1e3 * seconds,
              static_cast<double>(points) / seconds);
}

void print_track(const bench::TrackCase& shape, const bench::TrackTiming& timing) {
  const RefineOptions& refine = shape.options.refine;
  std::printf("Tracking %dx%d on %s: %lld points, subset %d, step %d, order %d, %s\n", shape.size, shape.size,
              timing.device.c_str(), static_cast<long long>(timing.points), refine.subset, shape.options.step,
              refine.order, std::string(to_string(refine.interpolation)).c_str());
  const StageSeconds& seconds = timing.seconds;
  print_stage("prepare", seconds.prepare, timing.points);
  print_stage("search", seconds.search, timing.points);
  print_stage("refine", seconds.refine, timing.points);
  print_stage("strain", seconds.strain, timing.points);
  print_stage("total", seconds.total, timing.points);
  std::printf("  %lld lost; error u %.4f px, v %.4f px (root mean square, noise %g grey levels)\n",
              static_cast<long long>(timing.points - timing.measured), timing.rms_error_u, timing.rms_error_v,
              shape.noise);
}

void print_stereo_timing(const bench::StereoCase& shape, const bench::StereoTiming& timing) {
  const RefineOptions& refine = shape.options.refine;
  const auto points = static_cast<double>(timing.measured);
  std::printf("Two cameras %dx%d on %s: %lld of %lld points measured, subset %d, step %d\n", shape.size,
              shape.size, timing.device.c_str(), static_cast<long long>(timing.measured),
              static_cast<long long>(timing.points), refine.subset, shape.options.step);
  std::printf("  references %10.1f ms\n", 1e3 * timing.reference_seconds);
  std::printf("  pair       %10.1f ms %14.0f 3-D points/s\n", 1e3 * timing.pair_seconds,
              points / timing.pair_seconds);
  std::printf("  one camera %10.1f ms; a pair takes %.2f times as long as a frame of the left camera\n",
              1e3 * timing.one_camera_seconds, timing.ratio());
  std::printf("  stream     %10.1f pairs/s %11.0f 3-D points/s, of %d pairs\n", timing.pairs_per_second,
              points * timing.pairs_per_second, timing.streamed);
  const StageSeconds& stages = timing.stages;
  std::printf(
      "  per pair: prepare %.2f ms, search %.2f ms, refine %.2f ms, geometry %.2f ms, strain %.2f ms\n",
      1e3 * stages.prepare, 1e3 * stages.search, 1e3 * stages.refine, 1e3 * timing.geometry_seconds,
      1e3 * stages.strain);
  std::printf("  error Z %.2f um, W %.2f um (root mean square, noise %g grey levels)\n",
              1e3 * timing.rms_error_z, 1e3 * timing.rms_error_w, shape.noise);
}

void print_stream(const bench::StreamTiming& timing, int frames) {
  const auto points = static_cast<double>(timing.points);
  const StageSeconds& stages = timing.stages;
  std::printf("A sequence of %d frames on %s: %.1f frames/s, %.1f M points/s; %.0f points lost per frame\n",
              frames, timing.device.c_str(), timing.frames_per_second,
              1e-6 * points * timing.frames_per_second, timing.lost);
  std::printf(
      "  per frame: prepare %.2f ms, search %.2f ms, refine %.2f ms, strain %.2f ms; host: copy %.2f ms; "
      "latency %.1f ms\n",
      1e3 * stages.prepare, 1e3 * stages.search, 1e3 * stages.refine, 1e3 * stages.strain, 1e3 * timing.copy,
      1e3 * timing.latency);
  if (timing.gpus > 1)
    std::printf("  the first GPU alone: %.1f frames/s; efficiency of %d GPUs: %.2f\n",
                timing.frames_per_second_of_one, timing.gpus,
                timing.frames_per_second / (timing.frames_per_second_of_one * timing.gpus));
}

void print_images(const char* name, const bench::ImagesTiming& timing) {
  const auto ok = static_cast<double>(timing.by_status[static_cast<int>(Status::ok)]);
  std::printf("  %-12s %8.3f s %8.1f frames/s %10.0f points/s\n", name, timing.seconds,
              timing.frames / timing.seconds, ok / timing.seconds);
  std::printf("    points of a frame: ");
  const char* separator = "";
  for (int status = 0; status < kStatusCount; ++status) {
    if (timing.by_status[status] == 0) continue;
    std::printf("%s%.0f %s", separator, static_cast<double>(timing.by_status[status]) / timing.frames,
                std::string(to_string(static_cast<Status>(status))).c_str());
    separator = ", ";
  }
  std::printf("\n");
}

void print_image_timings(const bench::ImagesCase& shape, const bench::ImageTimings& timings) {
  const RefineOptions& refine = shape.options.refine;
  const bench::ImagesTiming& whole = timings.whole;
  std::printf("Tracking %d frames of %dx%d on %s: subset %d, step %d, order %d, %s\n", whole.frames,
              whole.image.width, whole.image.height, whole.device.c_str(), refine.subset, shape.options.step,
              refine.order, std::string(to_string(refine.interpolation)).c_str());
  print_images("whole image", whole);
  if (!timings.region) return;
  print_images("region", *timings.region);
  const auto per_point = [](const bench::ImagesTiming& timing) {
    return timing.seconds / static_cast<double>(timing.by_status[static_cast<int>(Status::ok)]);
  };
  std::printf("  the whole image takes %.2f times as long as the region, %.2f times per measured point\n",
              whole.seconds / timings.region->seconds, per_point(whole) / per_point(*timings.region));
}

/// Tracks the frames from PNG files, and draws when each stage worked.
void draw_timeline(const bench::TrackCase& shape, int frames, const std::string& file, std::stop_token stop) {
  const TrackSummary run = bench::track_files(shape, frames, std::move(stop));
  char title[256];
  const double rate = static_cast<double>(run.frames.size()) / run.seconds.total;
  std::snprintf(title, sizeof title,
                "%d PNG files of %dx%d px to result.vtkhdf, %lld points, %s: %.1f frames/s", frames,
                shape.size, shape.size, static_cast<long long>(run.points), run.device.c_str(), rate);
  std::printf("%s\n", title);
  bench::write_timeline(file, run.frames, title);
}

void print_poses(const bench::MatchCase& shape, const bench::MatchTiming& timing, const std::string& device) {
  const std::string number =
      shape.templates == 1 ? "Template" : std::to_string(shape.templates) + " templates";
  std::printf("%s %dx%d at any angle in %dx%d, 8 bit, on %s: %.2f ms (first %.2f ms), %.1f images/s\n",
              number.c_str(), shape.template_size, shape.template_size, shape.image_size, shape.image_size,
              device.c_str(), 1e3 * timing.seconds.median, 1e3 * timing.seconds.first,
              1 / timing.seconds.median);
  std::printf("  score %.3f, %.4f px and %.4f degrees from the true pose\n", timing.score, timing.error,
              timing.turn_error);
  if (shape.templates == 1)
    std::printf("  in the next image of a sequence: %.2f ms\n", 1e3 * timing.follow.median);
}

void print_match(const bench::MatchCase& shape, const bench::MatchTiming& timing, const std::string& device) {
  if (shape.poses) return print_poses(shape, timing, device);
  std::printf("Template %dx%d in %dx%d, 8 bit, on %s: %.2f ms (first %.2f ms), %.1f images/s, %.0f Gop/s\n",
              shape.template_size, shape.template_size, shape.image_size, shape.image_size, device.c_str(),
              1e3 * timing.seconds.median, 1e3 * timing.seconds.first, 1 / timing.seconds.median,
              1e-9 * timing.operations / timing.seconds.median);
  std::printf("  score %.3f, %.4f px from the true position\n", timing.score, timing.error);
  std::printf("  %.1f times as fast as cv::matchTemplate (TM_CCOEFF_NORMED, %.2f ms) on the CPU\n",
              timing.opencv.median / timing.seconds.median, 1e3 * timing.opencv.median);
}

/// The naive variant's row for the same case; null where it has no time.
const bench::Row* naive_row(const bench::Report& report, const bench::Row& row) {
  for (const bench::Row& other : report.rows)
    if (other.task.shape == row.task.shape && other.task.variant != "planner" &&
        other.outcome == bench::Outcome::ok)
      return &other;
  return nullptr;
}

void print_quick_row(const bench::Report& report, const bench::Row& row) {
  const bench::Case& shape = row.task.shape;
  char name[64];
  std::snprintf(name, sizeof name, "%s subset %d, search +-%d px", std::string(to_string(shape.type)).c_str(),
                shape.ref_h, (shape.search_h - shape.ref_h) / 2);
  if (row.outcome != bench::Outcome::ok) {
    std::printf("  %-30s %s\n", name, row.problem.c_str());
    return;
  }
  const double seconds = row.seconds.median;
  std::printf("  %-30s %-22s %12.0f %9.0f %8.2f", name, row.ran.c_str(),
              static_cast<double>(shape.pairs()) / seconds, 1e-9 * shape.operations() / seconds,
              1e-9 * shape.bytes() / seconds);
  if (const bench::Row* naive = naive_row(report, row))
    std::printf(" %7.1f", naive->seconds.median / seconds);
  std::printf("\n");
}

void quick_correlation(const bench::Options& options, std::stop_token stop) {
  const bench::Report report =
      bench::correlate(bench::quick_tasks(options.device), options, command_line(), {}, {}, stop);
  std::printf("Integer search on %s (%s)\n", options.device.c_str(), report.machine.model.c_str());
  std::printf("  %-30s %-22s %12s %9s %8s %7s\n", "", "variant", "points/s", "Gop/s", "GB/s", "x naive");
  for (const bench::Row& row : report.rows)
    if (row.task.variant == "planner") print_quick_row(report, row);
  std::printf("\n");
}

/// Prints why a part failed instead of throwing, because the other parts still count.
template <typename Part>
void print_failure_of(const Part& part) {
  try {
    part();
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    std::printf("failed: %s\n", error.what());
  }
  std::printf("\n");
}

void quick_pipelines(const bench::Options& options, std::stop_token stop) {
  const bench::MatchCase match;
  print_failure_of([&] { print_match(match, bench::match(match, options, stop), options.device); });
  bench::TrackCase track;
  track.options.device = options.device;
  track.options.threads = options.threads;
  track.repeats = options.repeats;
  track.seed = options.seed;
  print_failure_of([&] { print_track(track, bench::track(track, stop)); });
}

struct BenchMatchCommand {
  bench::MatchCase shape;
  bench::Options options{.device = "auto"};
};

}  // namespace

std::string resolve_device(const std::string& device) {
  if (device != "auto") return device;
  return build_info().devices.empty() ? "cpu" : "cuda";
}

void add_bench_track(CLI::App& bench) {
  auto shape = std::make_shared<bench::TrackCase>();
  auto frames = std::make_shared<int>(0);
  auto timeline = std::make_shared<std::string>();
  auto images = std::make_shared<bench::ImagesCase>();
  auto region = std::make_shared<std::vector<int>>();
  TrackOptions& options = shape->options;
  CLI::App& command =
      *bench.add_subcommand("track", "Time the tracking of synthetic speckle, stage by stage, or of images");
  command.option_defaults()->always_capture_default();
  command.add_option("--size", shape->size, "Side of the images, px");
  command.add_option("--noise", shape->noise, "Noise of the images, grey levels");
  command.add_option("--seed", shape->seed, "Seed of speckle and noise");
  command.add_option("--subset", options.refine.subset, "Side of the subset, px");
  command.add_option("--step", options.step, "Distance between points, px");
  command.add_option("--order", options.refine.order, "Shape function: 0, 1 or 2");
  add_choice(command, "--interpolation", options.refine.interpolation, "B-spline of the current image");
  command.add_option("--device", options.device, "auto, cpu, cuda, cuda:N, cuda:0,2 (a list) or cuda:all");
  command.add_option("--threads", options.threads, "CPU threads; 0 = one per core");
  add_number_or_auto(command, "--search", "PX", options.search, "Search range, px");
  add_choice(command, "--reference-strategy", options.reference_strategy,
             "Reference with which the frames of a sequence are compared");
  command.add_option("--repeats", shape->repeats, "Number of repeats; medians are printed");
  CLI::Option* sequence = command.add_option(
      "--frames", *frames, "Also track a sequence of this many frames; 0 = none, or each image once");
  command
      .add_option("--timeline", *timeline,
                  "Also track these frames from PNG files to result.vtkhdf, and draw when each stage worked")
      ->type_name("FILE.png")
      ->needs(sequence);
  CLI::Option* files =
      command
          .add_option("--images", images->files,
                      "Track these images instead of speckle, as dic track does, to and fro for --frames")
          ->type_name("FILES")
          ->default_str("");
  command.add_option("--roi-rect", *region, "Also track the images in this region: x,y,width,height")
      ->type_name("RECT")
      ->delimiter(',')
      ->expected(4)
      ->default_str("")
      ->needs(files);
  command.callback([shape, frames, timeline, images, region] {
    const Interruption interruption;
    if (!images->files.empty()) {
      images->options = shape->options;
      images->repeats = shape->repeats;
      images->frames = *frames;
      if (!region->empty()) images->region = {(*region)[0], (*region)[1], (*region)[2], (*region)[3]};
      print_image_timings(*images, bench::track_images(*images, interruption.token()));
      return;
    }
    if (!timeline->empty()) bench::check_timeline(*frames);
    print_track(*shape, bench::track(*shape, interruption.token()));
    if (*frames > 0) print_stream(bench::track_stream(*shape, *frames, interruption.token()), *frames);
    if (!timeline->empty()) draw_timeline(*shape, *frames, *timeline, interruption.token());
  });
}

void add_bench_stereo(CLI::App& bench) {
  auto shape = std::make_shared<bench::StereoCase>();
  shape->options.step = 8;
  shape->options.refine.subset = 21;
  TrackOptions& options = shape->options;
  CLI::App& command = *bench.add_subcommand(
      "stereo", "Time two cameras in 3-D on rendered pairs, beside one camera in the same run");
  command.option_defaults()->always_capture_default();
  command.add_option("--size", shape->size, "Side of the images, px");
  command.add_option("--noise", shape->noise, "Noise of the images, grey levels");
  command.add_option("--seed", shape->seed, "Seed of speckle and noise");
  command.add_option("--subset", options.refine.subset, "Side of the subset, px");
  command.add_option("--step", options.step, "Distance between points, px");
  command.add_option("--order", options.refine.order, "Shape function: 1 or 2");
  add_choice(command, "--surface", shape->surface, "Surface of the specimen; R = 120 mm where it is round");
  command.add_option("--motion", shape->motion, "Motion between two pairs, px");
  command.add_flag("--whole", shape->whole,
                   "Measure whole images, also the border that one camera does not see");
  command.add_option("--device", options.device, "auto, cpu, cuda, cuda:N, cuda:0,2 (a list) or cuda:all");
  command.add_option("--threads", options.threads, "CPU threads; 0 = one per core");
  command.add_option("--repeats", shape->repeats, "Number of repeats; medians are printed")
      ->check(CLI::PositiveNumber);
  command.add_option("--stream", shape->stream, "Number of pairs of the stream; 0 = two seconds")
      ->check(CLI::NonNegativeNumber);
  command.callback([shape] {
    const Interruption interruption;
    print_stereo_timing(*shape, bench::stereo(*shape, interruption.token()));
  });
}

void add_bench_match(CLI::App& bench) {
  auto flags = std::make_shared<BenchMatchCommand>();
  CLI::App& command = *bench.add_subcommand("match", "Time the search for a template in synthetic speckle");
  command.option_defaults()->always_capture_default();
  command.add_option("--template", flags->shape.template_size, "Side of the template, px");
  command.add_option("--size", flags->shape.image_size, "Side of the image, px");
  command.add_option("--noise", flags->shape.noise, "Noise of template and image, grey levels");
  command.add_flag("--poses", flags->shape.poses,
                   "Turn the image and search at any angle, as dic match --rotation -180:180");
  command.add_option("--templates", flags->shape.templates, "Number of templates, with --poses");
  command.add_option("--seed", flags->options.seed, "Seed of speckle and noise");
  command.add_option("--device", flags->options.device, "auto, cpu, cuda, cuda:N, opencl or opencl:N");
  command.add_option("--threads", flags->options.threads, "CPU threads; 0 = one per core");
  command.add_option("--repeats", flags->options.repeats, "Number of repeats; the median is printed");
  command.callback([flags] {
    flags->options.device = resolve_device(flags->options.device);
    const Interruption interruption;
    print_match(flags->shape, bench::match(flags->shape, flags->options, interruption.token()),
                flags->options.device);
  });
}

void run_quick(const bench::Options& options) {
  const Interruption interruption;
  std::vector<std::string> devices = {resolve_device(options.device)};
  if (options.device == "auto" && devices[0] != "cpu") devices.emplace_back("cpu");
  for (const std::string& device : devices) {
    bench::Options on_device = options;
    on_device.device = device;
    quick_correlation(on_device, interruption.token());
    quick_pipelines(on_device, interruption.token());
  }
}

}  // namespace dic::app

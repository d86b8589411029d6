#include "track_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/likely_reason.hpp>
#include <iterator>
#include <string>

#include "commands.hpp"

namespace dic::app {

namespace {

constexpr std::size_t kShortTable = 10;  // largest number of frames in the summary; run.json has all

std::int64_t measured_points(const FrameSummary& frame) {
  return frame.counts[static_cast<int>(Status::ok)] + frame.counts[static_cast<int>(Status::outlier)];
}

bool was_processed(const FrameSummary& frame) { return frame.error.empty(); }

std::int64_t processed_frames(const TrackSummary& summary) {
  return std::count_if(summary.frames.begin(), summary.frames.end(), was_processed);
}

void print_frame(const TrackSummary& summary, const FrameSummary& frame) {
  if (!was_processed(frame)) {
    std::printf("%-28s skipped\n", printable(frame.file).c_str());
    return;
  }
  const auto measured = measured_points(frame);
  std::printf("%-28s %9lld %8lld", printable(frame.file).c_str(), static_cast<long long>(measured),
              static_cast<long long>(summary.points - measured));
  if (measured > 0)
    std::printf(" %12.4f %12.4f %9.4f\n", frame.mean_u, frame.mean_v, frame.mean_zncc);
  else
    std::printf(" %12s %12s %9s\n", "-", "-", "-");
}

void print_frames(const TrackJob& job, const TrackSummary& summary, bool all_frames) {
  const char* unit = job.scale() > 0 ? "mm" : "px";
  std::printf("\n%-28s %9s %8s   mean u [%s]  mean v [%s] mean zncc\n", "frame", "measured", "lost", unit,
              unit);
  // The last frame is the one that matters most: it is always shown.
  const std::size_t count = summary.frames.size();
  const bool is_long = !all_frames && count > kShortTable + 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_long && i == kShortTable - 1) {
      std::printf("... %zu more in run.json\n", count - kShortTable);
      i = count - 1;
    }
    print_frame(summary, summary.frames[i]);
  }
}

/// Prints the extreme value over all frames and its position.
void print_extreme(const TrackSummary& summary, std::size_t component, bool largest) {
  const FrameSummary* found = nullptr;
  const auto of = [&](const FrameSummary& frame) {
    return largest ? frame.strain[component].max : frame.strain[component].min;
  };
  for (const FrameSummary& frame : summary.frames) {
    if (!was_processed(frame) || std::isnan(of(frame).value)) continue;
    if (!found || (of(frame).value > of(*found).value) == largest) found = &frame;
  }
  if (found)
    std::printf("       %s %10.3e at (%.6g, %.6g) in %s\n", largest ? "largest " : "smallest",
                of(*found).value, of(*found).x, of(*found).y, printable(found->file).c_str());
}

/// The number as 1.234e-05, or "-" if it is not known.
std::string exponential(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3e", value);
  return std::isnan(value) ? "-" : text;
}

void print_strain(const TrackJob& job, const TrackSummary& summary) {
  const FrameSummary* last = nullptr;
  for (const FrameSummary& frame : summary.frames)
    if (was_processed(frame) && !std::isnan(frame.strain[0].mean)) last = &frame;
  if (!last) return;
  std::printf("\nStrain (%s, gauge length %d px) of %s, its extremes over all frames; positions in %s\n",
              std::string(to_string(job.options.strain.measure)).c_str(), summary.gauge,
              printable(last->file).c_str(), job.scale() > 0 ? "mm" : "px");
  for (std::size_t k = 0; k < kStrainComponents.size(); ++k) {
    const FrameSummary::Strain& strain = last->strain[k];
    std::printf("%-6s mean     %10.3e  sd %.3e  predicted sigma %s\n",
                std::string(kStrainComponents[k].name).c_str(), strain.mean, strain.sd,
                exponential(strain.sigma).c_str());
    print_extreme(summary, k, false);
    print_extreme(summary, k, true);
  }
}

void print_speed(const TrackSummary& summary) {
  const StageSeconds& seconds = summary.seconds;
  const double measuring = seconds.measuring();
  const double points = static_cast<double>(summary.points * processed_frames(summary));
  std::printf("Device      %s. %s\n", summary.device.c_str(), summary.device_reason.c_str());
  std::printf("Host, date  %s, %s\n", summary.host.c_str(), summary.date.c_str());
  std::printf("Time        %.2f s; measuring took %.2f s of it: %.0f points/s\n", seconds.total, measuring,
              measuring > 0 ? points / measuring : 0.0);
}

/// Mean over the frames that were measured.
template <typename Value>
double mean_over(const TrackSummary& summary, const Value& value) {
  double sum = 0, n = 0;
  for (const FrameSummary& frame : summary.frames)
    if (was_processed(frame) && measured_points(frame) > 0) sum += value(frame), n += 1;
  return sum / n;
}

void print_noise_floor(const TrackJob& job, const TrackSummary& summary) {
  int quantity = 0;
  const auto print = [&](const char* name, const char* unit, const auto& sd, const auto& sigma) {
    const auto rms = [&](const auto& value) {
      return std::sqrt(mean_over(summary, [&](const FrameSummary& f) { return value(f) * value(f); }));
    };
    std::printf("%-10s %12.3e %12.3e %9.2f\n", (std::string(name) + unit).c_str(), rms(sd),
                mean_over(summary, sigma), rms([&](const FrameSummary& f) { return f.scatter[quantity]; }));
    ++quantity;
  };
  const bool measured =
      std::ranges::any_of(summary.frames, [](const FrameSummary& f) { return measured_points(f) > 0; });
  if (!measured) return;
  const char* unit = job.scale() > 0 ? " [mm]" : " [px]";
  std::printf("\nNoise floor    measured    predicted     ratio (point by point)\n");
  print(
      "u", unit, [](const auto& f) { return f.sd_u; }, [](const auto& f) { return f.sigma_u; });
  print(
      "v", unit, [](const auto& f) { return f.sd_v; }, [](const auto& f) { return f.sigma_v; });
  for (std::size_t k = 0; k < kStrainComponents.size(); ++k)
    print(
        std::string(kStrainComponents[k].name).c_str(), "", [k](const auto& f) { return f.strain[k].sd; },
        [k](const auto& f) { return f.strain[k].sigma; });
}

void print_pictures(const TrackJob& job, const TrackSummary& summary) {
  if (summary.frames_drawn == 0) return;
  std::int64_t measured = processed_frames(summary);
  std::string names;
  for (const FieldArray& array : kDrawnArrays) names.append(names.empty() ? "" : ", ").append(array.name);
  std::printf("  pictures/      %s over %lld of %lld frames%s\n", names.c_str(),
              static_cast<long long>(summary.frames_drawn), static_cast<long long>(measured),
              summary.frames_drawn < measured && job.pictures == Pictures::some
                  ? "; --pictures all draws the others, too"
                  : "");
}

void print_files(const TrackJob& job, const TrackSummary& summary) {
  std::printf("\nResults in %s:\n", printable(job.output.string()).c_str());
  std::printf("  result.vtkhdf  all fields of all frames: ParaView 5.12+, Python (h5py), MATLAB (h5read)\n");
  if (job.csv) std::printf("  csv/           one table per frame\n");
  print_pictures(job, summary);
  if (!summary.noise_curve.empty())
    std::printf("  noise_curve    noise of the images over grey: .csv, .png\n");
  std::printf("  run.json       settings, counts by status, noise floor, times\n");
}

/// ", 52000 points/s, 4 s left" after a frame.
std::string pace_of(const Progress& progress) {
  char text[64];
  const int n = std::snprintf(text, sizeof text, ", %.0f points/s",
                              static_cast<double>(progress.done) / progress.seconds);
  if (progress.frames > 0 && progress.frame > 0)
    std::snprintf(text + n, sizeof text - n, ", %.0f s left",
                  progress.seconds / progress.frame * (progress.frames - progress.frame));
  return text;
}

}  // namespace

ProgressLine::ProgressLine(bool enabled) : enabled_(enabled && isatty(STDERR_FILENO)) {}

ProgressLine::~ProgressLine() {
  if (enabled_) std::fprintf(stderr, "\r\033[K");
}

void ProgressLine::show(const Progress& progress) {
  if (!enabled_) return;
  // "load" comes after a whole frame: only then do points and seconds belong together.
  if (progress.stage == "load" && progress.done > 0) pace_ = pace_of(progress);
  std::fprintf(stderr, "\r\033[K");
  if (progress.frame > 0) std::fprintf(stderr, "frame %d", progress.frame);
  if (progress.frame > 0 && progress.frames > 0) std::fprintf(stderr, " of %d", progress.frames);
  std::fprintf(stderr, "%s%s%s", progress.frame > 0 ? ": " : "", progress.stage.c_str(), pace_.c_str());
  std::fflush(stderr);
}

namespace {

/// The mask and its share that is inside: a mask that selects the complement, or all, shows.
std::string mask_text(const TrackJob& job) {
  const Image& mask = job.roi.mask;
  if (job.roi_file.empty() || mask.empty()) return {};
  std::int64_t inside = 0;
  for (int y = 0; y < mask.height(); ++y)
    inside +=
        mask.width() - std::count(mask.row<std::uint8_t>(y), mask.row<std::uint8_t>(y) + mask.width(), 0);
  const double share =
      100.0 * static_cast<double>(inside) / (static_cast<double>(mask.width()) * mask.height());
  char text[48];
  std::snprintf(text, sizeof text, " (%.3g %% of it inside)", share);
  return ", mask " + job.roi_file + text;
}

}  // namespace

void print_summary(const TrackJob& job, const TrackSummary& summary, bool all_frames) {
  std::printf("Reference   %s, %d x %d px%s\n", printable(summary.reference).c_str(), summary.image.width,
              summary.image.height, printable(mask_text(job)).c_str());
  std::printf("Measured    %lld of %zu frames%s, %lld points each (subset %d, step %d, order %d)\n",
              static_cast<long long>(processed_frames(summary)), summary.frames.size(),
              summary.interrupted ? " until the interruption" : "", static_cast<long long>(summary.points),
              summary.options.refine.subset, job.options.step, job.options.refine.order);
  if (job.options.sigma_target)
    std::printf("Subset      %d px, the %s sigma of %g px\n", summary.options.refine.subset,
                summary.options.refine.subset < 101 ? "smallest for a" : "largest; it may not reach a",
                *job.options.sigma_target);
  if (summary.options.prefilter > 0.0)
    std::printf("Prefilter   Gaussian of %.1f px%s\n", *summary.options.prefilter,
                job.options.prefilter ? "" : ": lowers the predicted sigma of these images");
  print_speed(summary);
  if (all_frames)
    for (const std::string& kernel : summary.kernels) std::printf("Kernel      %s\n", kernel.c_str());
  print_frames(job, summary, all_frames);
  print_strain(job, summary);
  if (job.noise_floor) print_noise_floor(job, summary);
  print_files(job, summary);
}

void print_warnings(const TrackJob& job, const TrackSummary& summary) {
  std::int64_t measured = 0;
  for (const FrameSummary& frame : summary.frames) {
    measured += measured_points(frame);
    if (!was_processed(frame)) std::fprintf(stderr, "dic: skipped: %s\n", printable(frame.error).c_str());
  }
  if (const std::string warning = unmatched_warning(job, summary); !warning.empty())
    std::fprintf(stderr, "dic: warning: %s\n", printable(warning).c_str());
  for (const std::string& warning : summary.warnings)
    std::fprintf(stderr, "dic: warning: %s\n", printable(warning).c_str());
  if (job.noise_floor && summary.noise_curve.empty() && measured > 0)
    std::fprintf(stderr,
                 "dic: warning: no curve of the noise: every frame moved by more than half a pixel, or the "
                 "images are too small.\n");
}

}  // namespace dic::app

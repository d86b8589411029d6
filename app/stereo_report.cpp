#include "stereo_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "commands.hpp"

namespace dic::app {

namespace {

std::int64_t measured_points_of_pair(const StereoFrameSummary& frame) {
  return frame.counts[static_cast<int>(Status::ok)] + frame.counts[static_cast<int>(Status::outlier)];
}

bool was_pair_processed(const StereoFrameSummary& frame) { return frame.error.empty(); }

const StereoStatistics& statistics_of(const StereoFrameSummary& frame, std::string_view name) {
  return frame.statistics[std::ranges::find(kStereoSummary, name) - kStereoSummary.begin()];
}

void print_measured_pair(const StereoSummary& summary, const StereoFrameSummary& frame) {
  if (!was_pair_processed(frame)) {
    std::printf("%-28s skipped\n", printable(frame.left.empty() ? frame.right : frame.left).c_str());
    return;
  }
  const auto measured = measured_points_of_pair(frame);
  std::printf("%-28s %9lld %8lld", printable(frame.left).c_str(), static_cast<long long>(measured),
              static_cast<long long>(summary.points - measured));
  if (measured > 0)
    std::printf(" %10.4f %10.4f %10.4f %10.4f %9.4f\n", statistics_of(frame, "Z").mean,
                statistics_of(frame, "U").mean, statistics_of(frame, "V").mean,
                statistics_of(frame, "W").mean, frame.epipolar_sd);
  else
    std::printf(" %10s %10s %10s %10s %9s\n", "-", "-", "-", "-", "-");
}

void print_pairs(const StereoSummary& summary, bool all) {
  constexpr std::size_t kShortTable = 10;
  std::printf("\n%-28s %9s %8s %10s %10s %10s %10s %9s\n", "pair, by its left image", "measured", "lost",
              "Z [mm]", "U [mm]", "V [mm]", "W [mm]", "epi [px]");
  const std::size_t count = summary.frames.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!all && count > kShortTable + 1 && i == kShortTable - 1) {
      std::printf("... %zu more in run.json\n", count - kShortTable);
      i = count - 1;
    }
    print_measured_pair(summary, summary.frames[i]);
  }
}

void print_surface_strain(const StereoJob& job, const StereoSummary& summary) {
  const StereoFrameSummary& last = summary.frames.back();
  if (summary.frames.size() < 2 || !was_pair_processed(last) || std::isnan(statistics_of(last, "exx").mean))
    return;
  std::printf("\nStrain of the surface (%s, gauge length %d px, about %.3g mm) of %s\n",
              std::string(to_string(job.track.options.strain.measure)).c_str(), summary.gauge,
              summary.gauge_mm, printable(last.left).c_str());
  for (const char* name : {"exx", "eyy", "exy"}) {
    const StereoStatistics& strain = statistics_of(last, name);
    std::printf("%-6s mean %10.3e  sd %.3e  predicted sigma %.3e\n", name, strain.mean, strain.sd,
                strain.sigma);
  }
}

void print_motion(const StereoSummary& summary) {
  const StereoFrameSummary& last = summary.frames.back();
  if (!last.motion.is_known) return;
  const auto print = [](const char* name, const std::array<double, 3>& value,
                        const std::array<double, 3>& sigma) {
    std::printf("%-19s (%.5g, %.5g, %.5g)  sigma (%.2g, %.2g, %.2g)\n", name, value[0], value[1], value[2],
                sigma[0], sigma[1], sigma[2]);
  };
  std::printf("\nMotion as a rigid body of %s, rms rest %.4g mm\n", printable(last.left).c_str(),
              last.motion.residual_mm);
  print("translation [mm]", last.motion.translation_mm, last.motion.sigma_translation_mm);
  print("rotation [degrees]", last.motion.rotation_deg, last.motion.sigma_rotation_deg);
}

void print_stereo_files(const StereoJob& job, const StereoSummary& summary) {
  std::printf("\nResults in %s:\n", printable(job.track.output.string()).c_str());
  std::printf(
      "  result.vtkhdf   all fields over the left reference: ParaView 5.12+, Python (h5py), MATLAB\n");
  std::printf("  surface.vtkhdf  the surface in 3-D with time steps: ParaView 5.12+\n");
  if (job.track.csv) std::printf("  csv/            one table per pair\n");
  if (summary.frames_drawn == 1)
    std::printf("  pictures/       Z over the left reference\n");
  else if (summary.frames_drawn > 1)
    std::printf("  pictures/       Z, W, e1 over %lld left images\n",
                static_cast<long long>(summary.frames_drawn));
  if (job.options.correct_rig) std::printf("  stereo.json     the corrected calibration\n");
  std::printf("  run.json        settings, counts by status, means, times\n");
}

void print_correction(const StereoSummary& summary) {
  const RigCorrection& c = *summary.rig_correction;
  std::printf(
      "Rig         corrected: the right camera turned by (%.3g, %.3g, %.3g) degrees, sigma (%.2g, %.2g, "
      "%.2g), "
      "and is seen %.3g degrees beside its direction; epipolar distances %.2g px before, %.2g px after\n",
      c.rotation_deg[0], c.rotation_deg[1], c.rotation_deg[2], c.sigma_rotation_deg[0],
      c.sigma_rotation_deg[1], c.sigma_rotation_deg[2], c.direction_deg, c.epipolar_before_px,
      c.epipolar_after_px);
}

void print_stereo_was_complete(const StereoJob& job, const StereoSummary& summary) {
  const std::string number = summary.frames.empty() ? "" : std::to_string(summary.frames.size()) + " ";
  std::printf("%s holds all %spairs: ", printable(job.track.output.string()).c_str(), number.c_str());
  if (summary.frames_drawn == 0)
    std::printf("nothing is left to do.\n");
  else
    std::printf("pictures of %lld of them were drawn.\n", static_cast<long long>(summary.frames_drawn));
}

}  // namespace

void print_summary(const StereoJob& job, const StereoSummary& summary, bool all_pairs) {
  if (summary.was_complete) return print_stereo_was_complete(job, summary);
  std::printf("References  %s and %s, %d x %d px\n", printable(summary.frames.front().left).c_str(),
              printable(summary.frames.front().right).c_str(), summary.image.width, summary.image.height);
  std::printf(
      "Measured    %lld of %zu pairs%s, %lld points each (subset %d, step %d, order %d, between cameras "
      "%d)\n",
      static_cast<long long>(std::ranges::count_if(summary.frames, was_pair_processed)),
      summary.frames.size(), summary.interrupted ? " until the interruption" : "",
      static_cast<long long>(summary.points), summary.options.refine.subset, summary.options.step,
      summary.options.refine.order, summary.order_between_cameras);
  if (job.options.correct_rig && summary.rig_correction) print_correction(summary);
  std::printf("Device      %s. %s\n", summary.device.c_str(), summary.device_reason.c_str());
  std::printf("Time        %.2f s; measuring took %.2f s of it\n", summary.seconds.total,
              summary.seconds.measuring() + summary.geometry_seconds);
  if (all_pairs)
    for (const std::string& kernel : summary.kernels) std::printf("Kernel      %s\n", kernel.c_str());
  print_pairs(summary, all_pairs);
  print_motion(summary);
  print_surface_strain(job, summary);
  print_stereo_files(job, summary);
}

namespace {

/// How the right camera turned, and what its correction would leave.
std::string how_it_moved(const StereoSummary& summary) {
  if (!summary.rig_correction) return {};
  const auto& [x, y, z] = summary.rig_correction->rotation_deg;
  char text[160];
  std::snprintf(text, sizeof text, " (the right one by %.2g degrees; --correct-rig would leave %.2g px)",
                std::max(std::hypot(x, y, z), summary.rig_correction->direction_deg),
                summary.rig_correction->epipolar_after_px);
  return text;
}

}  // namespace

void print_warnings(const StereoSummary& summary) {
  constexpr double kDoubtful = 0.1;  // px
  for (const StereoFrameSummary& frame : summary.frames)
    if (!was_pair_processed(frame))
      std::fprintf(stderr, "dic: skipped: %s\n", printable(frame.error).c_str());
  if (!summary.pairing.empty())
    std::fprintf(stderr, "dic: warning: %s\n", printable(summary.pairing).c_str());
  const StereoFrameSummary& reference = summary.frames.front();
  if (reference.epipolar_median > kDoubtful)
    std::fprintf(
        stderr,
        "dic: warning: the matches of the references lie %.2g px from their epipolar lines (median): the "
        "cameras have moved since their calibration%s, and positions are as uncertain as that.\n",
        reference.epipolar_median, how_it_moved(summary).c_str());
  if (measured_points_of_pair(reference) == 0)
    std::fprintf(stderr, "dic: warning: no point of the left reference was found in the right one.\n");
}

bool all_were_processed(const StereoSummary& summary) {
  return std::ranges::all_of(summary.frames, was_pair_processed);
}

}  // namespace dic::app

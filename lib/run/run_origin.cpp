#include "run/run_origin.hpp"

#include <unistd.h>

#include <ctime>
#include <dic/info.hpp>

#include "run/run_json.hpp"

namespace dic::run {
namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

/// Local time as "2026-11-24T21:05:00+0000".
std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[64] = {};
  if (localtime_r(&now, &parts)) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &parts);
  return text;
}

}  // namespace

void note_origin(TrackSummary& summary) {
  summary.host = host_name();
  summary.date = local_time();
}

void note_reference(TrackSummary& summary, Size image, const TrackOptions& options) {
  summary.image = image;
  summary.options = options;
  summary.gauge = (options.strain.window - 1) * options.step + options.refine.subset;
}

ResultInfo describe_result(const TrackJob& job, const TrackSummary& summary, bool times_in_seconds) {
  ResultInfo info;
  info.time_unit = times_in_seconds ? "s" : "1";
  info.subset = summary.options.refine.subset;
  info.image = summary.image;
  info.scale_mm_per_px = job.scale();
  info.strain = job.options.strain;
  info.version = version();
  info.command = job.command;
  info.reference = summary.reference;
  info.settings_json = settings_json(job);
  return info;
}

}  // namespace dic::run

#include "run/run_origin.hpp"

#include <dic/info.hpp>

#include "run/machine.hpp"
#include "run/run_json.hpp"

namespace dic::run {
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

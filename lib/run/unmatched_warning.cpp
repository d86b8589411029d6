#include <dic/image_io.hpp>
#include <dic/likely_reason.hpp>
#include <dic/track_files.hpp>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace dic::run {
namespace {

/// Reads the reference and a frame of a run from their files.
std::optional<std::pair<Image, Image>> images_of(const TrackJob& job, const std::string& frame) {
  try {
    const std::unique_ptr<FrameSource> source = open_frames(job.frames);
    Image reference = job.reference.empty() ? source->read(0) : read_image(job.reference);
    for (std::int64_t k = 0; k < source->count().value_or(0); ++k)
      if (source->name(k) == frame) return std::pair(std::move(reference), source->read(k));
  } catch (const std::exception&) {
    return std::nullopt;  // the files are gone: the counts alone must do
  }
  return std::nullopt;
}

}  // namespace
}  // namespace dic::run

namespace dic {

std::string unmatched_warning(const TrackJob& job, const TrackSummary& summary) {
  const auto measured = [](const FrameSummary& frame) {
    return frame.counts[static_cast<int>(Status::ok)] + frame.counts[static_cast<int>(Status::outlier)];
  };
  std::int64_t processed = 0, unmatched = 0;
  const FrameSummary* first = nullptr;
  for (const FrameSummary& frame : summary.frames) {
    if (!frame.error.empty()) continue;
    ++processed;
    if (measured(frame) > 0) continue;
    ++unmatched;
    if (!first) first = &frame;
  }
  if (!first) return {};
  std::string warning = "not one point could be measured";
  if (unmatched < processed)
    warning += " in " + std::to_string(unmatched) + " of " + std::to_string(processed) + " frames (" +
               first->file + (unmatched > 1 ? ", ..." : "") + ")";
  warning += "; run.json counts the reasons. ";
  const auto images = run::images_of(job, first->file);
  return warning + (images ? likely_reason(images->first, images->second, first->counts)
                           : likely_reason({}, {}, first->counts));
}

}  // namespace dic

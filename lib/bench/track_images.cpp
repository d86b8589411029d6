#include <algorithm>
#include <chrono>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/track_stream.hpp>
#include <memory>

#include "bench/bench.hpp"
#include "bench/timing.hpp"

namespace dic::bench {
namespace {

std::vector<Image> read_all(const std::vector<std::string>& files, const std::stop_token& stop) {
  const std::unique_ptr<FrameSource> source = open_frames(files);
  std::vector<Image> images;
  for (std::int64_t i = 0; i < source->count().value_or(0); ++i) {
    if (stop.stop_requested()) throw Cancelled("The benchmark was cancelled.");
    images.push_back(source->read(i));
  }
  if (images.size() < 2) throw UsageError("There must be at least two images: a reference and a frame.");
  return images;
}

/// Index of a frame that goes to and fro over images 1 .. last.
std::size_t to_and_fro(std::size_t frame, std::size_t last) {
  const std::size_t at = frame % (2 * last);
  return at < last ? at + 1 : 2 * last - at;
}

/// Tracks all frames once. Returns the seconds from the reference to the last result.
double track_once(const ImagesCase& shape, const std::vector<Image>& images, const Roi& roi,
                  const std::stop_token& stop, ImagesTiming& timing) {
  timing.by_status = {};
  const auto start = std::chrono::steady_clock::now();
  TrackStream stream(shape.options, images.front(), roi, [&](const FrameResult& result) {
    for (const Status status : result.field.status) ++timing.by_status[static_cast<int>(status)];
  });
  for (std::size_t frame = 0; frame < static_cast<std::size_t>(timing.frames); ++frame) {
    if (stop.stop_requested()) throw Cancelled("The benchmark was cancelled.");
    stream.push(images[to_and_fro(frame, images.size() - 1)]);
  }
  stream.finish();
  timing.points = stream.grid().points();
  timing.device = stream.device();
  return seconds_since(start);
}

ImagesTiming time_images(const ImagesCase& shape, const std::vector<Image>& images, const Roi& roi,
                         const std::stop_token& stop) {
  ImagesTiming timing;
  timing.image = images.front().size();
  timing.frames = shape.frames > 0 ? shape.frames : static_cast<int>(images.size()) - 1;
  std::vector<double> seconds;
  for (int repeat = 0; repeat < shape.repeats; ++repeat)
    seconds.push_back(track_once(shape, images, roi, stop, timing));
  timing.seconds = median_of(seconds);
  return timing;
}

}  // namespace

ImageTimings track_images(const ImagesCase& shape, std::stop_token stop) {
  if (shape.repeats < 1) throw UsageError("There must be at least one repeat.");
  if (shape.frames < 0) throw UsageError("The number of frames must be at least 0.");
  const std::vector<Image> images = read_all(shape.files, stop);
  ImageTimings timings{time_images(shape, images, {}, stop), {}};
  if (!shape.region) return timings;
  Roi roi;
  roi.rect = shape.region;
  timings.region = time_images(shape, images, roi, stop);
  return timings;
}

}  // namespace dic::bench

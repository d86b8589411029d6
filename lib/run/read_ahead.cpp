#include "run/read_ahead.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <stdexcept>
#include <thread>
#include <utility>

#include "track/stopwatch.hpp"

namespace dic::run {
namespace {

std::optional<SourceFrame> read(FrameSource& source, std::int64_t index) {
  if (const auto count = source.count(); count && index >= *count) return std::nullopt;
  SourceFrame frame;
  frame.index = index;
  track::Stopwatch watch;
  try {
    frame.name = source.name(index);  // waits for the next frame if frames are still arriving
    watch = {};
    frame.stamp = source.stamp(index);
    auto read = read_unchanged(source, index);
    frame.image = std::move(read.image);
    frame.stamp = std::move(read.stamp);
    frame.name = source.name(index);  // a file may be renamed while it is waited for
  } catch (const FileError& e) {
    frame.error = e.what();
  } catch (const std::out_of_range&) {  // the end of a video of unknown length, or of a watched folder
    return std::nullopt;
  }
  frame.decode = watch.span("decode");
  return frame;
}

}  // namespace

StampedImage read_unchanged(const std::string& name, const std::function<std::string()>& stamp,
                            const std::function<Image()>& read) {
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    StampedImage read_now{{}, stamp()};
    read_now.image = read();
    if (stamp() == read_now.stamp) return read_now;
  }
  throw FileError(name + " changes while it is read: wait until its program has written it.");
}

StampedImage read_unchanged(FrameSource& source, std::int64_t index) {
  if (!source.reads_in_parallel()) return {source.read(index), source.stamp(index)};
  return read_unchanged(
      source.name(index), [&] { return source.stamp(index); }, [&] { return source.read(index); });
}

ReadAhead::ReadAhead(FrameSource& source, std::int64_t first, int frames)
    : source_(source), next_request_(first) {
  read_more(frames);
}

void ReadAhead::read_more(int frames) {
  while (std::ssize(pending_) < frames) request();
}

std::optional<SourceFrame> ReadAhead::next() {
  std::optional<SourceFrame> frame = pending_.front().get();
  pending_.pop_front();
  request();
  return frame;
}

void ReadAhead::request() {
  pending_.push_back(
      std::async(std::launch::async, [this, index = next_request_++] { return read(source_, index); }));
}

int frames_ahead(const FrameSource& source, bool cores_are_free) {
  if (!source.reads_in_parallel()) return 1;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return cores_are_free ? std::clamp(cores - 2, 1, 32) : std::clamp(cores / 4, 1, 8);
}

}  // namespace dic::run

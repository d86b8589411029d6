#include "run/run_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "io/pending_file.hpp"
#include "run/json_text.hpp"
#include "run/run_json.hpp"
#include "run/stereo_json.hpp"

namespace dic::run {
namespace {

constexpr int kFormat = 1;

/// Identifier of the machine's current boot; empty if the system does not tell.
std::string start_of_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string log_line(const Json& json) { return dump(json) + "\n"; }

template <typename Contents>
std::string first_line(const Contents& contents) {
  Json json;
  json["dic_frames"] = kFormat;
  json["version"] = contents.version;
  json["settings"] = contents.settings;
  json["reference"] = contents.reference;
  return log_line(json);
}

template <typename Done>
std::string line_of(const Done& done) {
  Json json;
  json["index"] = done.index;
  json["stamp"] = done.stamp;
  json["frame"] = Json::parse(frame_json(done.summary));
  return log_line(json);
}

void read_summary(const Json& json, FrameSummary& frame) { frame = frame_from_json(json.dump()); }
void read_summary(const Json& json, StereoFrameSummary& frame) {
  frame = stereo_frame_from_json(json.dump());
}

std::string start_line() { return log_line({{"machine", start_of_machine()}}); }

/// Reads the contents of a log line by line.
template <typename Summary>
class Reader {
 public:
  bool read_first(const std::string& line) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("dic_frames", 0) != kFormat) return false;
    contents_.version = json.at("version");
    contents_.settings = json.at("settings");
    contents_.reference = json.at("reference");
    return true;
  }

  /// Reads one line. Returns false if it is damaged.
  bool read(const std::string& line) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) return false;
    if (json.contains("machine")) {
      machine_ = json.at("machine");
      on_disk_ = contents_.frames.size();
    } else if (json.contains("on_disk")) {
      on_disk_ = json.at("on_disk");
    } else {
      typename FrameLog<Summary>::Done done{json.at("index"), json.at("stamp"), {}};
      read_summary(json.at("frame"), done.summary);
      contents_.frames.push_back(std::move(done));
    }
    return true;
  }

  FrameLog<Summary>::Contents contents() && {
    if (machine_ != start_of_machine() && on_disk_ < contents_.frames.size())
      contents_.frames.resize(on_disk_);
    return std::move(contents_);
  }

 private:
  FrameLog<Summary>::Contents contents_;
  std::string machine_;
  std::size_t on_disk_ = 0;  ///< number of frames that survive a power failure
};

/// Returns false if the sync failed; file systems that do not support it are trusted.
bool sync(int file) { return ::fdatasync(file) == 0 || errno == EINVAL || errno == EROFS; }

[[noreturn]] void throw_failure(const std::filesystem::path& path) { throw_cannot_write(path, errno); }

}  // namespace

template <typename Summary>
std::optional<typename FrameLog<Summary>::Contents> FrameLog<Summary>::read(
    const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  Reader<Summary> reader;
  try {
    if (!std::getline(file, line) || !reader.read_first(line)) return {};
    // The last line has no end if its writer was killed.
    while (std::getline(file, line) && !file.eof() && reader.read(line)) {
    }
  } catch (const Json::exception&) {  // the rest was not written by dic
    if (line.empty()) return {};
  }
  return std::move(reader).contents();
}

template <typename Summary>
FrameLog<Summary>::FrameLog(std::filesystem::path path, const Contents& contents)
    : path_(std::move(path)), frames_(std::ssize(contents.frames)) {
  PendingText text(path_);
  text.write(first_line(contents));
  for (const Done& done : contents.frames) text.write(line_of(done));
  text.write(start_line());
  text.commit();
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (file_ < 0) throw_failure(path_);
}

template <typename Summary>
FrameLog<Summary>::~FrameLog() {
  if (file_ >= 0) ::close(file_);
}

template <typename Summary>
void FrameLog<Summary>::add(std::span<const Done> done) {
  std::string lines;
  for (const Done& frame : done) lines += line_of(frame);
  write(lines);
  frames_ += std::ssize(done);
}

template <typename Summary>
void FrameLog<Summary>::mark_on_disk(std::int64_t frames) {
  write(log_line({{"on_disk", frames}}));
  if (!sync(file_)) throw_failure(path_);
}

/// Writes all lines at once, so that lines of two threads do not mix.
template <typename Summary>
void FrameLog<Summary>::write(const std::string& lines) {
  const ssize_t written = ::write(file_, lines.data(), lines.size());
  if (written == std::ssize(lines)) return;
  if (written >= 0) errno = ENOSPC;
  throw_failure(path_);
}

template class FrameLog<FrameSummary>;
template class FrameLog<StereoFrameSummary>;

void sync_to_disk(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw_failure(path);
  const bool failed = !sync(file);
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (failed) throw_failure(path);
}

}  // namespace dic::run

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "image/codecs.hpp"
#include "image/opencv/video_decoder.hpp"

extern char** environ;

namespace dic::image {
namespace {

/// A program whose output is read; it is killed with this object.
class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> arguments) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    if (posix_spawnp(&process_, pointers[0], &actions, nullptr, pointers.data(), environ) != 0) process_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
  }
  ~ChildProcess() {
    if (output_ >= 0) close(output_);
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    wait();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Returns the number of bytes read, which is less than `size` only at the end of the output.
  std::size_t read(void* bytes, std::size_t size) {
    std::size_t done = 0;
    while (process_ >= 0 && done < size) {
      const ssize_t got = ::read(output_, static_cast<char*>(bytes) + done, size - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  std::string read_all() {
    constexpr std::size_t kPiece = 1 << 16;
    std::string text;
    for (std::size_t got = kPiece; got == kPiece;) {
      const std::size_t before = text.size();
      text.resize(before + kPiece);
      got = read(text.data() + before, kPiece);
      text.resize(before + got);
    }
    return text;
  }

  /// Waits for the program, whose output has ended; true if it succeeded.
  bool succeeded() { return process_ >= 0 && wait() == 0; }

 private:
  int wait() {
    int status = -1;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }

  pid_t process_ = -1;
  int output_ = -1;
};

/// The path with "file:" in front, so that it is never taken for an option, a pattern or an address.
std::string input_name(const std::filesystem::path& path) { return "file:" + path.string(); }

/// The first video stream as ffprobe describes it, and the times of its frames in the order of their display,
/// s.
struct VideoStream {
  std::map<std::string, std::string> properties;
  std::vector<double> times;
};

/// Reads lines "name=value"; the stream is empty if ffprobe finds none.
VideoStream probe(const std::filesystem::path& path) {
  ChildProcess ffprobe({"ffprobe", "-v", "error", "-protocol_whitelist", "file", "-select_streams", "v:0",
                        "-show_entries", "stream=width,height,avg_frame_rate,nb_frames:packet=pts_time",
                        "-of", "default=noprint_wrappers=1", input_name(path)});
  const std::string text = ffprobe.read_all();
  VideoStream stream;
  if (!ffprobe.succeeded()) return stream;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    const auto sign = line.find('=');
    if (sign == std::string::npos) continue;
    const std::string name = line.substr(0, sign), value = line.substr(sign + 1);
    if (name == "pts_time")
      stream.times.push_back(std::strtod(value.c_str(), nullptr));
    else
      stream.properties.try_emplace(name, value);
  }
  std::ranges::sort(stream.times);
  return stream;
}

/// Parses a number; 0 if the text is not a number ("N/A").
std::int64_t parsed_number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Parses a frame rate such as "30000/1001".
std::optional<double> rate(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return {};
  const std::int64_t frames = parsed_number(text.substr(0, slash)),
                     seconds = parsed_number(text.substr(slash + 1));
  if (frames <= 0 || seconds <= 0) return {};
  return static_cast<double>(frames) / static_cast<double>(seconds);
}

class FfmpegDecoder : public VideoDecoder {
 public:
  FfmpegDecoder(const std::filesystem::path& path, int width, int height, std::vector<double> times)
      : frame_(height, width, CV_8UC3),
        times_(std::move(times)),
        // Every frame of the file once, regardless of time stamps, and without the rotation noted in it.
        ffmpeg_({"ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "file", "-noautorotate", "-i",
                 input_name(path), "-map", "0:v:0", "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt",
                 "bgr24", "pipe:1"}) {}

  bool advance() override {
    const std::size_t size = frame_.total() * frame_.elemSize();
    ++position_;
    return ffmpeg_.read(frame_.data, size) == size;
  }

  std::optional<double> time() const override {
    return position_ < std::ssize(times_) ? std::optional(times_[static_cast<std::size_t>(position_)])
                                          : std::nullopt;
  }

  bool retrieve(cv::Mat& frame) override {
    frame = frame_;
    return true;
  }

 private:
  cv::Mat frame_;
  std::vector<double> times_;
  std::ptrdiff_t position_ = -1;
  ChildProcess ffmpeg_;
};

}  // namespace

std::unique_ptr<VideoDecoder> decode_video_with_ffmpeg(const std::filesystem::path& path) {
  auto [properties, times] = probe(path);
  const std::int64_t width = parsed_number(properties["width"]), height = parsed_number(properties["height"]);
  if (width <= 0 || height <= 0 || width > kMaxPixels / height) return nullptr;
  auto decoder = std::make_unique<FfmpegDecoder>(path, static_cast<int>(width), static_cast<int>(height),
                                                 std::move(times));
  if (const std::int64_t count = parsed_number(properties["nb_frames"]); count > 0) decoder->count = count;
  decoder->frames_per_second = rate(properties["avg_frame_rate"]);
  return decoder;
}

}  // namespace dic::image

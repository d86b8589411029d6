#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
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

using Properties = std::map<std::string, std::string>;

/// The lines "name=value" about the first video stream; empty if ffprobe finds none.
Properties probe(const std::filesystem::path& path) {
  ChildProcess ffprobe({"ffprobe", "-v", "error", "-protocol_whitelist", "file", "-select_streams", "v:0",
                        "-show_entries", "stream=width,height,avg_frame_rate,nb_frames", "-of",
                        "default=noprint_wrappers=1", input_name(path)});
  std::string text(4096, '\0');
  text.resize(ffprobe.read(text.data(), text.size()));
  Properties properties;
  if (!ffprobe.succeeded()) return properties;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    if (const auto sign = line.find('='); sign != std::string::npos)
      properties.try_emplace(line.substr(0, sign), line.substr(sign + 1));
  }
  return properties;
}

/// Parses a number; 0 if the text is not a number ("N/A").
std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Parses a frame rate such as "30000/1001".
std::optional<double> rate(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return {};
  const std::int64_t frames = number(text.substr(0, slash)), seconds = number(text.substr(slash + 1));
  if (frames <= 0 || seconds <= 0) return {};
  return static_cast<double>(frames) / static_cast<double>(seconds);
}

class FfmpegDecoder : public VideoDecoder {
 public:
  FfmpegDecoder(const std::filesystem::path& path, int width, int height)
      : frame_(height, width, CV_8UC3),
        // Every frame of the file once, regardless of time stamps, and without the rotation noted in it.
        ffmpeg_({"ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "file", "-noautorotate", "-i",
                 input_name(path), "-map", "0:v:0", "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt",
                 "bgr24", "pipe:1"}) {}

  bool advance() override {
    const std::size_t size = frame_.total() * frame_.elemSize();
    return ffmpeg_.read(frame_.data, size) == size;
  }

  bool retrieve(cv::Mat& frame) override {
    frame = frame_;
    return true;
  }

 private:
  cv::Mat frame_;
  ChildProcess ffmpeg_;
};

}  // namespace

std::unique_ptr<VideoDecoder> decode_video_with_ffmpeg(const std::filesystem::path& path) {
  Properties properties = probe(path);
  const std::int64_t width = number(properties["width"]), height = number(properties["height"]);
  if (width <= 0 || height <= 0 || width > kMaxPixels / height) return nullptr;
  auto decoder = std::make_unique<FfmpegDecoder>(path, static_cast<int>(width), static_cast<int>(height));
  if (const std::int64_t count = number(properties["nb_frames"]); count > 0) decoder->count = count;
  decoder->frames_per_second = rate(properties["avg_frame_rate"]);
  return decoder;
}

}  // namespace dic::image

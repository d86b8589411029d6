/// Input: a request of a page to dic view: a line with the method and the path, then the body.
#include <unistd.h>

#include <cstdlib>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/synth.hpp>
#include <dic/track_files.hpp>
#include <string>

#include "commands.hpp"
#include "memory_file.hpp"
#include "view/session.hpp"

namespace dic::app {

const std::string& command_line() {
  static const std::string none;
  return none;
}

namespace {

/// A session with two small frames and their result, in a folder of its own.
Session& session() {
  static Session session = [] {
    std::string folder = (std::filesystem::temp_directory_path() / "fuzz_request_XXXXXX").string();
    if (!mkdtemp(folder.data()) || chdir(folder.c_str()) != 0) std::abort();
    SynthOptions speckle;
    speckle.size = {64, 64};
    speckle.motion.u = 0.4;
    speckle.threads = 1;
    TrackJob job;
    job.frames = {"0.png", "1.png"};
    for (const int k : {0, 1}) write_image(job.frames[k], synth_frame(speckle, k));
    job.options.refine.subset = 15;
    job.options.step = 12;
    job.options.threads = 1;
    job.pictures = Pictures::none;
    track_files(job);
    return Session({.frames = job.frames, .result = job.output, .settings = {}});
  }();
  return session;
}

int read_camera_request(const std::string& body) {
  AllowedFolders folders;
  folders.add(".");
  const Json asked = Json::parse(body, nullptr, false);
  if (!asked.is_object()) return 0;
  try {
    for (const CameraUse use : {CameraUse::look, CameraUse::measure}) camera_request(asked, folders, use);
  } catch (const Error&) {  // refused in a sentence
  } catch (const Json::exception&) {
  }
  return 0;
}

}  // namespace
}  // namespace dic::app

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string line = text.substr(0, text.find('\n'));
  const std::size_t space = std::min(line.find(' '), line.size());
  const dic::app::PageRequest request = {.method = line.substr(0, space),
                                         .path = line.substr(std::min(space + 1, line.size())),
                                         .body = text.substr(std::min(line.size() + 1, size))};
  // Measurements are not started: they would continue during the next input, with arbitrarily many threads
  // and points.
  if (request.method != "GET" && request.path.starts_with("api/run")) return 0;
  // Cameras are neither looked for nor opened: only requests about them are read.
  if (request.method == "GET" && request.path.starts_with("api/cameras")) return 0;
  if (request.method != "GET" && request.path.starts_with("api/camera"))
    return dic::app::read_camera_request(request.body);
  const dic::app::PageAnswer answer = dic::app::session().answer(request);
  dic::require(answer.status == 200 || answer.status == 400 || answer.status == 404);
  return 0;
}

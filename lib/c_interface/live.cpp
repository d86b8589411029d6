#include <dic/live.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "c_interface/objects.hpp"

using namespace dic;
using namespace dic::c_interface;

struct dic_live {
  LiveStream stream;
  LiveFrame frame = {};    ///< owns the line that was given last
  bool has_ended = false;  ///< the last line was given
};

namespace {

/// Reads lines as "fps=20".
LiveOptions live_options(const char* settings) {
  LiveOptions live;
  std::istringstream lines(&checked(settings, "settings"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos)
      throw UsageError("The line \"" + line + "\" is no setting: write name=value.");
    set_live_option(live, line.substr(0, equals), line.substr(equals + 1));
  }
  return live;
}

/// Puts the next line into `live`. Returns false after the last one.
bool advance(dic_live& live) {
  if (live.has_ended) return false;
  if (std::optional<LiveFrame> next = live.stream.next()) {
    live.frame = std::move(*next);
    return true;
  }
  live.has_ended = true;
  live.frame = {};
  live.frame.line = live.stream.finish().line;
  return true;
}

dic_result* result_of(const LiveFrame& frame) {
  if (!frame.field) return nullptr;
  FrameResult result;
  result.index = frame.number - 1;
  result.field = *frame.field;
  result.latency = frame.latency;
  return new dic_result{std::move(result)};
}

}  // namespace

dic_status dic_live_create(const dic_options* options, const char* settings, dic_live** live) {
  return guarded([&] {
    checked(live, "live") = nullptr;
    TrackJob job = job_of(options);
    job.pictures = Pictures::none;
    job.output.clear();
    *live = new dic_live{LiveStream(job, live_options(settings))};
  });
}

void dic_live_destroy(dic_live* live) { delete live; }

dic_status dic_live_next(dic_live* live, const char** line, dic_result** result) {
  return guarded([&] {
    const char*& text = checked(line, "line");
    text = nullptr;
    if (result) *result = nullptr;
    dic_live& self = checked(live, "live");
    if (!advance(self)) return;
    if (result) *result = result_of(self.frame);
    text = self.frame.line.c_str();
  });
}

dic_status dic_live_stop(dic_live* live) {
  return guarded([&] { checked(live, "live").stream.stop(); });
}

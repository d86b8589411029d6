#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dic/live.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "interruptible.hpp"
#include "options.hpp"

namespace dic::python {
namespace {

/// A LiveStream whose lines and fields are taken by one thread.
class Live {
 public:
  Live(const OptionValues& options, const OptionValues& settings, const std::optional<Array>& roi,
       const std::string& output) {
    TrackJob job = job_with(options, roi);
    job.pictures = Pictures::none;
    job.output = output;
    LiveOptions live;
    for (const auto& [name, value] : settings) set_live_option(live, name, value);
    stream_ = interruptible([&](const std::stop_token&) { return std::make_unique<LiveStream>(job, live); });
  }
  ~Live() {
    const nb::gil_scoped_release others_run;
    stream_.reset();
  }
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  /// The next line, and the result if it is that of a frame.
  std::optional<std::pair<std::string, std::optional<FrameResult>>> next() {
    auto frame = interruptible([&](const std::stop_token& stop) {
      const std::stop_callback end(stop, [&] { stream_->stop(); });
      return stream_->next();
    });
    if (!frame) return {};
    std::optional<FrameResult> result;
    if (frame->event.empty()) {
      result.emplace();
      result->index = frame->number - 1;
      if (frame->field) result->field = *frame->field;
      result->latency = frame->latency;
      result->error = frame->error;
    }
    return std::pair(std::move(frame->line), std::move(result));
  }
  std::string finish() {
    return interruptible([&](const std::stop_token&) { return stream_->finish().line; });
  }
  void stop() { stream_->stop(); }
  int tcp_port() const { return stream_->tcp_port(); }

 private:
  std::unique_ptr<LiveStream> stream_;
};

std::vector<std::vector<std::string>> cameras() {
  const CameraList list = interruptible([](const std::stop_token&) { return list_cameras(); });
  std::vector<std::vector<std::string>> rows;
  for (const CameraInfo& camera : list.cameras)
    rows.push_back({camera.id, camera.address, camera.protocol, camera.vendor, camera.model, camera.serial});
  return rows;
}

}  // namespace

void add_live(nb::module_& module) {
  using namespace nb::literals;
  module.def("live_options", &live_option_names, "Names of the options of a live measurement.");
  module.def("cameras", &cameras, "The cameras: id, address, protocol, vendor, model and serial of each.");
  nb::class_<Live>(module, "LiveStream")
      .def(nb::init<const OptionValues&, const OptionValues&, const std::optional<Array>&,
                    const std::string&>(),
           "options"_a, "settings"_a, "roi"_a.none(), "output"_a)
      .def("next", &Live::next, "The next line of JSON, with the result of a frame; None after the end.")
      .def("finish", &Live::finish, "Stops, and returns the last line of JSON.")
      .def("stop", &Live::stop, "Ends the measurement.")
      .def_prop_ro("tcp_port", &Live::tcp_port, "Port on which programs get every line; 0 = none.");
}

}  // namespace dic::python

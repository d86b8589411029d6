#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <dic/error.hpp>
#include <dic/track_stream.hpp>
#include <memory>
#include <thread>
#include <type_traits>

#include "bindings.hpp"
#include "interruptible.hpp"
#include "options.hpp"

namespace dic::python {

namespace {

/// A TrackStream whose callback is a Python function. Its threads need the GIL for the callback, so that it
/// is given up wherever this object waits for them.
class Stream {
 public:
  Stream(const Array& reference, const OptionValues& options, const std::optional<Array>& roi,
         const nb::object& callback, int capacity)
      : callback_(callback) {
    const TrackJob job = job_for(reference, options, roi);
    roi_ = job.roi;
    memory_ = memory_for(job.options.device);
    const ImageView image = view_of(reference, memory_);
    TrackStream::Callback deliver;
    if (!callback.is_none()) deliver = [this](FrameResult result) { call(std::move(result)); };
    stream_ = interruptible([&](const std::stop_token&) {
      return std::make_unique<TrackStream>(job.options, image, job.roi, deliver, capacity);
    });
  }
  ~Stream() {
    const nb::gil_scoped_release others_run;
    stream_.reset();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::int64_t push(const Array& frame) {
    // Room comes only when results are taken, perhaps never: Ctrl-C must end the waiting.
    for (;;) {
      if (const auto index = try_push(frame)) return *index;
      {
        const nb::gil_scoped_release others_run;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }
  std::optional<std::int64_t> try_push(const Array& frame) {
    const ImageView image = view_of(frame, memory_for(stream_->device()));
    return run([&] { return stream_->try_push(image); });
  }
  std::optional<FrameResult> poll() {
    return run([&] { return stream_->poll(); });
  }
  std::optional<FrameResult> wait() {
    if (auto result = poll()) return result;
    return run_long([&] { return stream_->wait(); });
  }
  void finish() {
    run_long([&] {
      stream_->finish();
      return true;
    });
  }
  void cancel() { stream_->cancel(); }
  void reset(const Array& reference, const std::optional<Array>& roi) {
    if (roi) {
      roi_ = {};
      roi_.mask = copy_of(view_of(*roi));
    }
    const ImageView image = view_of(reference, memory_);
    run([&] {
      stream_->reset(image, roi_);
      return true;
    });
    raised_.reset();
  }
  TrackStream& stream() { return *stream_; }
  OptionValues options() const {
    TrackJob job;
    job.options = stream_->options();
    return values_of(job);
  }

 private:
  void call(FrameResult result) {
    const nb::gil_scoped_acquire python;
    try {
      callback_(nb::cast(std::move(result)));
    } catch (nb::python_error& error) {
      raised_ = std::make_unique<nb::python_error>(error);
      throw Error("The callback of the stream raised an exception.");
    }
  }

  /// Calls that end soon, or when the callback does.
  template <typename Work>
  std::invoke_result_t<Work&> run(Work&& work) {
    try {
      const nb::gil_scoped_release others_run;
      return work();
    } catch (const std::exception&) {
      throw_what_was_raised();
      throw;
    }
  }
  /// Calls that wait for frames: Ctrl-C drops them.
  template <typename Work>
  std::invoke_result_t<Work&> run_long(Work&& work) {
    try {
      return interruptible([&](const std::stop_token& stop) {
        const std::stop_callback drop(stop, [&] { stream_->cancel(); });
        return work();
      });
    } catch (const nb::python_error&) {
      throw;
    } catch (const std::exception&) {
      throw_what_was_raised();
      throw;
    }
  }
  void throw_what_was_raised() {
    if (!raised_) return;
    const std::unique_ptr<nb::python_error> once =
        std::move(raised_);  // the exception may refer to this stream
    throw nb::python_error(*once);
  }

  Roi roi_;
  Memory memory_;  ///< memory that a reference may lie in
  nb::object callback_;
  std::unique_ptr<nb::python_error> raised_;  // exception that the callback raised
  std::unique_ptr<TrackStream> stream_;
};

template <auto member>
auto of_stream() {
  return [](Stream& self) { return (self.stream().*member)(); };
}

}  // namespace

void add_stream(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Stream>(module, "TrackStream")
      .def(nb::init<const Array&, const OptionValues&, const std::optional<Array>&, const nb::object&, int>(),
           "reference"_a, "options"_a = OptionValues(), "roi"_a = nb::none(), "callback"_a = nb::none(),
           "capacity"_a = 4)
      .def("push", &Stream::push, "frame"_a,
           "Copies the next frame, an array [y, x], and returns its index, as soon as fewer than `capacity` "
           "frames are inside.")
      .def("try_push", &Stream::try_push, "frame"_a,
           "Pushes like `push`, but returns None at once if `capacity` frames are inside; the frame is then "
           "not "
           "taken.")
      .def("poll", &Stream::poll, "The next result, if it is there; else None.")
      .def("wait", &Stream::wait, "Waits for the next result; None where no frame is inside.")
      .def("finish", &Stream::finish,
           "Waits until every frame was measured, and every result given to the callback.")
      .def("cancel", &Stream::cancel, "Drops the frames that are not measured yet: they yield no result.")
      .def(
          "reset", &Stream::reset, "reference"_a, "roi"_a = nb::none(),
          "The next experiment: drops what is inside and begins with another reference and the same options. "
          "The region of interest stays if no `roi` is given.")
      .def_prop_ro(
          "grid", [](Stream& self) -> const Grid& { return self.stream().grid(); },
          nb::rv_policy::reference_internal, "The points.")
      .def_prop_ro("device", of_stream<&TrackStream::device>(), "'cpu', or number and name of the GPU.")
      .def_prop_ro("device_reason", of_stream<&TrackStream::device_reason>(),
                   "Why the device was chosen, one sentence.")
      .def_prop_ro("kernels", of_stream<&TrackStream::kernels>(),
                   "Variants of the correlation and SIMD targets that ran.")
      .def_prop_ro("options", &Stream::options,
                   "All options by name as text, with what was chosen from the reference.")
      .def_prop_ro("prepare_seconds", of_stream<&TrackStream::prepare_seconds>(),
                   "Time that preparing the reference took, seconds.");
}

}  // namespace dic::python

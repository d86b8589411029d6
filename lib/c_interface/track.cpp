#include <dic/track_stream.hpp>
#include <optional>

#include "c_interface/objects.hpp"

using namespace dic;
using namespace dic::c_interface;

struct dic_stream {
  Roi roi;
  TrackStream stream;
};

namespace {

dic_result* owned(FrameResult result) { return new dic_result{std::move(result)}; }

dic_result* owned(std::optional<FrameResult> result) { return result ? owned(std::move(*result)) : nullptr; }

}  // namespace

dic_status dic_track_pair(const dic_options* options, const void* reference, const void* current,
                          dic_scalar type, std::int32_t width, std::int32_t height, std::int64_t row_bytes,
                          dic_result** result) {
  return guarded([&] {
    checked(result, "result") = nullptr;
    const TrackJob& job = job_of(options);
    Tracker tracker(job.options, view_of(reference, type, width, height, row_bytes), job.roi);
    *result = owned(tracker.track(view_of(current, type, width, height, row_bytes)));
  });
}

dic_status dic_stream_create(const dic_options* options, const void* reference, dic_scalar type,
                             std::int32_t width, std::int32_t height, std::int64_t row_bytes,
                             std::int32_t capacity, dic_stream** stream) {
  return guarded([&] {
    checked(stream, "stream") = nullptr;
    const TrackJob& job = job_of(options);
    const ImageView image = view_of(reference, type, width, height, row_bytes);
    *stream = new dic_stream{job.roi, TrackStream(job.options, image, job.roi, {}, capacity)};
  });
}

void dic_stream_destroy(dic_stream* stream) { delete stream; }

dic_status dic_stream_push(dic_stream* stream, const void* frame, dic_scalar type, std::int32_t width,
                           std::int32_t height, std::int64_t row_bytes, std::int64_t* index) {
  return guarded([&] {
    const std::int64_t number =
        checked(stream, "stream").stream.push(view_of(frame, type, width, height, row_bytes));
    if (index) *index = number;
  });
}

dic_status dic_stream_poll(dic_stream* stream, dic_result** result) {
  return guarded([&] {
    dic_result*& out = checked(result, "result");  // checked before a result is taken
    out = owned(checked(stream, "stream").stream.poll());
  });
}

dic_status dic_stream_wait(dic_stream* stream, dic_result** result) {
  return guarded([&] {
    dic_result*& out = checked(result, "result");  // checked before a result is taken
    out = owned(checked(stream, "stream").stream.wait());
  });
}

dic_status dic_stream_cancel(dic_stream* stream) {
  return guarded([&] { checked(stream, "stream").stream.cancel(); });
}

dic_status dic_stream_reset(dic_stream* stream, const void* reference, dic_scalar type, std::int32_t width,
                            std::int32_t height, std::int64_t row_bytes) {
  return guarded([&] {
    dic_stream& self = checked(stream, "stream");
    self.stream.reset(view_of(reference, type, width, height, row_bytes), self.roi);
  });
}

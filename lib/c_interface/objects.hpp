#pragma once

#include <dic/dic.h>

#include <dic/track_files.hpp>
#include <memory>

#include "c_interface/guard.hpp"

struct dic_options {
  dic::TrackJob job;
};

struct dic_result {
  dic::FrameResult result;
};

namespace dic::c_interface {

/// A view of pixels that the caller owns. row_bytes: 0 = rows without padding. Throws UsageError.
inline ImageView view_of(const void* data, dic_scalar type, std::int32_t width, std::int32_t height,
                         std::int64_t row_bytes) {
  if (type < DIC_U8 || type > DIC_F64) throw UsageError("The type of pixels is one of DIC_U8 to DIC_F64.");
  const auto scalar = static_cast<ScalarType>(type);
  const auto packed = static_cast<std::ptrdiff_t>(size_of(scalar)) * width;
  return ImageView::of(data, scalar, {width, height}, row_bytes == 0 ? packed : row_bytes);
}

/// The job that the options describe; the defaults if `options` is NULL.
inline const TrackJob& job_of(const dic_options* options) {
  static const TrackJob defaults;
  return options ? options->job : defaults;
}

}  // namespace dic::c_interface

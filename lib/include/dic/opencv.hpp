#pragma once

#include <cstdint>
#include <dic/error.hpp>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <opencv2/core.hpp>
#include <string>

/// Conversions between cv::Mat and images or fields, in place: nothing is copied, and views must not outlive
/// the owner of the pixels. Meant for programs that use OpenCV themselves; no other header of dic includes
/// this one.
namespace dic {

/// A view of a two-dimensional grey matrix of type CV_8UC1, CV_16UC1, CV_32SC1, CV_32FC1 or CV_64FC1.
/// bit_depth: see ImageView. Throws UsageError for other types, including colour: convert with cv::cvtColor
/// first.
inline ImageView as_view(const cv::Mat& image, int bit_depth = 0) {
  if (image.dims > 2)
    throw UsageError("An image has two dimensions, not " + std::to_string(image.dims) + ".");
  const auto view = [&](ScalarType type) {
    return ImageView::of(image.data, type, {image.cols, image.rows},
                         static_cast<std::ptrdiff_t>(image.step[0]), bit_depth);
  };
  switch (image.type()) {
    case CV_8UC1:
      return view(ScalarType::u8);
    case CV_16UC1:
      return view(ScalarType::u16);
    case CV_32SC1:
      return view(ScalarType::i32);
    case CV_32FC1:
      return view(ScalarType::f32);
    case CV_64FC1:
      return view(ScalarType::f64);
    default:
      throw UsageError("dic takes grey images of type 8U, 16U, 32S, 32F or 64F, not " +
                       cv::typeToString(image.type()) + ": convert it with cv::cvtColor or convertTo.");
  }
}

/// The matrix type in OpenCV: CV_8UC1, ...
inline int cv_type(ScalarType type) {
  constexpr int types[] = {CV_8UC1, CV_16UC1, CV_32SC1, CV_32FC1, CV_64FC1};
  return types[static_cast<int>(type)];
}

/// The pixels of a view as a read-only matrix: OpenCV has no const matrices, so do not write to it. Throws
/// UsageError for rows that run upwards or overlap.
inline cv::Mat as_mat(ImageView view) {
  if (view.empty()) return {};
  const auto least = static_cast<std::ptrdiff_t>(view.width * size_of(view.type));
  if (view.row_bytes < least && view.height > 1)
    throw UsageError("cv::Mat needs rows that lie one after the other: copy_of(view) has them.");
  const auto step = static_cast<std::size_t>(view.height > 1 ? view.row_bytes : least);
  return {view.height, view.width, cv_type(view.type), const_cast<void*>(view.data), step};
}

/// The pixels of an image as a matrix to read and write. The image keeps owning them.
inline cv::Mat as_mat(Image& image) { return as_mat(image.view()); }

/// The values of a grid's nodes as a read-only matrix [ny x nx]: as_mat(field.grid(), field.u). Status is
/// CV_8UC1, iterations CV_16SC1. Throws UsageError if there is not one value for each node, for example if
/// the strain was not computed.
template <typename T>
cv::Mat as_mat(const Grid& grid, const NodeValues<T>& values) {
  if (static_cast<std::int64_t>(values.size()) != grid.nodes())
    throw UsageError("There are " + std::to_string(values.size()) + " values for " +
                     std::to_string(grid.nodes()) + " nodes of the grid.");
  constexpr int depth = sizeof(T) == 1 ? CV_8U : sizeof(T) == 2 ? CV_16S : sizeof(T) == 4 ? CV_32F : CV_64F;
  return {grid.ny, grid.nx, CV_MAKETYPE(depth, 1), const_cast<T*>(values.data())};
}

}  // namespace dic

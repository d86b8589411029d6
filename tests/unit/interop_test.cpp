#include <gtest/gtest.h>

#include <cmath>
#include <dic/eigen.hpp>
#include <dic/error.hpp>
#include <dic/opencv.hpp>
#include <vector>

// Tests the opt-in headers: OpenCV images as input, fields as OpenCV and Eigen matrices.
namespace dic {
namespace {

/// 3 x 2 nodes; u of node (i, j) is 10 j + i.
Field sample_field() {
  Field field(Grid{.x0 = 5, .y0 = 6, .step = 4, .nx = 3, .ny = 2, .inside = {1, 1, 1, 1, 1, 1}});
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 3; ++i) {
      field.u[j * 3 + i] = 10 * j + i;
      field.zncc[j * 3 + i] = 0.5f + 0.1f * static_cast<float>(i);
      field.iterations[j * 3 + i] = static_cast<std::int16_t>(-j);
    }
  field.status[4] = Status::outlier;
  return field;
}

template <typename T>
void expect_elements_in_place(ScalarType type) {
  cv::Mat whole(9, 11, cv::DataType<T>::type);
  for (int y = 0; y < whole.rows; ++y)
    for (int x = 0; x < whole.cols; ++x) whole.at<T>(y, x) = static_cast<T>(16 * y + x);
  const cv::Mat part = whole(cv::Rect(2, 3, 5, 4));  // a part, whose rows are padded by the rest of the image
  const ImageView view = as_view(part);
  EXPECT_EQ(view.type, type);
  EXPECT_EQ(view.size(), (Size{.width = 5, .height = 4}));
  EXPECT_EQ(view.row<T>(0), whole.ptr<T>(3) + 2) << "in place";
  EXPECT_EQ(view.row<T>(3)[4], static_cast<T>(16 * 6 + 6));
  const cv::Mat back = as_mat(view);
  EXPECT_EQ(back.type(), part.type());
  EXPECT_EQ(back.data, part.data);
  EXPECT_EQ(back.at<T>(3, 4), static_cast<T>(16 * 6 + 6));
}

TEST(OpenCv, GreyMatricesAreViewedInPlace) {
  expect_elements_in_place<std::uint8_t>(ScalarType::u8);
  expect_elements_in_place<std::uint16_t>(ScalarType::u16);
  expect_elements_in_place<std::int32_t>(ScalarType::i32);
  expect_elements_in_place<float>(ScalarType::f32);
  expect_elements_in_place<double>(ScalarType::f64);
}

TEST(OpenCv, OtherMatricesAreUsageErrors) {
  EXPECT_THROW(as_view(cv::Mat(4, 4, CV_8UC3)), UsageError);
  EXPECT_THROW(as_view(cv::Mat(4, 4, CV_8SC1)), UsageError);
  EXPECT_THROW(as_view(cv::Mat({4, 4, 4}, CV_8UC1)), UsageError);
  EXPECT_THROW(as_view(cv::Mat(4, 4, CV_8UC1), 9), UsageError);
  EXPECT_EQ(as_view(cv::Mat(4, 4, CV_16UC1), 12).bit_depth, 12);
  EXPECT_TRUE(as_view(cv::Mat()).empty());
}

TEST(OpenCv, ImagesCanBeWritten) {
  Image image({4, 3}, ScalarType::u16);
  as_mat(image).at<std::uint16_t>(2, 1) = 777;
  EXPECT_EQ(image.row<std::uint16_t>(2)[1], 777);
  EXPECT_TRUE(as_mat(ImageView{}).empty());
  const ImageView upwards = ImageView::of(image.row<std::uint16_t>(2), {4, 3}, -8);
  EXPECT_THROW(as_mat(upwards), UsageError);
}

TEST(OpenCv, FieldsAreMatrices) {
  const Field field = sample_field();
  const cv::Mat u = as_mat(field.grid(), field.u), zncc = as_mat(field.grid(), field.zncc);
  ASSERT_EQ(u.type(), CV_64FC1);
  EXPECT_EQ(u.size(), cv::Size(3, 2));
  EXPECT_EQ(u.at<double>(1, 2), 12);
  ASSERT_EQ(zncc.type(), CV_32FC1);
  EXPECT_EQ(zncc.at<float>(0, 1), 0.6f);
  EXPECT_EQ(as_mat(field.grid(), field.status).at<std::uint8_t>(1, 1), 7) << "outlier";
  EXPECT_EQ(as_mat(field.grid(), field.iterations).at<std::int16_t>(1, 0), -1);
  EXPECT_THROW(as_mat(field.grid(), field.strain.exx), UsageError) << "not computed";
}

TEST(EigenMaps, FieldsAreArrays) {
  Field field = sample_field();
  const auto u = as_eigen(field.grid(), std::as_const(field).u);
  ASSERT_EQ(u.rows(), 2);
  ASSERT_EQ(u.cols(), 3);
  EXPECT_EQ(u(1, 2), 12);
  EXPECT_EQ(u.sum(), 0 + 1 + 2 + 10 + 11 + 12);
  as_eigen(field.grid(), field.u).row(1) *= 2;
  EXPECT_EQ(field.u[5], 24);
  EXPECT_EQ(field.u[2], 2);
  EXPECT_THROW(as_eigen(field.grid(), field.strain.e1), UsageError) << "not computed";
}

}  // namespace
}  // namespace dic

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

#include "image/opencv/quiet.hpp"
#include "support/image_files.hpp"

// Tests that written images are read back unchanged, and that a failure keeps the old file.
namespace dic {
namespace {

using namespace test;

namespace fs = std::filesystem;

TEST_F(WriteImage, IsReadBackAsItWas) {
  const cv::Mat grey8 = random_image(CV_8UC1), grey16 = random_image(CV_16UC1);
  cv::Mat real(37, 53, CV_32FC1);
  cv::randu(real, -1, 1);
  // cuts off the left column, so that rows are padded
  const auto view = [](const cv::Mat& m, ScalarType type) {
    return ImageView{
        m.ptr() + m.elemSize(), type, m.cols - 1, m.rows, static_cast<std::ptrdiff_t>(m.step), 0};
  };
  const auto cropped = [](const cv::Mat& m) { return m.colRange(1, m.cols); };
  for (const char* name : {"a.png", "a.TIF", "a.bmp", "a.pgm"}) {
    write_image(at(name), view(grey8, ScalarType::u8));
    expect_same<std::uint8_t>(read_image(at(name)), cropped(grey8), ScalarType::u8);
  }
  for (const char* name : {"b.png", "b.tif", "b.pgm"}) {
    write_image(at(name), view(grey16, ScalarType::u16));
    expect_same<std::uint16_t>(read_image(at(name)), cropped(grey16), ScalarType::u16);
  }
  // A depth that leaves bits unused is kept: saturation is judged by it.
  Image twelve({3, 2}, ScalarType::u16, 12);
  twelve.row<std::uint16_t>(1)[2] = 4095;
  write_image(at("twelve.pgm"), twelve);
  EXPECT_EQ(read_image(at("twelve.pgm")).bit_depth(), 12);
  EXPECT_EQ(read_image(at("twelve.pgm")).row<std::uint16_t>(1)[2], 4095);
  EXPECT_EQ(cv::imread(at("twelve.pgm").string(), cv::IMREAD_UNCHANGED).at<std::uint16_t>(1, 2), 4095);
  write_image(at("c.tif"), view(real, ScalarType::f32));
  expect_same<float>(read_image(at("c.tif")), cropped(real), ScalarType::f32);
}

/// Reads a PNG of the library with libpng.
TEST_F(WriteImage, PngIsWhatOthersRead) {
  for (const int type : {CV_8UC1, CV_16UC1, CV_8UC3})
    for (const cv::Size size : {cv::Size(1, 1), cv::Size(1, 70), cv::Size(70, 1), cv::Size(53, 37)})
      for (const bool smooth : {false, true}) {
        cv::Mat image = random_image(type);
        cv::resize(smooth ? image.colRange(0, 1) : image, image,
                   size);  // a single column, in which PNG filters see rows like the one above
        const ScalarType scalar = image.depth() == CV_16U ? ScalarType::u16 : ScalarType::u8;
        if (image.channels() == 3)
          write_image(at("a.png"), RgbView{image.data, image.cols, image.rows});
        else
          write_image(at("a.png"), ImageView{image.data, scalar, image.cols, image.rows,
                                             static_cast<std::ptrdiff_t>(image.step), 0});
        cv::Mat read = cv::imread(at("a.png").string(), cv::IMREAD_UNCHANGED);
        if (image.channels() == 3) cv::cvtColor(read, read, cv::COLOR_BGR2RGB);
        ASSERT_EQ(read.type(), type);
        EXPECT_EQ(cv::norm(read, image, cv::NORM_INF), 0) << size;
      }
}

TEST_F(WriteImage, KeepsTheOrderOfColours) {
  const std::uint8_t rgb[] = {255, 0, 0, 1, 2, 3};
  write_image(at("a.png"), RgbView{rgb, 2, 1});
  const cv::Mat bgr = cv::imread(at("a.png").string());
  EXPECT_EQ(bgr.at<cv::Vec3b>(0, 0), cv::Vec3b(0, 0, 255));
  EXPECT_EQ(bgr.at<cv::Vec3b>(0, 1), cv::Vec3b(3, 2, 1));
}

/// Each row is requested once, from the top, regardless of the format.
TEST_F(WriteImage, ByRowsIsReadBackAsItWas) {
  const cv::Mat image = random_image(CV_8UC3);
  for (const char* name : {"a.png", "a.tif", "a.bmp"}) {
    int asked = 0;
    write_image(at(name), RgbRows{{image.cols, image.rows}, [&](int y, std::span<std::uint8_t> rgb) {
                                    EXPECT_EQ(y, asked++);
                                    ASSERT_EQ(std::ssize(rgb), 3 * image.cols);
                                    std::copy_n(image.ptr(y), rgb.size(), rgb.begin());
                                  }});
    EXPECT_EQ(asked, image.rows);
    cv::Mat read = cv::imread(at(name).string(), cv::IMREAD_UNCHANGED);
    cv::cvtColor(read, read, cv::COLOR_BGR2RGB);
    EXPECT_EQ(cv::norm(read, image, cv::NORM_INF), 0) << name;
  }
  EXPECT_THROW(write_image(at("b.png"), RgbRows{{4, 4}, nullptr}), UsageError);
  EXPECT_THROW(write_image(at("b.png"), RgbRows{{-4, 4}, [](int, std::span<std::uint8_t>) {}}), UsageError);
  EXPECT_FALSE(fs::exists(at("b.png")));
}

TEST_F(WriteImage, RefusesWhatTheFormatCannotHold) {
  const Image deep({4, 4}, ScalarType::u16), real({4, 4}, ScalarType::f32), whole({4, 4}, ScalarType::i32);
  EXPECT_THROW(write_image(at("a.bmp"), deep), UsageError);
  EXPECT_THROW(write_image(at("a.jpg"), deep), UsageError);
  EXPECT_THROW(write_image(at("a"), deep), UsageError);
  EXPECT_THROW(write_image(at("a.png"), real), UsageError);
  EXPECT_THROW(write_image(at("a.tif"), whole), UsageError);
  EXPECT_THROW(write_image(at("a.png"), Image()), UsageError);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(WriteImage, LeavesTheOldFileWholeWhenTheDiskIsFull) {
  const cv::Mat old = random_image(CV_8UC1);
  put("a.png", old);
  const Image large({400, 400}, ScalarType::u8);
  // A limit on file sizes makes writing fail in the middle, as on a full disk.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = file_error([&] { write_image(at("a.bmp"), large); });
  const std::string second = file_error([&] { write_image(at("b.bmp"), large); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(message.find("cannot be written"), std::string::npos) << message;
  EXPECT_NE(second.find("b.bmp"), std::string::npos) << second;
  expect_same<std::uint8_t>(read_image(at("a.png")), old, ScalarType::u8);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "nothing half written is left";
}

TEST_F(WriteImage, SaysThatRightsAreMissing) {
  const Image image({4, 4}, ScalarType::u8);
  {
    const AsNobody nobody;
    EXPECT_NE(file_error([&] { write_image(at("a.png"), image); }).find("Permission denied"),
              std::string::npos);
  }
  EXPECT_NE(file_error([&] { write_image(at("missing folder") / "a.png", image); }), "");
}

}  // namespace
}  // namespace dic

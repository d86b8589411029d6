#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <fstream>
#include <functional>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/videoio.hpp>
#include <stdexcept>

#include "image/opencv/quiet.hpp"

namespace dic::test {

namespace fs = std::filesystem;

using Bytes = std::string;

/// Gives every test its own folder, which is removed afterwards.
class Files : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::temp_directory_path() / (std::string("dic image ") + info->name() + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path at(const std::string& name) const { return folder_ / name; }
  fs::path put(const std::string& name, const Bytes& bytes) const {
    std::ofstream(at(name), std::ios::binary) << bytes;
    return at(name);
  }
  Bytes get(const std::string& name) const {
    std::ifstream file(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path put(const std::string& name, const cv::Mat& image) const {
    EXPECT_TRUE(cv::imwrite(at(name).string(), image));
    return at(name);
  }
  std::vector<std::string> names(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all;
    for (const auto& path : expand_frames(arguments)) all.push_back(path.filename().string());
    return all;
  }

  fs::path folder_;
};
using ReadImage = Files;
using WriteImage = Files;
using Frames = Files;

/// The message of the FileError that `call` throws; empty if it throws none.
inline std::string file_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.what();
  }
  return {};
}

inline cv::Mat random_image(int type, int height = 37, int width = 53) {
  cv::Mat image(height, width, type);
  cv::randu(image, 0, CV_MAT_DEPTH(type) == CV_8U ? 256 : 65536);
  return image;
}

template <typename T>
void expect_pixels(const Image& image, const std::function<T(int x, int y)>& truth) {
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      ASSERT_EQ(image.row<T>(y)[x], truth(x, y)) << "x=" << x << " y=" << y;
}

template <typename T>
void expect_same(const Image& image, const cv::Mat& truth, ScalarType type) {
  ASSERT_EQ(image.type(), type);
  ASSERT_EQ(image.width(), truth.cols);
  ASSERT_EQ(image.height(), truth.rows);
  expect_pixels<T>(image, [&](int x, int y) { return truth.at<T>(y, x); });
}

/// Makes the process run as a user without rights while the object exists, because root may read and write
/// anywhere.
class AsNobody {
 public:
  AsNobody() : user_(geteuid()) {
    if (user_ == 0 && seteuid(65534) != 0) throw std::runtime_error("cannot become another user");
  }
  ~AsNobody() { EXPECT_EQ(seteuid(user_), 0); }

 private:
  uid_t user_;
};

}  // namespace dic::test

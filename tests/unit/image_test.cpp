#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/videoio.hpp>
#include <random>
#include <stdexcept>
#include <thread>

#include "image/quiet.hpp"

namespace dic {
namespace {

namespace fs = std::filesystem;
using Bytes = std::string;

/// A folder of its own for every test, removed behind it.
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
std::string file_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.what();
  }
  return {};
}

cv::Mat random_image(int type, int height = 37, int width = 53) {
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

/// Y of the documented rule, by another route than the product's integers.
double grey_rule(double r, double g, double b) { return 0.299 * r + 0.587 * g + 0.114 * b; }

/// A little-endian TIFF of one uncompressed block per entry of `blocks`, with tags as given.
struct TiffTag {
  std::uint16_t name;
  std::uint16_t type;  // 3: 16 bit, 4: 32 bit
  std::vector<std::uint32_t> values;
};

Bytes little_endian(std::uint32_t value, int bytes) {
  Bytes text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 255);
  return text;
}

Bytes tiff(std::vector<TiffTag> tags, const std::vector<Bytes>& blocks, bool tiled = false) {
  Bytes data;
  TiffTag offsets{static_cast<std::uint16_t>(tiled ? 324 : 273), 4, {}};
  TiffTag counts{static_cast<std::uint16_t>(tiled ? 325 : 279), 4, {}};
  for (const auto& block : blocks) {
    offsets.values.push_back(static_cast<std::uint32_t>(8 + data.size()));
    counts.values.push_back(static_cast<std::uint32_t>(block.size()));
    data += block;
  }
  tags.push_back(offsets);
  tags.push_back(counts);
  std::sort(tags.begin(), tags.end(), [](auto& a, auto& b) { return a.name < b.name; });
  Bytes directory = little_endian(static_cast<std::uint32_t>(tags.size()), 2);
  for (const auto& tag : tags) {
    const int size = tag.type == 3 ? 2 : 4;
    Bytes values;
    for (auto value : tag.values) values += little_endian(value, size);
    directory += little_endian(tag.name, 2) + little_endian(tag.type, 2) +
                 little_endian(static_cast<std::uint32_t>(tag.values.size()), 4);
    if (values.size() > 4) {
      directory += little_endian(static_cast<std::uint32_t>(8 + data.size()), 4);
      data += values;
    } else {
      values.resize(4);
      directory += values;
    }
  }
  return Bytes("II*\0", 4) + little_endian(static_cast<std::uint32_t>(8 + data.size()), 4) + data +
         directory + Bytes(4, '\0');
}

/// Tags of an image: size, bits of one sample, photometric interpretation, samples.
std::vector<TiffTag> tiff_tags(int width, int height, int bits, int photometric, int samples = 1) {
  const auto u = [](int v) { return static_cast<std::uint32_t>(v); };
  return {{256, 3, {u(width)}},
          {257, 3, {u(height)}},
          {258, 3, std::vector<std::uint32_t>(samples, u(bits))},
          {262, 3, {u(photometric)}},
          {277, 3, {u(samples)}},
          {278, 3, {u(height)}}};
}

TEST_F(ReadImage, KeepsGreyValuesOf8And16Bits) {
  const cv::Mat grey8 = random_image(CV_8UC1), grey16 = random_image(CV_16UC1);
  for (const char* name : {"a.png", "a.tif", "a.bmp", "a.pgm"})
    expect_same<std::uint8_t>(read_image(put(name, grey8)), grey8, ScalarType::u8);
  for (const char* name : {"a.png", "a.tif", "a.pgm"})
    expect_same<std::uint16_t>(read_image(put(name, grey16)), grey16, ScalarType::u16);
}

TEST_F(ReadImage, KeepsFloatsAndNarrowsDoubles) {
  cv::Mat image(7, 9, CV_32FC1);
  cv::randu(image, -100, 100);
  expect_same<float>(read_image(put("a.tif", image)), image, ScalarType::f32);
  cv::Mat wide;
  image.convertTo(wide, CV_64F);
  expect_same<float>(read_image(put("b.tif", wide)), image, ScalarType::f32);
}

TEST_F(ReadImage, FindsTheFormatInTheFileNotInItsName) {
  const cv::Mat grey = random_image(CV_8UC1);
  fs::rename(put("a.png", grey), at("a.tif"));
  expect_same<std::uint8_t>(read_image(at("a.tif")), grey, ScalarType::u8);
}

TEST_F(ReadImage, TakesNamesWithSpacesAndOtherAlphabets) {
  const cv::Mat grey = random_image(CV_8UC1);
  for (const char* name : {"img 1 .png", "Prüfkörper é.tif", "試料.bmp", "образец.jpg"}) {
    const Image image = read_image(put(name, grey));
    EXPECT_EQ(image.width(), grey.cols) << name;
  }
}

template <typename T, typename Pixel>
void expect_rule(const Image& image, const cv::Mat& colour) {
  ASSERT_EQ(image.width(), colour.cols);
  for (int y = 0; y < colour.rows; ++y)
    for (int x = 0; x < colour.cols; ++x) {
      const auto& bgr = colour.at<Pixel>(y, x);
      ASSERT_NEAR(image.row<T>(y)[x], grey_rule(bgr[2], bgr[1], bgr[0]), 0.5 + 1e-6)
          << "x=" << x << " y=" << y;
    }
}

TEST_F(ReadImage, TurnsColourIntoGreyByTheRule) {
  const cv::Mat colour8 = random_image(CV_8UC3), colour16 = random_image(CV_16UC4);
  for (const char* name : {"a.png", "a.tif", "a.bmp"})
    expect_rule<std::uint8_t, cv::Vec3b>(read_image(put(name, colour8)), colour8);
  for (const char* name : {"b.png", "b.tif"})
    expect_rule<std::uint16_t, cv::Vec4w>(read_image(put(name, colour16)), colour16);
}

TEST_F(ReadImage, KeepsTheValueOfEqualChannels) {
  cv::Mat colour(256, 256, CV_16UC3);
  for (int i = 0; i < 65536; ++i) {
    const auto v = static_cast<std::uint16_t>(i);
    colour.at<cv::Vec3w>(i / 256, i % 256) = {v, v, v};
  }
  expect_pixels<std::uint16_t>(read_image(put("a.png", colour)), [](int x, int y) { return y * 256 + x; });
}

TEST_F(ReadImage, TakesTheLumaOfAJpeg) {
  cv::Mat grey(64, 64, CV_8UC1), colour(64, 64, CV_8UC3, cv::Scalar(40, 120, 200));
  for (int x = 0; x < 64; ++x) grey.col(x).setTo(2 * x + 60);
  const Image smooth = read_image(put("a.jpg", grey)), flat = read_image(put("b.jpg", colour));
  for (int x = 0; x < 64; ++x) {
    EXPECT_NEAR(smooth.row<std::uint8_t>(30)[x], 2 * x + 60, 2);
    EXPECT_NEAR(flat.row<std::uint8_t>(30)[x], grey_rule(200, 120, 40), 1.5);
  }
}

TEST_F(ReadImage, LooksUpPalettes) {
  auto tags = tiff_tags(256, 1, 8, 3);
  TiffTag map{320, 3, {}};
  for (int channel = 0; channel < 3; ++channel)
    for (int i = 0; i < 256; ++i) map.values.push_back(257u * ((i * (7 + 2 * channel) + channel) & 255));
  tags.push_back(map);
  Bytes indices;
  for (int i = 0; i < 256; ++i) indices += static_cast<char>(i);
  const Image image = read_image(put("a.tif", tiff(tags, {indices})));
  ASSERT_EQ(image.type(), ScalarType::u8);
  expect_pixels<std::uint8_t>(image, [](int i, int) {
    return std::lround(grey_rule(i * 7 & 255, (i * 9 + 1) & 255, (i * 11 + 2) & 255));
  });
}

TEST_F(ReadImage, InvertsWhiteIsZero) {
  const Bytes values8("\x00\x01\xff", 3), values16("\x00\x00\x01\x00\xff\xff", 6);
  const Image image8 = read_image(put("a.tif", tiff(tiff_tags(3, 1, 8, 0), {values8})));
  const Image image16 = read_image(put("b.tif", tiff(tiff_tags(3, 1, 16, 0), {values16})));
  const int truth8[] = {255, 254, 0}, truth16[] = {65535, 65534, 0};
  expect_pixels<std::uint8_t>(image8, [&](int x, int) { return truth8[x]; });
  expect_pixels<std::uint16_t>(image16, [&](int x, int) { return truth16[x]; });
}

TEST_F(ReadImage, ReadsPlanarColour) {
  auto tags = tiff_tags(2, 1, 16, 2, 3);
  tags.push_back({284, 3, {2}});
  const Bytes r("\x10\x27\x00\x00", 4), g("\x20\x4e\x00\x00", 4), b("\x30\x75\xff\xff", 4);
  const Image image = read_image(put("a.tif", tiff(tags, {r, g, b})));
  EXPECT_EQ(image.row<std::uint16_t>(0)[0], std::lround(grey_rule(10000, 20000, 30000)));
  EXPECT_EQ(image.row<std::uint16_t>(0)[1], std::lround(grey_rule(0, 0, 65535)));
}

TEST_F(ReadImage, IgnoresTheAlphaOfGreyTiffs) {
  auto tags = tiff_tags(2, 1, 16, 1, 2);
  tags.push_back({338, 3, {2}});
  const Image image = read_image(put("a.tif", tiff(tags, {Bytes("\x34\x12\x01\x00\x78\x56\x00\x00", 8)})));
  EXPECT_EQ(image.row<std::uint16_t>(0)[0], 0x1234);
  EXPECT_EQ(image.row<std::uint16_t>(0)[1], 0x5678);
}

TEST_F(ReadImage, ReadsTilesThatReachBeyondTheBorder) {
  const int width = 20, height = 18, side = 16;
  auto tags = tiff_tags(width, height, 8, 1);
  tags.pop_back();  // rows per strip
  tags.push_back({322, 3, {side}});
  tags.push_back({323, 3, {side}});
  const auto truth = [](int x, int y) { return (x * 13 + y * 7) & 255; };
  std::vector<Bytes> tiles;
  for (int y0 : {0, side})
    for (int x0 : {0, side}) {
      Bytes tile;
      for (int i = 0; i < side * side; ++i) tile += static_cast<char>(truth(x0 + i % side, y0 + i / side));
      tiles.push_back(tile);
    }
  const Image image = read_image(put("a.tif", tiff(tags, tiles, true)));
  ASSERT_EQ(image.width(), width);
  expect_pixels<std::uint8_t>(image, truth);
}

TEST_F(ReadImage, UnpacksOddBitDepths) {
  const Image image12 = read_image(put("a.tif", tiff(tiff_tags(2, 1, 12, 1), {"\xab\xc1\x23"})));
  EXPECT_EQ(image12.type(), ScalarType::u16);
  EXPECT_EQ(image12.bit_depth(), 12);
  EXPECT_EQ(image12.row<std::uint16_t>(0)[0], 0xabc);
  EXPECT_EQ(image12.row<std::uint16_t>(0)[1], 0x123);
  const Image image1 = read_image(put("b.tif", tiff(tiff_tags(10, 1, 1, 1), {Bytes("\xa5\x40", 2)})));
  ASSERT_EQ(image1.type(), ScalarType::u8);
  const int bits[] = {1, 0, 1, 0, 0, 1, 0, 1, 0, 1};
  expect_pixels<std::uint8_t>(image1, [&](int x, int) { return 255 * bits[x]; });
}

TEST_F(ReadImage, ReadsPageOneOfMany) {
  const std::vector<cv::Mat> pages = {random_image(CV_8UC1), random_image(CV_8UC1)};
  ASSERT_TRUE(cv::imwritemulti(at("a.tif").string(), pages));
  expect_same<std::uint8_t>(read_image(at("a.tif")), pages[0], ScalarType::u8);
}

TEST_F(ReadImage, RefusesTruncatedFilesSilently) {
  testing::internal::CaptureStderr();
  const cv::Mat grey = random_image(CV_8UC1, 120, 150), grey16 = random_image(CV_16UC1, 120, 150);
  put("deep.png", grey16);
  put("deep.tif", grey16);
  put("progressive.jpg", grey);
  for (const char* name : {"a.png", "a.tif", "a.jpg", "a.bmp", "a.pgm"}) put(name, grey);
  ASSERT_TRUE(cv::imwrite(at("raw.tif").string(), grey, {cv::IMWRITE_TIFF_COMPRESSION, 1}));
  ASSERT_TRUE(cv::imwrite(at("progressive.jpg").string(), grey, {cv::IMWRITE_JPEG_PROGRESSIVE, 1}));
  for (const char* name :
       {"a.png", "a.tif", "a.jpg", "a.bmp", "a.pgm", "deep.png", "deep.tif", "raw.tif", "progressive.jpg"}) {
    const Bytes whole = get(name);
    EXPECT_EQ(file_error([&] { read_image(at(name)); }), "");
    for (double part : {0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 1.0}) {
      const auto size = std::min(static_cast<std::size_t>(whole.size() * part), whole.size() - 1);
      const auto path = put(std::string("cut ") + name, whole.substr(0, size));
      EXPECT_NE(file_error([&] { read_image(path); }).find(path.string()), std::string::npos)
          << name << " cut to " << size << " of " << whole.size() << " bytes";
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(ReadImage, IsNotFooledByTheEndOfAThumbnail) {
  put("thumbnail.jpg", random_image(CV_8UC1, 30, 40));
  put("a.jpg", random_image(CV_8UC1, 120, 150));
  const Bytes payload = Bytes("Exif\0\0", 6) + get("thumbnail.jpg"), image = get("a.jpg");
  const auto length = payload.size() + 2;
  const Bytes with_thumbnail = image.substr(0, 2) + "\xff\xe1" + static_cast<char>(length >> 8) +
                               static_cast<char>(length & 255) + payload + image.substr(2);
  EXPECT_EQ(read_image(put("b.jpg", with_thumbnail)).width(), 150);
  const auto half = payload.size() + image.size() / 2;
  EXPECT_THROW(read_image(put("c.jpg", with_thumbnail.substr(0, half))), FileError);
}

TEST_F(ReadImage, RefusesDamagedDataSilently) {
  testing::internal::CaptureStderr();
  const cv::Mat grey = random_image(CV_8UC1, 120, 150);
  for (const char* name : {"a.png", "a.tif"}) {
    put(name, grey);
    Bytes bytes = get(name);
    for (std::size_t i = 0; i < 300; ++i) bytes[bytes.size() / 2 + i] ^= 0x55;
    EXPECT_NE(file_error([&] { read_image(put(name, bytes)); }), "") << name;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

std::uint32_t crc(const Bytes& bytes) {
  std::uint32_t c = ~0u;
  for (unsigned char byte : bytes) {
    c ^= byte;
    for (int i = 0; i < 8; ++i) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
  }
  return ~c;
}

Bytes big_endian(std::uint32_t value) {
  const Bytes text = little_endian(value, 4);
  return {text.rbegin(), text.rend()};
}

Bytes png_chunk(const Bytes& type, const Bytes& data) {
  return big_endian(static_cast<std::uint32_t>(data.size())) + type + data + big_endian(crc(type + data));
}

TEST_F(ReadImage, IsNotDisturbedByBadColourProfiles) {
  testing::internal::CaptureStderr();
  const cv::Mat grey = random_image(CV_8UC1);
  put("a.png", grey);
  const Bytes plain = get("a.png");
  const std::size_t behind_header = 8 + 25;
  const Bytes profile = png_chunk("iCCP", Bytes("x\0\0nonsense", 11)) + png_chunk("sBIT", "\x63");
  put("a.png", plain.substr(0, behind_header) + profile + plain.substr(behind_header));
  expect_same<std::uint8_t>(read_image(at("a.png")), grey, ScalarType::u8);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(ReadImage, RefusesImagesBeyondTheLimit) {
  const Bytes size = big_endian(40000) + big_endian(40000);
  put("a.png", Bytes("\x89PNG\r\n\x1a\n", 8) + png_chunk("IHDR", size + Bytes("\x08\0\0\0\0", 5)) +
                   png_chunk("IDAT", "x") + png_chunk("IEND", ""));
  put("b.tif", tiff(tiff_tags(40000, 40000, 8, 1), {"x"}));
  put("c.pgm", "P5\n60000 60000\n255\nx");
  for (const char* name : {"a.png", "b.tif", "c.pgm"})
    EXPECT_NE(file_error([&] { read_image(at(name)); }).find("too large"), std::string::npos) << name;
}

TEST_F(ReadImage, SaysWhatIsWrong) {
  const auto message = [&](const fs::path& path) {
    const std::string text = file_error([&] { read_image(path); });
    EXPECT_NE(text.find(path.string()), std::string::npos);
    return text;
  };
  EXPECT_NE(message(at("missing.png")).find("does not exist"), std::string::npos);
  EXPECT_NE(message(folder_).find("is a directory"), std::string::npos);
  EXPECT_NE(message(put("empty.png", Bytes())).find("is empty"), std::string::npos);
  EXPECT_NE(message(put("text.png", Bytes("x,y,u,v\n1,2,3,4\n"))).find("not an image"), std::string::npos);
  EXPECT_NE(message(at("text.png") / "a.png"), "");
}

TEST_F(ReadImage, SaysWhereAFloatIsNotFinite) {
  for (float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    cv::Mat image(20, 30, CV_32FC1, cv::Scalar(1));
    image.at<float>(3, 7) = value;
    const auto text = file_error([&] { read_image(put("a.tif", image)); });
    EXPECT_NE(text.find("x=7, y=3"), std::string::npos) << text;
  }
}

TEST_F(ReadImage, RefusesElementsThatItCannotKeep) {
  auto tags = tiff_tags(2, 1, 16, 1);
  tags.push_back({339, 3, {2}});  // signed
  EXPECT_THROW(read_image(put("a.tif", tiff(tags, {"abcd"}))), FileError);
  tags.back().values = {3};  // half float
  EXPECT_THROW(read_image(put("a.tif", tiff(tags, {"abcd"}))), FileError);
  EXPECT_THROW(read_image(put("b.tif", tiff(tiff_tags(1, 1, 8, 5, 4), {"abcd"}))), FileError);  // CMYK
}

/// Runs as a user without rights while it lives: root may read and write anywhere.
class AsNobody {
 public:
  AsNobody() : user_(geteuid()) {
    if (user_ == 0 && seteuid(65534) != 0) throw std::runtime_error("cannot become another user");
  }
  ~AsNobody() { EXPECT_EQ(seteuid(user_), 0); }

 private:
  uid_t user_;
};

TEST_F(ReadImage, SaysThatRightsAreMissing) {
  const auto path = put("a.png", random_image(CV_8UC1));
  fs::permissions(path, fs::perms::none);
  const AsNobody nobody;
  EXPECT_NE(file_error([&] { read_image(path); }).find("Permission denied"), std::string::npos);
}

TEST(QuietCerr, DropsOnlyWhatItsOwnThreadWrites) {
  testing::internal::CaptureStderr();
  {
    const QuietCerr quiet;
    std::cerr << "dropped" << std::endl;
    std::thread([] { std::cerr << "passed" << std::endl; }).join();
  }
  std::cerr << "after";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "passed\nafter");
}

TEST_F(WriteImage, IsReadBackAsItWas) {
  const cv::Mat grey8 = random_image(CV_8UC1), grey16 = random_image(CV_16UC1);
  cv::Mat real(37, 53, CV_32FC1);
  cv::randu(real, -1, 1);
  const auto view = [](const cv::Mat& m, ScalarType type) {  // without the left column: rows are padded
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
  write_image(at("c.tif"), view(real, ScalarType::f32));
  expect_same<float>(read_image(at("c.tif")), cropped(real), ScalarType::f32);
}

TEST_F(WriteImage, KeepsTheOrderOfColours) {
  const std::uint8_t rgb[] = {255, 0, 0, 1, 2, 3};
  write_image(at("a.png"), RgbView{rgb, 2, 1});
  const cv::Mat bgr = cv::imread(at("a.png").string());
  EXPECT_EQ(bgr.at<cv::Vec3b>(0, 0), cv::Vec3b(0, 0, 255));
  EXPECT_EQ(bgr.at<cv::Vec3b>(0, 1), cv::Vec3b(3, 2, 1));
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
  // A limit on file sizes fails in the middle of writing, as a full disk does.
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

TEST(NaturalLess, ComparesNumbersAsNumbers) {
  EXPECT_TRUE(natural_less("img_9.png", "img_10.png"));
  EXPECT_FALSE(natural_less("img_10.png", "img_9.png"));
  EXPECT_TRUE(natural_less("a2b10", "a10b2"));
  EXPECT_TRUE(natural_less("a", "a1"));
  EXPECT_TRUE(natural_less("a99999999999999999998", "a99999999999999999999"));
  EXPECT_TRUE(natural_less("a01", "a1"));  // an order, not an equality
  EXPECT_FALSE(natural_less("a1", "a01"));
  EXPECT_TRUE(natural_less("a01", "a2"));
  EXPECT_FALSE(natural_less("same7", "same7"));
}

TEST_F(Frames, AreSortedNaturallyInADirectoryAndAGlob) {
  for (const char* name : {"f10.png", "f9.PNG", "f1.png", "notes.txt", ".f2.png", "other.tif"})
    put(name, Bytes("x"));
  fs::create_directory(at("f5.png"));
  EXPECT_EQ(names({folder_.string()}),
            (std::vector<std::string>{"f1.png", "f9.PNG", "f10.png", "other.tif"}));
  EXPECT_EQ(names({at("f*").string()}), (std::vector<std::string>{"f1.png", "f9.PNG", "f10.png"}));
  EXPECT_EQ(names({at("f[19].p*").string()}), (std::vector<std::string>{"f1.png"}));
  EXPECT_EQ(names({at("other.tif").string(), at("f*").string()}),
            (std::vector<std::string>{"other.tif", "f1.png", "f9.PNG", "f10.png"}));
}

TEST_F(Frames, OfAListKeepTheirOrderUnlessItIsAlphabetical) {
  for (const char* name : {"f10.png", "f9.png", "f1.png"}) put(name, Bytes("x"));
  const auto list = [&](const std::vector<std::string>& order) {
    std::vector<std::string> paths;
    for (const auto& name : order) paths.push_back(at(name).string());
    return names(paths);
  };
  EXPECT_EQ(list({"f1.png", "f10.png", "f9.png"}), (std::vector<std::string>{"f1.png", "f9.png", "f10.png"}));
  EXPECT_EQ(list({"f9.png", "f1.png", "f10.png"}), (std::vector<std::string>{"f9.png", "f1.png", "f10.png"}));
}

TEST_F(Frames, MayHaveGlobCharactersInTheirNames) {
  put("shot[1].png", Bytes("x"));
  put("shot1.png", Bytes("x"));
  EXPECT_EQ(names({at("shot[1].png").string()}), (std::vector<std::string>{"shot[1].png"}));
}

TEST_F(Frames, ThatMatchNothingAreNamed) {
  for (const auto& name : {at("nothing*.png"), at("missing.png"), folder_})
    EXPECT_NE(file_error([&] { expand_frames({name.string()}); }).find(name.string()), std::string::npos);
  EXPECT_THROW(open_frames({}), FileError);
}

TEST_F(Frames, AreReadOneByOneAndABadOneDoesNotEndIt) {
  const cv::Mat first = random_image(CV_8UC1), third = random_image(CV_8UC1);
  put("f1.png", first);
  put("f2.png", Bytes("no image"));
  put("f10.png", third);
  const auto source = open_frames({folder_.string()});
  ASSERT_EQ(source->count(), 3);
  EXPECT_EQ(source->name(2), "f10.png");
  expect_same<std::uint8_t>(source->read(0), first, ScalarType::u8);
  EXPECT_THROW(source->read(1), FileError);
  expect_same<std::uint8_t>(source->read(2), third, ScalarType::u8);
  EXPECT_THROW(source->read(3), std::out_of_range);
}

class Video : public Files {
 protected:
  /// A lossy video of flat frames: frame i has grey 20 + 20 i.
  void SetUp() override {
    Files::SetUp();
    cv::VideoWriter writer(at("clip.avi").string(), cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), 10,
                           {64, 48});
    if (!writer.isOpened()) GTEST_SKIP() << "OpenCV cannot write a video here";
    for (int i = 0; i < kFrames; ++i) writer.write(cv::Mat(48, 64, CV_8UC3, cv::Scalar::all(20 + 20 * i)));
  }
  static constexpr int kFrames = 10;
};

TEST_F(Video, IsReadInOrderAndMaySkip) {
  ASSERT_TRUE(is_video("A.MP4"));
  ASSERT_FALSE(is_video("avi"));
  const auto source = open_frames({at("clip.avi").string()});
  EXPECT_EQ(source->count(), kFrames);
  EXPECT_EQ(source->name(7), "clip_000007");
  for (int i : {0, 1, 1, 4, 9}) {
    const Image frame = source->read(i);
    ASSERT_EQ(frame.width(), 64);
    EXPECT_NEAR(frame.row<std::uint8_t>(20)[30], 20 + 20 * i, 3) << i;
  }
  EXPECT_THROW(source->read(3), UsageError);
  EXPECT_THROW(source->read(kFrames), std::out_of_range);
}

TEST_F(Video, MustBeAloneAndWhole) {
  put("a.png", random_image(CV_8UC1));
  EXPECT_THROW(open_frames({at("clip.avi").string(), at("a.png").string()}), FileError);
  EXPECT_THROW(open_frames({put("b.avi", Bytes("no video")).string()}), FileError);
}

}  // namespace
}  // namespace dic

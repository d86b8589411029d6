#include <gtest/gtest.h>
#include <libdeflate.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <iostream>
#include <limits>
#include <memory>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/videoio.hpp>
#include <random>
#include <thread>

#include "image/opencv/quiet.hpp"
#include "support/image_files.hpp"
#include "support/tiff_bytes.hpp"

// Tests formats, bit depths, colours and damaged files.
namespace dic {
namespace {

using namespace test;

namespace fs = std::filesystem;

/// Y by the documented rule, computed in another way than the product's integers.
double grey_rule(double r, double g, double b) { return 0.299 * r + 0.587 * g + 0.114 * b; }

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

/// The end of the last strip, which holds the checksum, is zeroed. Tests random values, which cannot be
/// compressed, and smooth ones.
TEST_F(ReadImage, RefusesDeflatedTiffsWithAZeroedTail) {
  cv::Mat smooth(120, 150, CV_8UC1);
  for (int y = 0; y < smooth.rows; ++y)
    for (int x = 0; x < smooth.cols; ++x)
      smooth.at<std::uint8_t>(y, x) = static_cast<std::uint8_t>(x * x / 99 + y);
  constexpr int kDeflate = 8, kDirectoryAt = 4;
  for (const cv::Mat& image : {random_image(CV_8UC1, 120, 150), smooth, random_image(CV_16UC1, 120, 150)})
    for (const int predictor : {1, 2}) {
      const auto path = at("a.tif");
      ASSERT_TRUE(
          cv::imwrite(path.string(), image, {cv::IMWRITE_TIFF_COMPRESSION, kDeflate, 317, predictor}));
      EXPECT_EQ(file_error([&] { read_image(path); }), "");
      const Bytes whole = get("a.tif");
      std::uint32_t directory = 0;  // offset after the strips
      std::memcpy(&directory, whole.data() + kDirectoryAt, sizeof directory);
      for (const std::uint32_t zeros : {4u, 8u, 40u, 200u}) {
        Bytes damaged = whole;
        std::fill_n(damaged.begin() + directory - zeros, zeros, '\0');
        put("b.tif", damaged);
        EXPECT_NE(file_error([&] { read_image(at("b.tif")); }).find("damaged"), std::string::npos)
            << zeros << " zeros, predictor " << predictor;
      }
    }
}

TEST_F(ReadImage, TakesAPgmAsCamerasWriteIt) {
  const std::vector<Bytes> headers = {"P5 3 2 255\n", "P5\n3 2\n255 ", "P5\r\n3\t2\n255\n",
                                      "P5\n# by hand\n3 2\n255\n"};
  for (const Bytes& header : headers) {
    put("a.pgm", header + "abcdef and more");
    expect_pixels<std::uint8_t>(read_image(at("a.pgm")), [](int x, int y) { return 'a' + x + 3 * y; });
    put("cut.pgm", header + "abcde");
    EXPECT_NE(file_error([&] { read_image(at("cut.pgm")); }), "") << header;
  }
  put("deep.pgm", Bytes("P5 2 1 65535\n\1\2\3\4"));
  const Image deep = read_image(at("deep.pgm"));
  ASSERT_EQ(deep.type(), ScalarType::u16);
  expect_pixels<std::uint16_t>(deep, [](int x, int) { return x == 0 ? 0x102 : 0x304; });
}

/// A source reuses the memory of the previous frame.
TEST_F(Frames, AreTheSameInAnyOrder) {
  put("a.png", random_image(CV_8UC1, 60, 70));
  put("b.png", random_image(CV_16UC1, 20, 30));
  put("c.jpg", random_image(CV_8UC1, 40, 50));
  put("d.png", random_image(CV_8UC3, 90, 80));
  const auto source = open_frames({folder_.string()});
  for (const int i : {3, 0, 1, 2, 3, 1, 0, 2}) {
    const Image fresh = read_image(at(source->name(i))), again = source->read(i);
    ASSERT_EQ(again.size(), fresh.size());
    ASSERT_EQ(again.type(), fresh.type());
    EXPECT_EQ(std::memcmp(again.row<std::byte>(0), fresh.row<std::byte>(0),
                          size_of(fresh.type()) * fresh.width() * fresh.height()),
              0);
  }
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

Bytes png(std::uint32_t width, std::uint32_t height, int depth, int colour, const Bytes& filtered_rows) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  Bytes data(libdeflate_zlib_compress_bound(compressor.get(), filtered_rows.size()), '\0');
  data.resize(libdeflate_zlib_compress(compressor.get(), filtered_rows.data(), filtered_rows.size(),
                                       data.data(), data.size()));
  const Bytes head = big_endian(width) + big_endian(height) + static_cast<char>(depth) +
                     static_cast<char>(colour) + Bytes(3, '\0');
  // Image data may be cut anywhere.
  const std::size_t third = data.size() / 3;
  return Bytes("\x89PNG\r\n\x1a\n", 8) + png_chunk("IHDR", head) + png_chunk("IDAT", data.substr(0, third)) +
         png_chunk("IDAT", "") + png_chunk("IDAT", data.substr(third)) + png_chunk("IEND", "");
}

/// The filters of the PNG specification, as its table defines them, byte by byte; row y has filter y mod 5.
Bytes filter_rows(const std::vector<Bytes>& rows, int pixel_bytes) {
  Bytes filtered;
  const auto at = [&](int y, int i) { return y < 0 || i < 0 ? 0 : static_cast<unsigned char>(rows[y][i]); };
  for (int y = 0; y < static_cast<int>(rows.size()); ++y) {
    filtered += static_cast<char>(y % 5);
    for (int i = 0; i < static_cast<int>(rows[y].size()); ++i) {
      const int a = at(y, i - pixel_bytes), b = at(y - 1, i), c = at(y - 1, i - pixel_bytes), p = a + b - c;
      const int pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
      const int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
      const int predictions[] = {0, a, b, (a + b) / 2, paeth};
      filtered += static_cast<char>(at(y, i) - predictions[y % 5]);
    }
  }
  return filtered;
}

/// Random pixels in rows of bytes, highest byte first, and their grey by the documented rule.
template <typename T>
void check_png(const Bytes& file_name, int width, int samples, int colour, const auto& put) {
  const int height = 23, bytes = sizeof(T);
  std::vector<Bytes> rows(height);
  std::mt19937 random(samples * 10 + bytes);
  for (Bytes& row : rows)
    for (int i = 0; i < width * samples * bytes; ++i) row += static_cast<char>(random());
  const Image image =
      read_image(put(file_name, png(width, height, 8 * bytes, colour, filter_rows(rows, samples * bytes))));
  ASSERT_EQ(image.size(), (Size{width, height}));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const auto sample = [&](int c) {
        int value = 0;
        for (int b = 0; b < bytes; ++b)
          value = value << 8 | static_cast<unsigned char>(rows[y][(x * samples + c) * bytes + b]);
        return value;
      };
      const double grey = samples < 3 ? sample(0) : grey_rule(sample(0), sample(1), sample(2));
      ASSERT_NEAR(image.row<T>(y)[x], grey, 0.5 + 1e-6)
          << samples << " samples, width=" << width << " x=" << x << " y=" << y;
    }
}

TEST_F(ReadImage, UndoesEveryFilterOfAPng) {
  const auto put_bytes = [this](const Bytes& name, const Bytes& bytes) { return put(name, bytes); };
  for (const auto& [samples, colour] : {std::pair{1, 0}, {2, 4}, {3, 2}, {4, 6}}) {
    check_png<std::uint8_t>("a.png", 37, samples, colour, put_bytes);
    check_png<std::uint16_t>("a.png", 37, samples, colour, put_bytes);
  }
  for (const int width : {1, 7, 8, 9, 64, 301}) check_png<std::uint8_t>("a.png", width, 1, 0, put_bytes);
}

TEST_F(ReadImage, RefusesPngsWhoseRowsAreWrong) {
  const Bytes row(1 + 8, '\1');
  EXPECT_EQ(read_image(put("a.png", png(8, 2, 8, 0, row + row))).height(), 2);
  const Bytes unknown_filter = '\5' + Bytes(8, '\1');
  for (const Bytes& rows : {row, row + row + row, row + unknown_filter})
    EXPECT_NE(file_error([&] { read_image(put("a.png", png(8, 2, 8, 0, rows))); }).find("damaged"),
              std::string::npos);
  // A few bytes cannot fill a gigabyte, so the file is refused before memory is allocated.
  EXPECT_NE(file_error([&] { read_image(put("a.png", png(30000, 30000, 8, 0, row))); }).find("claims"),
            std::string::npos);
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
  auto tags = tiff_tags(1, 1, 64, 1);
  EXPECT_THROW(read_image(put("a.tif", tiff(tags, {"abcdefgh"}))), FileError);
  tags.push_back({339, 3, {6}});  // complex
  EXPECT_THROW(read_image(put("a.tif", tiff(tags, {"abcdefgh"}))), FileError);
  EXPECT_THROW(read_image(put("b.tif", tiff(tiff_tags(1, 1, 8, 8, 3), {"abc"}))), FileError);  // CIELab
}

TEST_F(ReadImage, RefusesStripsThatClaimGigabytes) {
  auto tags = tiff_tags(65000, 200, 16, 1, 65);
  tags.push_back({259, 3, {5}});  // LZW that decodes to more than is stored
  const auto text = file_error([&] { read_image(put("a.tif", tiff(tags, {"abcd"}))); });
  EXPECT_NE(text.find("larger than such a file can hold"), std::string::npos) << text;
}

TEST_F(ReadImage, SaysThatRightsAreMissing) {
  const auto path = put("a.png", random_image(CV_8UC1));
  fs::permissions(path, fs::perms::none);
  const AsNobody nobody;
  EXPECT_NE(file_error([&] { read_image(path); }).find("Permission denied"), std::string::npos);
}

TEST(QuietCerr, DropsOnlyWhatItsOwnThreadWrites) {
  testing::internal::CaptureStderr();
  {
    const image::QuietCerr quiet;
    std::cerr << "dropped" << std::endl;
    std::thread([] { std::cerr << "passed" << std::endl; }).join();
  }
  std::cerr << "after";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "passed\nafter");
}

}  // namespace
}  // namespace dic

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <vector>

#include "support/image_files.hpp"
#include "support/tiff_bytes.hpp"

// Tests what image files say beside their pixels: types of elements, orientation, pages, opacity, masks.
namespace dic {
namespace {

using namespace test;

using ImageKinds = Files;

TEST_F(ImageKinds, ReadsElementsThatBecomeFloat) {
  const auto first = [&](int bits, int format, const Bytes& bytes) {
    auto tags = tiff_tags(1, 1, bits, 1);
    tags.push_back({339, 3, {static_cast<std::uint32_t>(format)}});
    const Image image = read_image(put("a.tif", tiff(tags, {bytes})));
    EXPECT_EQ(image.type(), ScalarType::f32);
    return image.row<float>(0)[0];
  };
  constexpr int kUnsigned = 1, kSigned = 2, kFloat = 3;
  EXPECT_EQ(first(8, kSigned, "\x85"), -123);
  EXPECT_EQ(first(16, kSigned, little_endian(-12345, 2)), -12345);
  EXPECT_EQ(first(16, kSigned, little_endian(12345, 2)), 12345);
  EXPECT_EQ(first(32, kSigned, little_endian(-1234567, 4)), -1234567);
  EXPECT_EQ(first(32, kUnsigned, little_endian(3000000000, 4)), 3e9F);
  // Half floats by the table of IEEE 754: 1.5, -2, the largest, the smallest normal and subnormal ones.
  EXPECT_EQ(first(16, kFloat, little_endian(0x3e00, 2)), 1.5F);
  EXPECT_EQ(first(16, kFloat, little_endian(0xc000, 2)), -2);
  EXPECT_EQ(first(16, kFloat, little_endian(0x7bff, 2)), 65504);
  EXPECT_EQ(first(16, kFloat, little_endian(0x0400, 2)), 0x1p-14F);
  EXPECT_EQ(first(16, kFloat, little_endian(0x0001, 2)), 0x1p-24F);
  EXPECT_NE(file_error([&] { first(16, kFloat, little_endian(0x7e00, 2)); }).find("not finite"),
            std::string::npos);
}

TEST_F(ImageKinds, TurnsInksIntoGrey) {
  // No ink, black, half black, cyan alone: R = (1 - C)(1 - K), and the same for G and B.
  const Bytes inks(
      "\0\0\0\0"
      "\0\0\0\xff"
      "\0\0\0\x80"
      "\xff\0\0\0",
      16);
  const Image image = read_image(put("a.tif", tiff(tiff_tags(4, 1, 8, 5, 4), {inks})));
  const int truth[] = {255, 0, 127, 179};  // 255 (0.587 + 0.114) = 178.8
  expect_pixels<std::uint8_t>(image, [&](int x, int) { return truth[x]; });
}

TEST_F(ImageKinds, NamesACompressionThatIsUnknown) {
  for (const auto& [number, name] : {std::pair{34712u, "JPEG 2000"}, {34933u, "PNG"}, {40000u, "40000"}}) {
    auto tags = tiff_tags(2, 2, 8, 1);
    tags.push_back({259, 3, {number}});
    const auto text = file_error([&] { read_image(put("a.tif", tiff(tags, {"abcd"}))); });
    EXPECT_NE(text.find("compression that is not supported"), std::string::npos) << text;
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
}

/// The pixel of the stored image that EXIF shows at (x, y), as its standard words it: where row 0 and column
/// 0 of the stored image are shown.
int shown(const std::vector<int>& stored, int width, int height, int orientation, int x, int y) {
  const bool row_0_is_vertical = orientation > 4;
  const bool first_row_at_end = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool first_column_at_end =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  int row = row_0_is_vertical ? x : y, column = row_0_is_vertical ? y : x;
  if (first_row_at_end) row = height - 1 - row;
  if (first_column_at_end) column = width - 1 - column;
  return stored[static_cast<std::size_t>(row * width + column)];
}

TEST_F(ImageKinds, ShowsTiffsAsTheirOrientationSays) {
  const int width = 70, height = 67;  // more than the squares in which it is turned
  std::vector<int> stored;
  Bytes pixels;
  for (int i = 0; i < width * height; ++i) {
    stored.push_back(i * 37 % 251);
    pixels += static_cast<char>(stored.back());
  }
  for (int orientation = 0; orientation <= 9; ++orientation) {
    auto tags = tiff_tags(width, height, 8, 1);
    tags.push_back({274, 3, {static_cast<std::uint32_t>(orientation)}});
    const Image image = read_image(put("a.tif", tiff(tags, {pixels})));
    const int valid = orientation < 1 || orientation > 8 ? 1 : orientation;
    ASSERT_EQ(image.size(), valid > 4 ? (Size{height, width}) : (Size{width, height})) << orientation;
    expect_pixels<std::uint8_t>(image,
                                [&](int x, int y) { return shown(stored, width, height, valid, x, y); });
  }
}

Bytes exif(const char* order, int orientation) {
  if (order == std::string("II"))
    return Bytes("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0", 18) + little_endian(orientation, 4) +
           Bytes(4, '\0');
  return Bytes("MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0", 19) + static_cast<char>(orientation) +
         Bytes(6, '\0');
}

TEST_F(ImageKinds, ShowsJpegsAsTheirExifSays) {
  cv::Mat grey(32, 48, CV_8UC1, cv::Scalar(40));
  grey(cv::Rect(0, 0, 16, 16)).setTo(200);  // marks the stored corner at the top left
  put("a.jpg", grey);
  const Bytes plain = get("a.jpg");
  const struct {
    int orientation, width, x, y;  // the size, and a pixel of the marked corner
  } cases[] = {{1, 48, 8, 8}, {2, 48, 40, 8}, {3, 48, 40, 24}, {4, 48, 8, 24},
               {5, 32, 8, 8}, {6, 32, 24, 8}, {7, 32, 24, 40}, {8, 32, 8, 40}};
  for (const char* order : {"II", "MM"})
    for (const auto& [orientation, width, x, y] : cases) {
      const Bytes data = Bytes("Exif\0\0", 6) + exif(order, orientation);
      const Bytes marker = Bytes("\xff\xe1\0", 3) + static_cast<char>(data.size() + 2) + data;
      const Image image = read_image(put("b.jpg", plain.substr(0, 2) + marker + plain.substr(2)));
      ASSERT_EQ(image.width(), width) << order << orientation;
      EXPECT_NEAR(image.row<std::uint8_t>(y)[x], 200, 3) << order << orientation;
      EXPECT_NEAR(image.row<std::uint8_t>(image.height() / 2)[image.width() / 2], 40, 3);
    }
  // A damaged block is ignored, as viewers do.
  const Bytes cut = Bytes("\xff\xe1\0\x10", 4) + Bytes("Exif\0\0", 6) + exif("II", 6).substr(0, 8);
  EXPECT_EQ(read_image(put("c.jpg", plain.substr(0, 2) + cut + plain.substr(2))).width(), 48);
}

/// A page whose pixels all have one value; kind: NewSubfileType.
TiffPageBytes flat_page(int width, int height, int value, std::uint32_t kind = 0) {
  TiffPageBytes page{tiff_tags(width, height, 8, 1),
                     {Bytes(static_cast<std::size_t>(width * height), static_cast<char>(value))}};
  page.tags.push_back({254, 4, {kind}});
  return page;
}

std::vector<int> first_values(FrameSource& source) {
  std::vector<int> values;
  for (std::int64_t i = 0; i < source.count().value_or(0); ++i)
    values.push_back(source.read(i).row<std::uint8_t>(0)[0]);
  return values;
}

TEST_F(ImageKinds, PagesOfAStackAreFrames) {
  put("b.tif", tiff({flat_page(8, 6, 10), flat_page(8, 6, 20), flat_page(8, 6, 30)}));
  put("a.x.tif", tiff({flat_page(8, 6, 1), flat_page(8, 6, 2)}));
  put("c.tif", tiff({flat_page(8, 6, 99)}));
  const auto source = open_frames({folder_.string()});
  EXPECT_EQ(first_values(*source), (std::vector<int>{1, 2, 10, 20, 30, 99}));
  EXPECT_EQ(source->name(1), "a_x_000001");
  EXPECT_EQ(source->name(4), "b_000002");
  EXPECT_EQ(source->name(5), "c.tif");
  EXPECT_EQ(source->file(4), at("b.tif"));
  EXPECT_TRUE(source->reads_in_parallel());
  EXPECT_EQ(source->read(2).row<std::uint8_t>(0)[0], 10);  // in any order
  EXPECT_THROW(source->read(6), std::out_of_range);
  EXPECT_EQ(read_image(at("b.tif")).row<std::uint8_t>(0)[0], 10);
  EXPECT_NE(file_error([&] { read_mask(at("b.tif")); }).find("3 images"), std::string::npos);
}

TEST_F(ImageKinds, ThumbnailsAreNoFrames) {
  const auto frames = [&](std::vector<TiffPageBytes> pages) {
    put("a.tif", tiff(std::move(pages)));
    EXPECT_EQ(read_image(at("a.tif")).width(), 20);
    return first_values(*open_frames({at("a.tif").string()}));
  };
  constexpr std::uint32_t kReduced = 1, kMask = 4;
  EXPECT_EQ(frames({flat_page(5, 4, 1, kReduced), flat_page(20, 16, 2)}), std::vector<int>{2});
  EXPECT_EQ(frames({flat_page(20, 16, 2), flat_page(18, 14, 1, kReduced)}), std::vector<int>{2});
  EXPECT_EQ(frames({flat_page(20, 16, 2), flat_page(20, 16, 1, kMask), flat_page(20, 16, 3)}),
            (std::vector<int>{2, 3}));
  EXPECT_EQ(frames({flat_page(10, 8, 1), flat_page(20, 16, 2)}), std::vector<int>{2});  // without a mark
  EXPECT_EQ(frames({flat_page(20, 16, 2, kReduced)}), std::vector<int>{2});  // nothing else is there
}

TEST_F(ImageKinds, PagesWithoutADirectoryOfTheirOwnAreFrames) {
  Bytes pixels;
  for (int page = 0; page < 5; ++page) pixels += Bytes(48, static_cast<char>(10 + page));
  const auto with_text = [&](const Bytes& text) {
    TiffPageBytes page{tiff_tags(8, 6, 8, 1), {pixels}};
    page.tags.push_back(tiff_text(270, text));
    Bytes file = tiff({page});
    // The directory names the pixels of the first page only.
    const Bytes all = little_endian(279, 2) + little_endian(4, 2) + little_endian(1, 4);
    file.replace(file.find(all) + 8, 4, little_endian(48, 4));
    return put("a.tif", file);
  };
  const std::vector<int> truth = {10, 11, 12, 13, 14};
  EXPECT_EQ(first_values(*open_frames({with_text("ImageJ=1.54f\nimages=5\nslices=5\n").string()})), truth);
  EXPECT_EQ(first_values(*open_frames({with_text("{\"shape\": [5, 6, 8]}").string()})), truth);
  EXPECT_EQ(first_values(*open_frames({with_text("taken by hand").string()})), std::vector<int>{10});
  EXPECT_NE(file_error([&] {
              open_frames({with_text("ImageJ=1\nimages=50\n").string()})->read(0);
            }).find("50 pages"),
            std::string::npos);
}

TEST_F(ImageKinds, RefusesStacksThatAreNotOneSequence) {
  std::vector<TiffPageBytes> pages(6, flat_page(8, 6, 1));
  pages[0].tags.push_back(tiff_text(270, "ImageJ=1.54f\nimages=6\nchannels=2\nframes=3\n"));
  const auto path = put("a.tif", tiff(pages));
  EXPECT_NE(file_error([&] { open_frames({path.string()})->read(0); }).find("2 channels"), std::string::npos);
  pages[0].tags.back() = tiff_text(270, "<?xml?><OME ><Pixels SizeC=\"1\" SizeZ=\"2\" SizeT=\"3\"/></OME>");
  put("a.tif", tiff(pages));
  EXPECT_NE(file_error([&] { open_frames({path.string()})->read(0); }).find("2 slices"), std::string::npos);
  pages[0].tags.back() = tiff_text(270, "ImageJ=1.54f\nimages=6\nchannels=6\n");  // an array by tifffile
  put("a.tif", tiff(pages));
  EXPECT_EQ(open_frames({path.string()})->count(), 6);
}

TEST_F(ImageKinds, SaysThatALaterPageIsMissing) {
  const Bytes whole = tiff({flat_page(8, 6, 1), flat_page(8, 6, 2)});
  const auto path = put("a.tif", whole.substr(0, whole.size() - 40));
  EXPECT_NE(file_error([&] { open_frames({path.string()})->read(0); }).find("behind page 1"),
            std::string::npos);
}

TEST_F(ImageKinds, ReadsTheOpacity) {
  cv::Mat image(10, 12, CV_8UC4, cv::Scalar(10, 20, 30, 255));
  image(cv::Rect(3, 2, 4, 5)).setTo(cv::Scalar(10, 20, 30, 0));
  image.at<cv::Vec4b>(0, 0)[3] = 100;  // less than half
  const auto is_opaque = [](int x, int y) {
    const bool is_inside = x >= 3 && x < 7 && y >= 2 && y < 7;
    return is_inside || (x == 0 && y == 0) ? 0 : 255;
  };
  for (const char* name : {"a.png", "a.tif"})
    expect_pixels<std::uint8_t>(read_opacity(put(name, image)), is_opaque);
  cv::Mat deep;
  image.convertTo(deep, CV_16U, 257);
  expect_pixels<std::uint8_t>(read_opacity(put("b.png", deep)), is_opaque);
  EXPECT_TRUE(read_opacity(put("c.png", cv::Mat(10, 12, CV_8UC4, cv::Scalar::all(255)))).empty());
  for (const char* name : {"d.png", "d.tif", "d.jpg", "d.bmp", "d.pgm"})
    EXPECT_TRUE(read_opacity(put(name, random_image(CV_8UC1))).empty()) << name;
}

TEST_F(ImageKinds, MasksAreWhereTheImageIsNotZeroAndNotTransparent) {
  cv::Mat region(100, 120, CV_8UC1, cv::Scalar(0));
  region(cv::Rect(30, 20, 50, 40)).setTo(255);
  const auto truth = [&](int x, int y) { return region.at<std::uint8_t>(y, x); };
  const auto expect_mask = [&](const fs::path& path) { expect_pixels<std::uint8_t>(read_mask(path), truth); };
  expect_mask(put("a.png", region));
  expect_mask(put("ones.png", cv::Mat(region / 255)));
  cv::Mat deep;
  region.convertTo(deep, CV_16U, 10);
  expect_mask(put("deep.tif", deep));
  for (const int quality : {60, 75, 90}) {
    cv::imwrite(at("a.jpg").string(), region, {cv::IMWRITE_JPEG_QUALITY, quality});
    expect_mask(at("a.jpg"));
  }
  for (const int colour : {255, 0}) {  // one colour everywhere, the outside erased
    cv::Mat erased;
    const cv::Mat plain(region.size(), CV_8UC1, cv::Scalar(colour));
    cv::merge(std::vector<cv::Mat>{plain, plain, plain, region}, erased);
    expect_mask(put("erased.png", erased));
  }
  cv::Mat with_corner;  // a region on black, with a transparent corner that is outside anyway
  cv::merge(std::vector<cv::Mat>{region, region, region, cv::Mat(region.size(), CV_8UC1, cv::Scalar(255))},
            with_corner);
  with_corner.at<cv::Vec4b>(0, 0)[3] = 0;
  expect_mask(put("corner.png", with_corner));
}

TEST_F(ImageKinds, MasksOfProgramsThatStoreThemInverted) {
  const auto mask = [&](const std::vector<TiffTag>& more, int bits, const Bytes& pixels) {
    auto tags = tiff_tags(8, 1, bits, 0);  // white is zero
    tags.insert(tags.end(), more.begin(), more.end());
    const Image image = read_mask(put("a.tif", tiff(tags, {pixels})));
    return Bytes(reinterpret_cast<const char*>(image.row<std::uint8_t>(0)), 8);
  };
  const Bytes stored("\xff\xff\0\0\0\0\0\0", 8), shown("\0\0\xff\xff\xff\xff\xff\xff", 8);
  EXPECT_EQ(mask({tiff_text(270, "ImageJ=1.54f\n")}, 8, stored), stored);
  EXPECT_EQ(mask({tiff_text(305, "tifffile.py")}, 1, "\xc0"), stored);
  EXPECT_EQ(mask({}, 1, "\xc0"), shown);  // of a scanner, for example
  // An image is shown as its tag says in any case.
  EXPECT_EQ(read_image(at("a.tif")).row<std::uint8_t>(0)[0], 0);
}

TEST_F(ImageKinds, RefusesHeadersThatClaimGigabytes) {
  const Bytes webp = Bytes("RIFF\x30\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0", 24) + little_endian(29999, 3) +
                     little_endian(29999, 3);
  const Bytes gif = "GIF89a" + little_endian(60000, 2) + little_endian(10000, 2) + Bytes(3, '\0');
  for (const Bytes& bytes : {webp + Bytes(20, '\0'), gif + Bytes(20, '\0')})
    EXPECT_NE(file_error([&] { read_image(put("a", bytes)); }).find("claims"), std::string::npos);
}

TEST_F(ImageKinds, SaysThatTooManyFilesAreOpen) {
  put("a.png", random_image(CV_8UC1));
  put("a.tif", random_image(CV_8UC1));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next);
  const rlimit low{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const std::string read = file_error([&] { read_image(at("a.png")); });
  const std::string read_tiff = file_error([&] { read_image(at("a.tif")); });
  const std::string write = file_error([&] { write_image(at("b.png"), Image({4, 4}, ScalarType::u8)); });
  setrlimit(RLIMIT_NOFILE, &before);
  for (const std::string& text : {read, read_tiff, write}) {
    EXPECT_NE(text.find("ulimit -n"), std::string::npos) << text;
    EXPECT_EQ(text.find("free some space"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace dic

#include <gtest/gtest.h>
#include <locale.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/videoio.hpp>

#include "image/opencv/quiet.hpp"
#include "image/opencv/video_decoder.hpp"
#include "support/image_files.hpp"

// Tests sequences of files, and videos.
namespace dic {
namespace {

using namespace test;

namespace fs = std::filesystem;

TEST(NaturalLess, ComparesNumbersAsNumbers) {
  EXPECT_TRUE(natural_less("img_9.png", "img_10.png"));
  EXPECT_FALSE(natural_less("img_10.png", "img_9.png"));
  EXPECT_TRUE(natural_less("a2b10", "a10b2"));
  EXPECT_TRUE(natural_less("a", "a1"));
  EXPECT_TRUE(natural_less("a99999999999999999998", "a99999999999999999999"));
  EXPECT_TRUE(natural_less("a01", "a1"));  // the names differ, so they must have an order
  EXPECT_FALSE(natural_less("a1", "a01"));
  EXPECT_TRUE(natural_less("a01", "a2"));
  EXPECT_FALSE(natural_less("same7", "same7"));
}

TEST(NaturalLess, KnowsSignsAndDecimals) {
  for (const auto& [first, second] : std::vector<std::pair<const char*, const char*>>{
           {"img_-0003", "img_-0001"},
           {"img_-0001", "img_00000"},
           {"-2.png", "1.png"},
           {"a/-2.png", "a/1.png"},
           {"t=-0.5s", "t=-0.25s"},
           {"load_0.25kN", "load_0.5kN"},
           {"load_0,25kN", "load_0,5kN"},
           {"load_0p25kN", "load_0p5kN"},
           {"load_1kN", "load_1.5kN"},
           {"T_\xE2\x88\x92"
            "10C",
            "T_0C"},
           {"img-1", "img-2"},                // a dash between a letter and a number is no sign
           {"2026-11-09_1", "2026-11-10_1"},  // nor is one between numbers
           {"cam1.9.png", "cam1.10.png"},     // without a unit, a point is none of decimals
           {"v1.9.2s.png", "v1.10.2s.png"},
           {"img_+1", "img_2"},
       }) {
    EXPECT_TRUE(natural_less(first, second)) << first << " " << second;
    EXPECT_FALSE(natural_less(second, first)) << first << " " << second;
  }
}

TEST_F(Frames, AreSortedBySignsAndDecimalsThatAllNamesShow) {
  const std::vector<std::vector<std::string>> orders = {
      {"img_-0003.png", "img_-0002.png", "img_-0001.png", "img_00000.png", "img_0001.png"},
      {"T-20C.png", "T-5C.png", "T0C.png", "T5C.png", "T10C.png"},
      {"frame-1.png", "frame-2.png", "frame-10.png"},
      {"load_0.25kN.png", "load_0.5kN.png", "load_1kN.png", "load_1.5kN.png", "load_10kN.png"},
      {"load_0.png", "load_0.25.png", "load_0.5.png", "load_1.png", "load_1.125.png"},
      {"e_-0.02.png", "e_-0.015.png", "e_0.png", "e_0.005.png", "e_0.01.png"},
      {"cam1.8.png", "cam1.9.png", "cam1.10.png", "cam1.11.png"},
      {"cam0.0009.png", "cam0.0010.png", "cam0.10000.png"},
      {"1690000000.06.png", "1690000000.123.png", "1690000000.5.png", "1690000001.25.png"},
      {"2026.9.30.png", "2026.10.1.png", "2026.10.12.png"},
      {"a_1-1.png", "a_1-2.png", "a_1-10.png", "a_2-1.png"},
  };
  for (const auto& order : orders) {
    for (const std::string& name : order) put(name, Bytes("x"));
    EXPECT_EQ(names({folder_.string()}), order);
    EXPECT_EQ(names({at("*").string()}), order);
    std::vector<std::string> list;
    for (const std::string& name : order) list.push_back(at(name).string());
    std::ranges::sort(list);
    EXPECT_EQ(names(list), order) << "as a shell lists them";
    for (const std::string& name : order) fs::remove(at(name));
  }
}

TEST_F(Frames, AreSortedWhereTheShellSortsInTheLanguageOfTheUser) {
  const std::vector<std::string> order = {"img_-2.png", "img_-1.png", "img_0.png", "img_1.png"};
  for (const std::string& name : order) put(name, Bytes("x"));
  for (const char* locale : {"en_US.UTF-8", "de_DE.UTF-8", "en_GB.UTF-8", "C.UTF-8"}) {
    setenv("LC_ALL", locale, 1);
    const locale_t language = newlocale(LC_COLLATE_MASK, "", nullptr);
    if (!language) continue;  // it is not installed
    std::vector<std::string> list;
    for (const std::string& name : order) list.push_back(at(name).string());
    std::ranges::sort(list, [&](const std::string& a, const std::string& b) {
      return strcoll_l(a.c_str(), b.c_str(), language) < 0;
    });
    freelocale(language);
    EXPECT_EQ(names(list), order) << locale;
  }
  unsetenv("LC_ALL");
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

TEST_F(Video, IsReadByTheProgramFfmpegToo) {
  const auto odd_name = at("-i a:%d.avi");
  std::filesystem::copy(at("clip.avi"), odd_name);
  const auto video = image::decode_video_with_ffmpeg(odd_name);
  ASSERT_TRUE(video) << "Is ffmpeg installed (.ci/install-dependencies --tests)?";
  EXPECT_EQ(video->count, kFrames);
  EXPECT_DOUBLE_EQ(video->frames_per_second.value_or(0), 10);
  for (int i = 0; i < kFrames; ++i) {
    cv::Mat frame;
    ASSERT_TRUE(video->advance() && video->retrieve(frame));
    ASSERT_EQ(frame.size(), cv::Size(64, 48));
    EXPECT_NEAR(frame.at<cv::Vec3b>(20, 30)[1], 20 + 20 * i, 3) << i;
  }
  EXPECT_FALSE(video->advance());
  EXPECT_FALSE(image::decode_video_with_ffmpeg(put("b.avi", Bytes("no video"))));
}

TEST_F(Video, NeedsNoFfmpeg) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  EXPECT_FALSE(image::decode_video_with_ffmpeg(at("clip.avi")));
  EXPECT_EQ(open_frames({at("clip.avi").string()})->count(), kFrames);
  setenv("PATH", path.c_str(), 1);
}

TEST_F(Video, MustBeAloneAndWhole) {
  put("a.png", random_image(CV_8UC1));
  EXPECT_THROW(open_frames({at("clip.avi").string(), at("a.png").string()}), FileError);
  EXPECT_THROW(open_frames({put("b.avi", Bytes("no video")).string()}), FileError);
}

}  // namespace
}  // namespace dic

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "image/opencv/video_container.hpp"
#include "support/image_files.hpp"
#include "support/tiff_bytes.hpp"

// Tests recordings of high-speed cameras, and what video files say beside their pictures.
namespace dic {
namespace {

using namespace test;

using Recordings = Files;
using Containers = Files;

constexpr int kWidth = 12, kHeight = 6, kFrames = 4;

/// The value at (x, y) of frame k; fits into 8 bits, and into more after a multiplication.
int value_at(int k, int x, int y) { return (x * 11 + y * 29 + k * 5) % 251; }

/// Values of `bits` bits one behind the other, highest bit first.
Bytes packed(const std::vector<int>& values, int bits) {
  std::vector<bool> all;
  for (const int value : values)
    for (int bit = bits - 1; bit >= 0; --bit) all.push_back(value >> bit & 1);
  Bytes bytes((all.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 128 >> i % 8);
  return bytes;
}

/// A CINE recording, by the layout of Vision Research.
struct CineBytes {
  int bits = 8, packing = 0, compression = 0, real_bits = 8, channels = 1;
  bool has_times = true, flip_up = false, flip_across = false;
  std::uint32_t frames_per_second = 5000;

  int factor() const { return packing == 256 ? 4 : bits / channels > 8 ? 16 : 1; }
  Bytes pixels(int k) const {
    std::vector<int> values;
    Bytes bytes;
    for (int row = 0; row < kHeight; ++row) {
      const int y = packing == 0 ? kHeight - 1 - row : row;  // from the bottom up, as in a bitmap
      for (int x = 0; x < kWidth; ++x) {
        values.push_back(value_at(k, x, y) * factor());
        for (int c = 0; c < channels; ++c) bytes += little_endian(values.back(), bits / channels / 8);
      }
    }
    if (packing == 256) return packed(values, 10);
    return packing == 1024 ? packed(values, 12) : bytes;
  }

  Bytes file() const {
    const Bytes bitmap = little_endian(40, 4) + little_endian(kWidth, 4) + little_endian(kHeight, 4) +
                         little_endian(1, 2) + little_endian(bits, 2) + little_endian(packing, 4) +
                         Bytes(20, '\0');
    Bytes setup(1000, '\0');
    const auto set = [&](std::size_t at, const Bytes& bytes) { setup.replace(at, bytes.size(), bytes); };
    set(140, "ST" + little_endian(setup.size(), 2));
    set(756, little_endian(flip_across, 4) + little_endian(flip_up, 4));
    set(768, little_endian(frames_per_second, 4));
    set(896, little_endian(real_bits, 4));
    Bytes times;
    for (int k = 0; k < kFrames; ++k)
      times += little_endian((1700000000ull << 32) + static_cast<std::uint64_t>(k * k) * (1ull << 30), 8);
    Bytes blocks = little_endian(8 + 3, 4) + little_endian(1005, 2) + Bytes(2 + 3, '\0');  // of another kind
    if (has_times)
      blocks += little_endian(8 + times.size(), 4) + little_endian(1002, 2) + Bytes(2, '\0') + times;
    const std::size_t table = 44 + bitmap.size() + setup.size() + blocks.size();
    Bytes offsets, frames;
    for (int k = 0; k < kFrames; ++k) {
      offsets += little_endian(table + 8 * kFrames + frames.size(), 8);
      const Bytes one = pixels(k);
      frames += little_endian(12, 4) + "note" + little_endian(one.size(), 4) + one;
    }
    return "CI" + little_endian(44, 2) + little_endian(compression, 2) + little_endian(1, 2) +
           Bytes(12, '\0') + little_endian(kFrames, 4) + little_endian(44, 4) +
           little_endian(44 + bitmap.size(), 4) + little_endian(table, 4) + Bytes(8, '\0') + bitmap + setup +
           blocks + offsets + frames;
  }
};

template <typename T>
void expect_frames(FrameSource& source, int factor) {
  ASSERT_EQ(source.count(), kFrames);
  for (const int k : {2, 0, 3, 1}) {
    const Image image = source.read(k);
    ASSERT_EQ(image.size(), (Size{kWidth, kHeight}));
    ASSERT_EQ(image.type(), scalar_type_of<T>());
    expect_pixels<T>(image, [&](int x, int y) { return value_at(k, x, y) * factor; });
  }
}

TEST_F(Recordings, OfPhantomAreRead) {
  const auto open = [&](const CineBytes& cine) {
    return open_frames({put("shot.cine", cine.file()).string()});
  };
  expect_frames<std::uint8_t>(*open({}), 1);
  expect_frames<std::uint16_t>(*open({.bits = 16, .real_bits = 12}), 16);
  EXPECT_EQ(open({.bits = 16, .real_bits = 12})->read(0).bit_depth(), 12);
  expect_frames<std::uint16_t>(*open({.bits = 16, .packing = 256, .real_bits = 10}), 4);
  expect_frames<std::uint16_t>(*open({.bits = 16, .packing = 1024, .real_bits = 12}), 16);
  expect_frames<std::uint8_t>(*open({.bits = 24, .channels = 3}), 1);
  const auto source = open({});
  EXPECT_EQ(source->name(3), "shot_000003");
  EXPECT_TRUE(source->reads_in_parallel());
  EXPECT_EQ(source->frames_per_second(), 5000);
}

TEST_F(Recordings, OfPhantomKnowTheTimeOfEachFrame) {
  const auto source = open_frames({put("a.cine", CineBytes{}.file()).string()});
  for (int k = 0; k < kFrames; ++k) EXPECT_EQ(source->time(k), 0.25 * k * k) << k;
  const auto without = open_frames({put("b.cine", CineBytes{.has_times = false}.file()).string()});
  EXPECT_EQ(without->time(1), std::nullopt);
}

TEST_F(Recordings, OfPhantomAreTurnedAsTheirViewerTurnsThem) {
  const auto up = open_frames({put("a.cine", CineBytes{.flip_up = true}.file()).string()});
  expect_pixels<std::uint8_t>(up->read(0), [](int x, int y) { return value_at(0, x, kHeight - 1 - y); });
  const auto across = open_frames({put("b.cine", CineBytes{.flip_across = true}.file()).string()});
  expect_pixels<std::uint8_t>(across->read(0), [](int x, int y) { return value_at(0, kWidth - 1 - x, y); });
}

TEST_F(Recordings, OfPhantomThatCannotBeReadSayWhy) {
  const auto message = [&](const Bytes& bytes) {
    return file_error([&] { open_frames({put("a.cine", bytes).string()})->read(kFrames - 1); });
  };
  const Bytes whole = CineBytes{}.file();
  EXPECT_EQ(message(whole), "");
  EXPECT_NE(message(whole.substr(0, whole.size() - 1)).find("incomplete"), std::string::npos);
  EXPECT_NE(message(whole.substr(0, 60)).find("shorter"), std::string::npos);
  EXPECT_NE(message("no recording, but a text that is long enough for one").find("begin"), std::string::npos);
  EXPECT_NE(message(CineBytes{.compression = 1}.file()).find("JPEG"), std::string::npos);
  EXPECT_NE(message(CineBytes{.packing = 7}.file()).find("packing"), std::string::npos);
  const auto cut = open_frames({put("b.cine", whole.substr(0, whole.size() - 1)).string()});
  EXPECT_EQ(cut->read(0).width(), kWidth);  // the frames before are there
}

/// A description in the older form.
Bytes cih(int bits, const Bytes& more = "EffectiveBit Depth : 12\nEffectiveBit Side : Lower\n") {
  return "#Camera Information Header\r\nRecord Rate(fps) : 6000\r\nShutter Speed(s) : 1/800000\r\n"
         "Original Total Frame : 677\r\nTotal Frame : 4\r\nSave Step : 3\r\nImage Width : 12\r\nImage Height "
         ": 6\r\n"
         "Color Type : Mono\r\nColor Bit : " +
         std::to_string(bits) + "\r\nFile Format : MRaw\r\n" + more;
}

/// A description in the newer form, which has other data around it.
Bytes cihx(int bits) {
  return Bytes(
             "\1\2head\n<cih><frameInfo><recordedFrame>9</recordedFrame><totalFrame>4</"
             "totalFrame><skipFrame>1</skipFrame>"
             "</frameInfo>\n<recordInfo><recordRate>250.5</recordRate></"
             "recordInfo><imageDataInfo><resolution>"
             "<width>12</width><height>6</height></resolution><colorInfo><type>Mono</type><bit>") +
         std::to_string(bits) +
         "</bit></colorInfo><effectiveBit><depth>12</depth><side>Lower</side></effectiveBit></imageDataInfo>"
         "<imageFileInfo><fileFormat>MRaw</fileFormat></imageFileInfo></cih>\ntail";
}

Bytes mraw(int bits, int factor) {
  Bytes all;
  for (int k = 0; k < kFrames; ++k) {
    std::vector<int> values;
    for (int i = 0; i < kWidth * kHeight; ++i) values.push_back(value_at(k, i % kWidth, i / kWidth) * factor);
    if (bits % 8 != 0) all += packed(values, bits);
    for (const int value : values)
      if (bits % 8 == 0) all += little_endian(static_cast<std::uint64_t>(value), bits / 8);
  }
  return all;
}

TEST_F(Recordings, OfPhotronAreRead) {
  const auto open = [&](int bits, int factor, bool is_new, const char* name) {
    fs::remove(at("shot.cih")), fs::remove(at("shot.cihx"));
    put("shot.mraw", mraw(bits, factor));
    put(is_new ? "shot.cihx" : "shot.cih", is_new ? cihx(bits) : cih(bits));
    return open_frames({at(name).string()});
  };
  expect_frames<std::uint8_t>(*open(8, 1, false, "shot.mraw"), 1);
  expect_frames<std::uint16_t>(*open(16, 16, false, "shot.cih"), 16);
  expect_frames<std::uint16_t>(*open(12, 16, true, "shot.mraw"), 16);
  expect_frames<std::uint16_t>(*open(10, 4, true, "shot.cihx"), 4);
  expect_frames<std::uint16_t>(*open(14, 60, true, "shot.mraw"), 60);
  EXPECT_EQ(open(16, 16, false, "shot.mraw")->read(0).bit_depth(), 12);
  EXPECT_EQ(open(10, 1, true, "shot.mraw")->read(0).bit_depth(), 10);
  EXPECT_EQ(open(8, 1, true, "shot.mraw")->frames_per_second(), 250.5);
  EXPECT_EQ(open(8, 1, false, "shot.mraw")->frames_per_second(), 2000);  // every third frame was saved
  EXPECT_EQ(open_frames({folder_.string()})->count(), kFrames);
  EXPECT_EQ(open_frames({folder_.string()})->name(1), "shot_000001");
}

TEST_F(Recordings, OfPhotronThatCannotBeReadSayWhy) {
  put("a.mraw", mraw(8, 1));
  const auto message = [&](const char* name) {
    return file_error([&] { open_frames({at(name).string()})->read(kFrames - 1); });
  };
  EXPECT_NE(message("a.mraw").find(".cihx"), std::string::npos);
  put("a.cih", cih(8));
  EXPECT_EQ(message("a.mraw"), "");
  put("a.cih", cih(24));
  EXPECT_NE(message("a.mraw").find("24 bits"), std::string::npos);
  put("a.cih", "Total Frame : 4\n");
  EXPECT_NE(message("a.cih").find("without"), std::string::npos);
  put("a.cih", cih(16));
  EXPECT_NE(message("a.mraw").find("shorter"), std::string::npos);
  put("b.cih", cih(8));
  EXPECT_NE(message("b.cih").find(".mraw"), std::string::npos);
}

/// JPEGs whose left half is bright, and of which frame k has the grey 20 + 20 k on the right.
std::vector<Bytes> pictures(int width, int height) {
  std::vector<Bytes> all;
  for (int k = 0; k < kFrames; ++k) {
    cv::Mat picture(height, width, CV_8UC3, cv::Scalar::all(20 + 20 * k));
    picture(cv::Rect(0, 0, width / 2, height)).setTo(cv::Scalar::all(220));
    std::vector<std::uint8_t> bytes;
    cv::imencode(".jpg", picture, bytes);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

Bytes big_endian(std::uint64_t value, int bytes) {
  const Bytes text = little_endian(value, bytes);
  return {text.rbegin(), text.rend()};
}

Bytes numbers(const std::vector<std::int64_t>& values) {
  Bytes text;
  for (const std::int64_t value : values) text += big_endian(static_cast<std::uint64_t>(value), 4);
  return text;
}

Bytes box(const char* type, const Bytes& content) {
  return numbers({static_cast<std::int64_t>(8 + content.size())}) + type + content;
}

/// A QuickTime film of Motion JPEG. turn: where the axes go, as the four numbers of a display matrix.
Bytes film(int width, int height, const std::vector<std::int64_t>& durations_ms,
           const std::array<int, 4>& turn) {
  const std::vector<Bytes> frames = pictures(width, height);
  const std::int64_t one = 0x10000, total = 10000;
  Bytes data, sizes, offsets, times;
  const Bytes type = box("ftyp", Bytes("qt  \0\0\2\0qt  ", 12));
  for (std::size_t k = 0; k < frames.size(); ++k) {
    offsets += numbers({static_cast<std::int64_t>(type.size() + 8 + data.size())});
    sizes += numbers({static_cast<std::int64_t>(frames[k].size())});
    times += numbers({1, durations_ms[k]});
    data += frames[k];
  }
  const Bytes entry =
      box("jpeg", Bytes(6, '\0') + big_endian(1, 2) + Bytes(16, '\0') + big_endian(width, 2) +
                      big_endian(height, 2) + numbers({0x480000, 0x480000, 0}) + big_endian(1, 2) +
                      Bytes(32, '\0') + big_endian(24, 2) + Bytes("\xff\xff", 2));
  const Bytes table = box("stsd", numbers({0, 1}) + entry) + box("stts", numbers({0, kFrames}) + times) +
                      box("stsc", numbers({0, 1, 1, 1, 1})) + box("stsz", numbers({0, 0, kFrames}) + sizes) +
                      box("stco", numbers({0, kFrames}) + offsets);
  const auto handler = [](const char* kind, const char* what) {
    return box("hdlr", Bytes(4, '\0') + kind + what + Bytes(13, '\0'));
  };
  const Bytes media = box("mdhd", numbers({0, 0, 0, 1000, total, 0})) + handler("mhlr", "vide") +
                      box("minf", box("vmhd", numbers({1, 0, 0})) + handler("dhlr", "url ") +
                                      box("dinf", box("dref", numbers({0, 1}) + box("url ", numbers({1})))) +
                                      box("stbl", table));
  const Bytes matrix =
      numbers({turn[0] * one, turn[1] * one, 0, turn[2] * one, turn[3] * one, 0, 0, 0, 0x40000000});
  const Bytes plain = numbers({one, 0, 0, 0, one, 0, 0, 0, 0x40000000});
  const Bytes track = box(
      "tkhd", numbers({15, 0, 0, 1, 0, total, 0, 0, 0, 0}) + matrix + numbers({width * one, height * one}));
  const Bytes movie = box(
      "mvhd", numbers({0, 0, 0, 1000, total, one, 0x1000000, 0, 0}) + plain + Bytes(24, '\0') + numbers({2}));
  return type + box("mdat", data) + box("moov", movie + box("trak", track + box("mdia", media)));
}

TEST_F(Containers, AreShownAsPlayersTurnThem) {
  const struct {
    std::array<int, 4> turn;
    int width, x, y;  // a pixel in the bright half, which is stored on the left
  } cases[] = {{{1, 0, 0, 1}, 64, 16, 24},  {{-1, 0, 0, -1}, 64, 48, 24}, {{0, 1, -1, 0}, 48, 24, 16},
               {{0, -1, 1, 0}, 48, 24, 48}, {{-1, 0, 0, 1}, 64, 48, 24},  {{0, 1, 1, 0}, 48, 24, 16}};
  for (const auto& [turn, width, x, y] : cases) {
    const auto path = put("a.mov", film(64, 48, {40, 40, 40, 40}, turn));
    const auto source = open_frames({path.string()});
    for (int k = 0; k < kFrames; ++k) {
      const Image frame = source->read(k);
      ASSERT_EQ(frame.width(), width);
      EXPECT_NEAR(frame.row<std::uint8_t>(y)[x], 220, 4) << k;
      EXPECT_NEAR(frame.row<std::uint8_t>(frame.height() - 1 - y)[width - 1 - x], 20 + 20 * k, 4) << k;
    }
  }
}

TEST_F(Containers, KnowTheTimesOfFramesWhoseRateVaries) {
  const auto source = open_frames({put("a.mov", film(64, 48, {40, 1000, 20, 500}, {1, 0, 0, 1})).string()});
  ASSERT_EQ(source->count(), kFrames);
  const double times[] = {0, 0.04, 1.04, 1.06};
  for (int k = 0; k < kFrames; ++k) {
    source->read(k);
    ASSERT_TRUE(source->time(k));
    EXPECT_NEAR(*source->time(k), times[k], 1e-9) << k;
  }
}

/// A movie without frames, and two fragments with three each, of a track that another one precedes. Frames
/// are decoded in another order than shown, as with B-frames; the second fragment says when it begins.
Bytes fragmented_film() {
  const Bytes matrix = numbers({0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000});
  const auto track = [&](int id, const char* kind) {
    return box("trak", box("tkhd", numbers({15, 0, 0, id, 0, 0, 0, 0, 0, 0}) + matrix + numbers({0, 0})) +
                           box("mdia", box("mdhd", numbers({0, 0, 0, 1000, 0, 0})) +
                                           box("hdlr", numbers({0, 0}) + kind + Bytes(13, '\0')) +
                                           box("minf", box("stbl", box("stts", numbers({0, 0}))))));
  };
  const Bytes extends =
      box("mvex", box("trex", numbers({0, 1, 1, 7, 0, 0})) + box("trex", numbers({0, 2, 1, 40, 0, 0})));
  const Bytes movie =
      box("moov", box("mvhd", numbers({0, 0, 0, 1000, 0, 0x10000, 0, 0, 0}) + matrix + Bytes(28, '\0')) +
                      track(1, "soun") + track(2, "vide") + extends);
  const Bytes sound = box("traf", box("tfhd", numbers({0, 1})) + box("trun", numbers({0, 9})));
  const Bytes first =
      box("traf", box("tfhd", numbers({0x020000, 2})) +
                      box("trun", numbers({0xa01, 3, 0, 1, 40, 1, 120, 1, 0})));  // size, shift
  const Bytes second =
      box("traf", box("tfhd", numbers({0x02000a, 2, 1, 100})) + box("tfdt", numbers({0, 200})) +
                      box("trun", numbers({0x01000b01, 3, 0, 100, 1, 0, 50, 1, 250, 100, 1, -50})) +
                      box("trun", numbers({0, 1})));
  return box("ftyp", "isom") + movie + box("moof", sound + first) + box("mdat", "") +
         box("moof", second + sound);
}

TEST_F(Containers, KnowTheTimesOfFragmentsInTheOrderOfDisplay) {
  const image::VideoContainer found = image::inspect_video(put("a.mp4", fragmented_film()));
  EXPECT_FALSE(found.counts_frames);
  const std::vector<double> times = {0, 0.04, 0.12, 0.16, 0.26, 0.41, 0.51};
  ASSERT_EQ(found.times.size(), times.size());
  for (std::size_t k = 0; k < times.size(); ++k) EXPECT_NEAR(found.times[k], times[k], 1e-12) << k;
}

/// A Matroska film of Motion JPEG whose duration, as OpenCV reads it, would be 100 frames.
Bytes matroska() {
  const auto id = [](std::uint32_t value, int bytes) { return big_endian(value, bytes); };
  const auto put = [](const Bytes& identifier, const Bytes& content) {
    return identifier + "\x10" + big_endian(content.size(), 3).substr(0, 3) + content;  // sizes of 4 bytes
  };
  const auto number = [&](std::uint32_t identifier, int bytes, std::uint64_t value) {
    return put(id(identifier, bytes), big_endian(value, 4));
  };
  const Bytes head =
      put(id(0x1a45dfa3, 4), number(0x4286, 2, 1) + number(0x42f7, 2, 1) + number(0x42f2, 2, 4) +
                                 number(0x42f3, 2, 8) + put(id(0x4282, 2), "matroska") +
                                 number(0x4287, 2, 4) + number(0x4285, 2, 2));
  const Bytes duration("\x45\x7a\0\0", 4);  // 4000 as a float: ms
  const Bytes info = put(id(0x1549a966, 4), number(0x2ad7b1, 3, 1000000) + put(id(0x4489, 2), duration));
  const Bytes video = put(id(0xe0, 1), number(0xb0, 1, 64) + number(0xba, 1, 48));
  const Bytes tracks =
      put(id(0x1654ae6b, 4),
          put(id(0xae, 1), number(0xd7, 1, 1) + number(0x73c5, 2, 1) + number(0x83, 1, 1) +
                               number(0x23e383, 3, 40000000) + put(id(0x86, 1), "V_MJPEG") + video));
  Bytes blocks = number(0xe7, 1, 0);
  const int times[] = {0, 40, 1500, 3900};
  const std::vector<Bytes> frames = pictures(64, 48);
  for (std::size_t k = 0; k < frames.size(); ++k)
    blocks += put(id(0xa3, 1), "\x81" + big_endian(times[k], 2) + "\x80" + frames[k]);
  return head + put(id(0x18538067, 4), info + tracks + put(id(0x1f43b675, 4), blocks));
}

/// The number of frames that can be read, and the message of the first that cannot.
std::pair<int, std::string> read_all(FrameSource& source) {
  std::string message;
  for (int k = 0;; ++k) try {
      source.read(k);
    } catch (const FileError& error) {
      message = error.what();
    } catch (const std::out_of_range&) {
      return {message.empty() ? k : k - 1, message};
    }
}

TEST_F(Containers, OfAviThatAreCutAreReported) {
  cv::VideoWriter writer(at("a.avi").string(), cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), 10, {64, 48});
  for (int k = 0; k < 30; ++k) writer.write(cv::Mat(48, 64, CV_8UC3, cv::Scalar::all(8 * k)));
  writer.release();
  const auto whole = open_frames({at("a.avi").string()});
  EXPECT_EQ(whole->count(), 30);
  EXPECT_EQ(read_all(*whole), (std::pair<int, std::string>{30, ""}));
  const auto cut = open_frames({put("b.avi", get("a.avi").substr(0, get("a.avi").size() * 6 / 10)).string()});
  EXPECT_NE(read_all(*cut).second, "");
}

TEST_F(Containers, OfMatroskaAreCompleteHoweverFewTheirFramesAre) {
  const Bytes whole = matroska();
  const auto source = open_frames({put("a.mkv", whole).string()});
  EXPECT_EQ(read_all(*source), (std::pair<int, std::string>{kFrames, ""}));
  EXPECT_EQ(source->count(), kFrames);
  EXPECT_EQ(source->time(2), 1.5);
  const auto cut = open_frames({put("b.mkv", whole.substr(0, whole.size() - 300)).string()});
  EXPECT_NE(read_all(*cut).second.find("shorter than it says"), std::string::npos);
}

}  // namespace
}  // namespace dic

#include "image/opencv/video_container.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "image/codecs.hpp"
#include "image/raw_file.hpp"

namespace dic::image {
namespace {

/// A part of the file.
struct Range {
  std::uint64_t begin = 0, end = 0;
};

/// The bytes at an offset; zeros behind the end of the file.
template <std::size_t kSize>
std::array<std::uint8_t, kSize> bytes_at(const RawFile& file, std::uint64_t offset) {
  std::array<std::uint8_t, kSize> bytes{};
  if (offset > file.size() || kSize > file.size() - offset || !file.read(offset, bytes)) return {};
  return bytes;
}

std::string_view characters_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t big_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

/// Calls use(type, contents) for each box of MP4 or QuickTime in a part of the file.
void for_each_box(const RawFile& file, Range part, const std::function<void(std::string_view, Range)>& use) {
  constexpr std::uint64_t kHead = 8, kLongHead = 16;
  while (part.begin + kHead <= part.end) {
    const auto head = bytes_at<kLongHead>(file, part.begin);
    std::uint64_t size = big_endian(std::span(head).first(4)), skipped = kHead;
    if (size == 1) size = big_endian(std::span(head).subspan(8)), skipped = kLongHead;
    if (size == 0) size = part.end - part.begin;
    if (size < skipped || size > part.end - part.begin) return;
    use(characters_of(std::span(head).subspan(4, 4)), {part.begin + skipped, part.begin + size});
    part.begin += size;
  }
}

/// The part of a display matrix that turns, rows first: where the axes x and y of the stored pixels go.
using Turn = std::array<int, 4>;
constexpr Turn kNoTurn = {1, 0, 0, 1};

/// Reads the signs of the 3x3 matrix (16.16 fixed point) of a box `mvhd` or `tkhd`.
Turn turn_of(const RawFile& file, Range box, std::uint64_t offset, std::uint64_t offset_with_long_times) {
  const bool has_long_times = bytes_at<1>(file, box.begin)[0] == 1;
  const auto matrix = bytes_at<20>(file, box.begin + (has_long_times ? offset_with_long_times : offset));
  const auto sign = [&](std::size_t at) {
    const auto value = static_cast<std::int32_t>(big_endian(std::span(matrix).subspan(at, 4)));
    return (value > 0) - (value < 0);
  };
  return {sign(0), sign(4), sign(12), sign(16)};
}

Turn product(const Turn& a, const Turn& b) {
  return {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
          a[2] * b[1] + a[3] * b[3]};
}

Orientation orientation_of(const Turn& turn) {
  constexpr std::array<Turn, 8> kTurns = {{kNoTurn,
                                           {-1, 0, 0, 1},
                                           {-1, 0, 0, -1},
                                           {1, 0, 0, -1},
                                           {0, 1, 1, 0},
                                           {0, 1, -1, 0},
                                           {0, -1, -1, 0},
                                           {0, -1, 1, 0}}};
  for (std::size_t i = 0; i < kTurns.size(); ++i)
    if (kTurns[i] == turn) return static_cast<Orientation>(i + 1);
  return kAsStored;
}

constexpr std::size_t kMostFrames = 1 << 22;  ///< a damaged file may claim any number

/// Pairs of numbers of 32 bits, the first of which says how often the second holds, as one list.
std::vector<std::int64_t> runs_of(const RawFile& file, Range box) {
  std::vector<std::int64_t> values;
  const std::uint64_t entries = big_endian(bytes_at<4>(file, box.begin + 4));
  for (std::uint64_t i = 0, at = box.begin + 8; i < entries && at + 8 <= box.end; ++i, at += 8) {
    const auto entry = bytes_at<8>(file, at);
    const std::uint64_t count = big_endian(std::span(entry).first(4));
    const auto value = static_cast<std::int32_t>(big_endian(std::span(entry).last(4)));
    if (count > kMostFrames - values.size()) return {};
    values.insert(values.end(), count, value);
  }
  return values;
}

/// Facts that a track of a container states about its frames.
struct Track {
  Turn turn = kNoTurn;
  bool has_pictures = false;
  std::uint64_t id = 0, ticks_per_second = 0;
  std::vector<std::int64_t> durations, shifts;  ///< ticks; how much later than decoded each is shown
};

/// Ticks at which the frames of a track are shown, in the order of decoding; empty if the file contradicts
/// itself. end: tick after the last frame.
std::vector<std::int64_t> ticks_of(const Track& track, std::int64_t& end) {
  std::vector<std::int64_t> ticks;
  end = 0;
  if (!track.shifts.empty() && track.shifts.size() != track.durations.size()) return ticks;
  for (std::size_t i = 0; i < track.durations.size(); ++i) {
    ticks.push_back(end + (track.shifts.empty() ? 0 : track.shifts[i]));
    end += track.durations[i];
  }
  return ticks;
}

/// Times at which frames are shown, in that order, s from the first.
std::vector<double> times_of(std::vector<std::int64_t> ticks, std::uint64_t ticks_per_second) {
  std::vector<double> times;
  if (ticks_per_second == 0) return times;
  std::ranges::sort(ticks);
  for (const std::int64_t tick : ticks)
    times.push_back(static_cast<double>(tick - ticks.front()) / static_cast<double>(ticks_per_second));
  return times;
}

/// Reads the fragments (`moof`) that follow a movie: a live recording writes its frames in them.
class Fragments {
 public:
  Fragments(const RawFile& file, std::uint64_t track) : file_(file), track_(track) {}

  /// Reads the defaults of all fragments: a box `mvex`.
  void read_defaults(Range extends) {
    for_each_box(file_, extends, [&](std::string_view type, Range box) {
      if (type == "trex" && number(box.begin + 4) == track_) duration_ = number(box.begin + 12);
    });
  }
  /// Adds the frames of a box `moof`. next: tick at which they begin unless they say another; becomes that
  /// after the last of them.
  void read(Range fragment, std::int64_t& next, std::vector<std::int64_t>& ticks) {
    for_each_box(file_, fragment, [&](std::string_view type, Range track) {
      if (type == "traf") read_track(track, next, ticks);
    });
  }

 private:
  std::uint64_t number(std::uint64_t offset) const { return big_endian(bytes_at<4>(file_, offset)); }
  /// The flags of a box say which of its fields are there.
  std::uint64_t flags(Range box) const { return number(box.begin) & 0xffffff; }

  void read_track(Range track, std::int64_t& next, std::vector<std::int64_t>& ticks) {
    constexpr std::uint64_t kHasOffset = 1, kHasDescription = 2, kHasDuration = 8;
    std::uint64_t duration = duration_;
    bool is_ours = false;
    for_each_box(file_, track, [&](std::string_view type, Range box) {
      if (type == "tfhd") {
        is_ours = number(box.begin + 4) == track_;
        const std::uint64_t skipped =
            (flags(box) & kHasOffset ? 8 : 0) + (flags(box) & kHasDescription ? 4 : 0);
        if (flags(box) & kHasDuration) duration = number(box.begin + 8 + skipped);
      }
      if (!is_ours) return;
      const bool is_long = bytes_at<1>(file_, box.begin)[0] == 1;
      constexpr std::uint64_t kLargestTick = std::uint64_t{1} << 53;
      if (type == "tfdt")
        next = static_cast<std::int64_t>(std::min(
            is_long ? big_endian(bytes_at<8>(file_, box.begin + 4)) : number(box.begin + 4), kLargestTick));
      if (type == "trun") read_run(box, duration, next, ticks);
    });
  }

  void read_run(Range box, std::uint64_t duration, std::int64_t& next,
                std::vector<std::int64_t>& ticks) const {
    constexpr std::uint64_t kHasDataOffset = 1, kHasFirstFlags = 4, kHasDuration = 0x100, kHasSize = 0x200,
                            kHasFlags = 0x400, kHasShift = 0x800;
    const std::uint64_t present = flags(box), count = number(box.begin + 4);
    std::uint64_t at =
        box.begin + 8 + (present & kHasDataOffset ? 4 : 0) + (present & kHasFirstFlags ? 4 : 0);
    const auto field = [&](std::uint64_t flag, std::uint64_t fallback) {
      if (!(present & flag)) return fallback;
      at += 4;
      return number(at - 4);
    };
    for (std::uint64_t i = 0; i < count && at <= box.end && ticks.size() < kMostFrames; ++i) {
      const auto lasts = static_cast<std::int64_t>(field(kHasDuration, duration));
      field(kHasSize, 0);
      field(kHasFlags, 0);
      ticks.push_back(next + static_cast<std::int32_t>(field(kHasShift, 0)));
      next += lasts;
    }
  }

  const RawFile& file_;
  std::uint64_t track_, duration_ = 0;
};

void read_media(const RawFile& file, Range media, Track& track) {
  for_each_box(file, media, [&](std::string_view type, Range box) {
    if (type == "hdlr") track.has_pictures |= characters_of(bytes_at<4>(file, box.begin + 8)) == "vide";
    if (type == "mdhd") {
      const bool has_long_times = bytes_at<1>(file, box.begin)[0] == 1;
      track.ticks_per_second = big_endian(bytes_at<4>(file, box.begin + (has_long_times ? 20 : 12)));
    }
    if (type == "minf" || type == "stbl") read_media(file, box, track);
    if (type == "stts") track.durations = runs_of(file, box);
    if (type == "ctts") track.shifts = runs_of(file, box);
  });
}

Track track_of(const RawFile& file, Range box) {
  Track track;
  for_each_box(file, box, [&](std::string_view type, Range content) {
    if (type == "tkhd") {
      const bool has_long_times = bytes_at<1>(file, content.begin)[0] == 1;
      track.id = big_endian(bytes_at<4>(file, content.begin + (has_long_times ? 20 : 12)));
      track.turn = turn_of(file, content, 40, 52);
    }
    if (type == "mdia") read_media(file, content, track);
  });
  return track;
}

/// Content of the box `moov` of a movie.
struct Movie {
  Turn turn = kNoTurn;
  Track track;                   ///< the first with pictures
  std::optional<Range> extends;  ///< set if more frames follow in fragments
};

Movie movie_of(const RawFile& file, Range content) {
  Movie movie;
  for_each_box(file, content, [&](std::string_view type, Range box) {
    if (type == "mvhd") movie.turn = turn_of(file, box, 36, 48);
    if (type == "mvex") movie.extends = box;
    if (type != "trak" || movie.track.has_pictures) return;
    if (Track track = track_of(file, box); track.has_pictures) movie.track = std::move(track);
  });
  return movie;
}

VideoContainer inspect_movie(const RawFile& file) {
  Movie movie;
  std::vector<Range> fragments;
  for_each_box(file, {0, file.size()}, [&](std::string_view type, Range box) {
    if (type == "moov") movie = movie_of(file, box);
    if (type == "moof") fragments.push_back(box);
  });
  std::int64_t next = 0;
  std::vector<std::int64_t> ticks = ticks_of(movie.track, next);
  if (movie.extends) {
    Fragments reader(file, movie.track.id);
    reader.read_defaults(*movie.extends);
    for (const Range& fragment : fragments) reader.read(fragment, next, ticks);
  }
  return {.counts_frames = !movie.extends,
          .times = times_of(std::move(ticks), movie.track.ticks_per_second),
          .orientation = orientation_of(product(movie.track.turn, movie.turn))};
}

/// The chunks of an AVI, of which one list holds the frames, and several if it is large.
struct AviChunks {
  std::string stream;  ///< first two letters of the chunks with pictures
  std::int64_t frames = 0;
  bool is_cut = false;
};

void count_chunks(const RawFile& file, Range part, AviChunks& found) {
  constexpr std::uint64_t kHead = 8, kListHead = 12;
  while (part.begin + kHead <= part.end) {
    const auto head = bytes_at<kListHead>(file, part.begin);
    const std::string_view type = characters_of(std::span(head).first(4)),
                           kind = characters_of(std::span(head).subspan(8));
    const std::uint64_t size = little_endian<std::uint32_t>(head, 4);
    const bool is_outside = size > part.end - part.begin - kHead;
    found.is_cut |= is_outside;
    const std::uint64_t end = is_outside ? part.end : part.begin + kHead + size;
    const bool is_list = type == "LIST" && (kind == "movi" || kind == "rec ");
    if (is_list || (type == "RIFF" && (kind == "AVI " || kind == "AVIX")))
      count_chunks(file, {part.begin + kListHead, end}, found);
    if (type.ends_with("dc") || type.ends_with("db")) {
      if (found.stream.empty()) found.stream = type.substr(0, 2);
      found.frames += type.starts_with(found.stream) && size > 0;
    }
    part.begin = end + size % 2;
  }
}

VideoContainer inspect_avi(const RawFile& file) {
  AviChunks found;
  count_chunks(file, {0, file.size()}, found);
  VideoContainer container{.counts_frames = true, .is_cut = found.is_cut};
  if (found.frames > 0) container.frames = found.frames;
  return container;
}

/// A number of Matroska with its length in its first bits, and the bytes that it takes; all ones mean
/// unknown.
struct LengthCoded {
  std::uint64_t value = 0, bytes = 0;
  bool is_unknown = false;
};

LengthCoded length_coded(const RawFile& file, std::uint64_t offset) {
  const auto bytes = bytes_at<8>(file, offset);
  std::uint64_t size = 1;
  while (size <= 8 && !(bytes[0] >> (8 - size) & 1)) ++size;
  if (size > 8) return {};
  const std::uint64_t mask = (std::uint64_t{1} << 7 * size) - 1;
  const std::uint64_t value = big_endian(std::span(bytes).first(size)) & mask;
  return {value, size, value == mask};
}

// Identifiers of Matroska's elements.
constexpr std::uint64_t kInfo = 0x1549a966, kTickLength = 0x2ad7b1, kTracks = 0x1654ae6b, kTrack = 0xae,
                        kTrackNumber = 0xd7, kTrackType = 0x83, kCluster = 0x1f43b675, kClusterTime = 0xe7,
                        kSimpleBlock = 0xa3, kBlockGroup = 0xa0, kBlock = 0xa1;

/// Calls use(identifier, content) for each element in a part of the file. Returns false at an element of
/// unknown length, as live recordings have.
bool for_each_child(const RawFile& file, Range part, const std::function<void(std::uint64_t, Range)>& use) {
  while (part.begin < part.end) {
    const LengthCoded head = length_coded(file, part.begin);
    if (head.bytes == 0) return true;  // no element: the rest is padding or damaged
    const std::uint64_t identifier = head.value | std::uint64_t{1} << 7 * head.bytes;
    const LengthCoded length = length_coded(file, part.begin + head.bytes);
    const std::uint64_t content = part.begin + head.bytes + length.bytes;
    if (length.is_unknown) return false;
    if (length.bytes == 0 || content > part.end) return true;
    const std::uint64_t end = length.value > part.end - content ? part.end : content + length.value;
    use(identifier, {content, end});
    part.begin = end;
  }
  return true;
}

std::uint64_t unsigned_at(const RawFile& file, Range content) {
  const std::uint64_t size = std::min<std::uint64_t>(content.end - content.begin, 8);
  return size == 0 ? 0 : big_endian(bytes_at<8>(file, content.begin)) >> 8 * (8 - size);
}

/// The blocks of the first track with pictures.
struct MatroskaFrames {
  std::uint64_t track = 0, tick_ns = 1000000;
  std::vector<std::int64_t> ticks;
  bool has_laces = false;  ///< some blocks hold several frames
};

void read_block(const RawFile& file, Range content, std::int64_t cluster, MatroskaFrames& found) {
  const LengthCoded track = length_coded(file, content.begin);
  if (track.value != found.track || track.bytes == 0 || found.ticks.size() >= kMostFrames) return;
  constexpr int kLaces = 0x06, kInvisible = 0x08;
  const auto head = bytes_at<3>(file, content.begin + track.bytes);
  if (head[2] & kInvisible) return;
  found.has_laces |= (head[2] & kLaces) != 0;
  found.ticks.push_back(cluster + static_cast<std::int16_t>(big_endian(std::span(head).first(2))));
}

void read_cluster(const RawFile& file, Range content, MatroskaFrames& found) {
  std::int64_t time = 0;
  for_each_child(file, content, [&](std::uint64_t type, Range child) {
    if (type == kClusterTime) time = static_cast<std::int64_t>(unsigned_at(file, child) & 0xffffffffffff);
    if (type == kSimpleBlock) read_block(file, child, time, found);
    if (type != kBlockGroup) return;
    for_each_child(file, child, [&](std::uint64_t inner, Range block) {
      if (inner == kBlock) read_block(file, block, time, found);
    });
  });
}

void read_tracks(const RawFile& file, Range content, MatroskaFrames& found) {
  for_each_child(file, content, [&](std::uint64_t type, Range track) {
    if (type != kTrack || found.track != 0) return;
    std::uint64_t number = 0, kind = 0;
    for_each_child(file, track, [&](std::uint64_t field, Range value) {
      if (field == kTrackNumber) number = unsigned_at(file, value);
      if (field == kTrackType) kind = unsigned_at(file, value);
    });
    if (kind == 1) found.track = number;
  });
}

VideoContainer inspect_matroska(const RawFile& file) {
  constexpr std::uint64_t kIdentifier = 4;
  const LengthCoded head = length_coded(file, kIdentifier);
  const std::uint64_t segment = kIdentifier + head.bytes + head.value;
  const LengthCoded length = length_coded(file, segment + kIdentifier);
  if (head.bytes == 0 || length.bytes == 0 || length.is_unknown) return {};
  const std::uint64_t begin = segment + kIdentifier + length.bytes;
  if (begin > file.size() || length.value > file.size() - begin) return {.is_cut = true};
  MatroskaFrames found;
  const bool is_known =
      for_each_child(file, {begin, begin + length.value}, [&](std::uint64_t type, Range part) {
        if (type == kTracks) read_tracks(file, part, found);
        if (type == kCluster) read_cluster(file, part, found);
        if (type != kInfo) return;
        for_each_child(file, part, [&](std::uint64_t field, Range value) {
          if (field == kTickLength) found.tick_ns = unsigned_at(file, value);
        });
      });
  if (!is_known || found.has_laces || found.ticks.empty()) return {};
  std::ranges::sort(found.ticks);
  VideoContainer container{.frames = std::ssize(found.ticks)};
  for (const std::int64_t tick : found.ticks)
    container.times.push_back(static_cast<double>(tick - found.ticks.front()) *
                              static_cast<double>(found.tick_ns) * 1e-9);
  return container;
}

}  // namespace

VideoContainer inspect_video(const std::filesystem::path& path) {
  const RawFile file(path);
  const auto start = bytes_at<12>(file, 0);
  const std::string_view text = characters_of(start);
  if (text.starts_with("\x1a\x45\xdf\xa3")) return inspect_matroska(file);
  if (text.starts_with("RIFF")) return inspect_avi(file);
  if (text.starts_with("GIF8")) return {.counts_frames = true};
  for (const char* type : {"ftyp", "moov", "mdat", "wide", "free", "skip"})
    if (text.substr(4, 4) == type) return inspect_movie(file);
  return {};
}

}  // namespace dic::image

#include "run/read_ahead.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <dic/error.hpp>
#include <stdexcept>
#include <thread>

namespace dic::run {
namespace {

/// Twenty images with a width of index + 1; number 7 cannot be read. Later images are read faster.
class Source : public FrameSource {
 public:
  explicit Source(bool parallel, bool says_count = true) : parallel_(parallel), says_count_(says_count) {}

  std::optional<std::int64_t> count() const override {
    return says_count_ ? std::optional<std::int64_t>(20) : std::nullopt;
  }
  std::filesystem::path file(std::int64_t) const override { return {}; }
  std::string name(std::int64_t i) const override { return "frame " + std::to_string(i); }
  bool reads_in_parallel() const override { return parallel_; }
  Image read(std::int64_t i) override {
    if (i >= 20) throw std::out_of_range("the end");
    const int now = ++readers_;
    most_readers = std::max<int>(most_readers, now);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 - i));
    --readers_;
    if (i == 7) throw FileError("frame 7 is damaged.");
    return Image({static_cast<int>(i) + 1, 1}, ScalarType::u8);
  }

  std::atomic<int> most_readers = 0;

 private:
  bool parallel_, says_count_;
  std::atomic<int> readers_ = 0;
};

void expect_all_in_order(Source& source, int frames) {
  ReadAhead ahead(source, 2, frames);
  for (std::int64_t i = 2; i < 20; ++i) {
    const std::optional<SourceFrame> frame = ahead.next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->index, i);
    EXPECT_EQ(frame->name, "frame " + std::to_string(i));
    EXPECT_EQ(frame->image.width(), i == 7 ? 0 : i + 1);
    EXPECT_EQ(frame->error, i == 7 ? "frame 7 is damaged." : "");
  }
  EXPECT_FALSE(ahead.next());
  EXPECT_FALSE(ahead.next());
}

TEST(ReadAhead, GivesAllFramesInOrderAndReadsSeveralAtOnce) {
  Source source(true);
  expect_all_in_order(source, 4);
  EXPECT_GT(source.most_readers, 1);
  EXPECT_LE(source.most_readers, 4);
}

TEST(ReadAhead, ReadsOneAtATimeWhereTheSourceWantsThat) {
  Source source(false, false);
  EXPECT_EQ(frames_ahead(source, true), 1);
  expect_all_in_order(source, frames_ahead(source, true));
  EXPECT_EQ(source.most_readers, 1);
}

TEST(ReadAhead, ReadsMoreAtOnceWhenAsked) {
  Source source(true);
  ReadAhead ahead(source, 0, 1);
  EXPECT_EQ(ahead.next()->index, 0);
  EXPECT_EQ(source.most_readers, 1);
  ahead.read_more(4);
  for (std::int64_t i = 1; i < 10; ++i) EXPECT_EQ(ahead.next()->index, i);
  EXPECT_GT(source.most_readers, 1);
}

TEST(ReadAhead, CanBeLeftInTheMiddle) {
  Source source(true);
  ReadAhead ahead(source, 0, 8);
  EXPECT_EQ(ahead.next()->index, 0);
}

/// A file whose content and stamp is a number that the first reads increase, as if it were replaced
/// meanwhile.
class ReplacedFile : public FrameSource {
 public:
  explicit ReplacedFile(int replacements) : replacements_(replacements) {}

  std::optional<std::int64_t> count() const override { return 1; }
  std::string name(std::int64_t) const override { return "frame"; }
  std::filesystem::path file(std::int64_t) const override { return "frame"; }
  std::string stamp(std::int64_t) const override { return std::to_string(content_); }
  bool reads_in_parallel() const override { return true; }
  Image read(std::int64_t) override {
    const int content = content_;
    if (replacements_-- > 0) ++content_;
    return Image({content, 1}, ScalarType::u8);
  }

 private:
  int replacements_, content_ = 1;
};

TEST(ReadAhead, TheStampIsThatOfTheFileThatWasRead) {
  for (const int replacements : {0, 1, 3}) {
    ReplacedFile source(replacements);
    ReadAhead ahead(source, 0, 1);
    const std::optional<SourceFrame> frame = ahead.next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->error, "");
    EXPECT_EQ(frame->image.width(), replacements + 1);
    EXPECT_EQ(frame->stamp, std::to_string(replacements + 1));
  }
}

TEST(ReadAhead, AFileThatAlwaysChangesIsAnError) {
  ReplacedFile source(1000);
  ReadAhead ahead(source, 0, 1);
  EXPECT_NE(ahead.next()->error.find("changes while it is read"), std::string::npos);
}

}  // namespace
}  // namespace dic::run

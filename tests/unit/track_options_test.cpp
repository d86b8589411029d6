#include <gtest/gtest.h>

#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/track_options.hpp>
#include <filesystem>
#include <map>
#include <set>

namespace {

using namespace dic;

// For every option, a value that is not its default.
const std::map<std::string, std::string> kOthers = {
    {"reference", "start.tif"},
    {"roi-rect", "1,2,30,40"},
    {"roi-polygon", "0.5,1 20,1 20,15; 30,30 40,30 40,44.25"},
    {"roi-hole", "3,4 5,4 5,6"},
    {"subset", "21"},
    {"sigma-target", "0.01"},
    {"step", "3"},
    {"order", "auto"},
    {"search", "12"},
    {"interpolation", "quintic"},
    {"prefilter", "none"},
    {"anti-bias", "true"},
    {"reference-strategy", "auto"},
    {"max-iterations", "50"},
    {"tolerance", "1e-06"},
    {"min-zncc", "0.75"},
    {"noise", "2.5"},
    {"no-split", "true"},
    {"no-outliers", "true"},
    {"global", "true"},
    {"global-resolution", "150"},
    {"strain-window", "9"},
    {"strain-measure", "hencky"},
    {"output", "results"},
    {"force", "true"},
    {"resume", "true"},
    {"scale", "0.025"},
    {"csv", "true"},
    {"csv-style", "vic"},
    {"noise-floor", "true"},
    {"fps", "25"},
    {"weights", "gaussian"},
    {"pictures", "all"},
    {"no-pictures", "true"},
    {"device", "cpu"},
    {"threads", "3"},
    {"gpu-memory", "512"},
    {"max-memory", "3G"},
};

const std::set<std::string> kReadFiles = {"roi", "camera", "times", "points"};

/// True for the same option, and for --pictures with --no-pictures, which sets one of its values.
bool share_a_value(const std::string& a, const std::string& b) {
  return a == b || (a.ends_with("pictures") && b.ends_with("pictures"));
}

TEST(TrackOptions, EveryOneIsSetAndRead) {
  std::set<std::string> names;
  for (const TrackOption& option : track_options()) {
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(names.insert(option.name).second);
    EXPECT_FALSE(option.group.empty());
    EXPECT_FALSE(option.help.empty());
    if (kReadFiles.contains(option.name)) continue;
    ASSERT_TRUE(kOthers.contains(option.name));
    const std::string& other = kOthers.at(option.name);
    TrackJob job;
    const std::string at_first = option.get(job);
    EXPECT_NE(at_first, other);
    option.set(job, other);
    EXPECT_EQ(option.get(job), other);
    for (const TrackOption& untouched : track_options()) {
      if (share_a_value(untouched.name, option.name)) continue;
      EXPECT_EQ(untouched.get(job), untouched.get(TrackJob{})) << untouched.name;
    }
    if (!at_first.empty() || option.kind == OptionKind::rect || option.kind == OptionKind::polygons) {
      option.set(job, at_first);
      EXPECT_EQ(option.get(job), at_first);
    }
  }
}

TEST(TrackOptions, ReachTheirMembers) {
  TrackJob job;
  for (const auto& [name, value] : kOthers) track_option(name).set(job, value);
  EXPECT_EQ(job.options.refine.subset, 21);
  EXPECT_TRUE(job.options.automatic_order);
  EXPECT_EQ(job.options.search, 12);
  EXPECT_EQ(job.options.prefilter, 0);
  EXPECT_EQ(job.options.reference_strategy, ReferenceStrategy::automatic);
  EXPECT_FALSE(job.options.split);
  EXPECT_FALSE(job.options.outliers.enabled);
  EXPECT_EQ(job.pictures, Pictures::all);
  EXPECT_EQ(job.roi.polygons.size(), 2u);
  EXPECT_EQ(job.roi.polygons[1][2].y, 44.25);
  EXPECT_EQ(job.roi.holes[0].size(), 3u);
  EXPECT_EQ(job.roi.rect->height, 40);
}

TEST(TrackOptions, TheOrderIsKeptUntilItIsNamed) {
  TrackJob job;
  track_option("order").set(job, "2");
  EXPECT_FALSE(job.options.automatic_order);
  EXPECT_EQ(job.options.refine.order, 2);
}

TEST(TrackOptions, ReadTheMaskAndItsName) {
  const std::string file = (std::filesystem::path(testing::TempDir()) / "track_options_mask.png").string();
  Image mask({20, 10}, ScalarType::u8);
  mask.row<std::uint8_t>(3)[4] = 255;
  write_image(file, mask);
  TrackJob job;
  track_option("roi").set(job, file);
  EXPECT_EQ(job.roi.mask.row<std::uint8_t>(3)[4], 255);
  EXPECT_EQ(track_option("roi").get(job), file);
  track_option("roi").set(job, "");
  EXPECT_TRUE(job.roi.mask.empty());
  EXPECT_THROW(track_option("roi").set(job, "no_such_mask.png"), FileError);
  EXPECT_THROW(track_option("camera").set(job, "no_such_camera.json"), FileError);
}

TEST(TrackOptions, RefuseWhatIsNoValue) {
  const std::pair<const char*, const char*> wrong[] = {{"subset", ""},
                                                       {"subset", "21x"},
                                                       {"subset", " 21"},
                                                       {"subset", "99999999999"},
                                                       {"subset", "21.0"},
                                                       {"tolerance", "nan"},
                                                       {"tolerance", "inf"},
                                                       {"tolerance", "1e999"},
                                                       {"tolerance", "0x10"},
                                                       {"search", "-1"},
                                                       {"search", "none"},
                                                       {"noise", "-0.5"},
                                                       {"sigma-target", "auto"},
                                                       {"order", "3"},
                                                       {"strain-measure", "Hencky"},
                                                       {"csv", "yes"},
                                                       {"roi-rect", "1,2,3"},
                                                       {"roi-rect", "1,,3,4"},
                                                       {"roi-rect", "1,2,3,4,"},
                                                       {"roi-polygon", "1,2 3"},
                                                       {"roi-hole", "1,2 3,4,5"},
                                                       {"prefilter", "strong"}};
  for (const auto& [name, value] : wrong) {
    SCOPED_TRACE(std::string(name) + "=" + value);
    TrackJob job;
    try {
      track_option(name).set(job, value);
      ADD_FAILURE() << "was taken";
    } catch (const UsageError& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with(std::string(name) + " needs ")) << e.what();
    }
  }
  EXPECT_THROW(track_option("subsett"), UsageError);
}

TEST(TrackOptions, NumbersAreDecimal) {
  TrackJob job;
  track_option("subset").set(job, "033");
  EXPECT_EQ(job.options.refine.subset, 33);
  for (const double value : {0.1, 1.0 / 3, 1e-300, 12345678.9}) {
    job.options.refine.tolerance = value;
    TrackJob read;
    track_option("tolerance").set(read, track_option("tolerance").get(job));
    EXPECT_EQ(read.options.refine.tolerance, value);
  }
}

}  // namespace

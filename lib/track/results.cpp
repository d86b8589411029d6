#include "track/results.hpp"

#include <algorithm>
#include <cstdio>
#include <dic/image_io.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <memory>
#include <utility>

#include "draw/result_pictures.hpp"
#include "draw/small_grey.hpp"
#include "track/noise_curve.hpp"
#include "track/run_json.hpp"

namespace dic {

namespace fs = std::filesystem;

std::set<std::int64_t> frames_to_draw(std::int64_t count) {
  constexpr std::int64_t kMost = 10, kEvery = 5;
  const std::int64_t pictures = std::min(kMost, (count + kEvery - 1) / kEvery);
  std::set<std::int64_t> frames;
  for (std::int64_t k = 1; k <= pictures; ++k) frames.insert(k * count / pictures - 1);
  return frames;
}

void Results::begin(const Grid& grid, ResultInfo info, std::int64_t first,
                    std::optional<std::int64_t> count) {
  info_ = std::move(info);
  folder_.begin();
  result_path_ = folder_.claim("result.vtkhdf");
  writer_.emplace(result_path_, grid, info_);
  for (const std::int64_t k : frames_to_draw(count.value_or(first) - first)) planned_.insert(first + k);
}

void Results::add(const Field& field, const Frame& frame, Image current) {
  const std::string stem = folder_.unique_stem(fs::path(frame.name).stem().string());
  writer_->append(field, frame.time, frame.name);
  if (job_.csv) write_csv(folder_.claim(fs::path("csv") / (stem + ".csv")), info_, field, job_.csv_style);
  if (job_.pictures != Pictures::none) {
    find_ranges(field);
    const bool last_was_planned = frames_.empty() || planned_.contains(frames_.back().frame.index);
    if (job_.pictures == Pictures::some && !last_was_planned) frames_.pop_back();
    frames_.push_back({count_, frame, stem});
    if (job_.pictures == Pictures::some) keep_image(frame, std::move(current));
  }
  ++count_;
}

void Results::find_ranges(const Field& field) {
  const float factor = static_cast<float>(info_.length_factor());
  std::vector<float> lengths(field.u.size());
  const auto add_lengths = [&](RangeFinder& finder, const NodeValues<double>& values) {
    std::ranges::transform(values, lengths.begin(), [&](double v) { return static_cast<float>(v) * factor; });
    finder.add(lengths);
  };
  const StrainField& strain = field.strain;
  const std::array strains = {&strain.exx, &strain.eyy, &strain.exy};
  threads_.parallel_for(std::ssize(strains), 1, [&](std::int64_t k, std::int64_t, int) {
    ranges_[2 + k].add({strains[k]->data(), strains[k]->size()});
  });
  add_lengths(ranges_[0], field.u);
  add_lengths(ranges_[1], field.v);
}

/// Planned frames are reduced to what a picture shows; the last is kept as it is, in case that it will be
/// drawn.
void Results::keep_image(const Frame& frame, Image current) {
  if (planned_.contains(frame.index))
    images_.emplace(frame.index, draw::small_grey(current, draw::kScreenSide));
  else
    last_image_ = std::move(current);
}

void Results::draw_pictures(const fs::path& result_path) {
  const Result result(result_path);
  std::vector<draw::Quantity> quantities;
  for (std::size_t k = 0; k < kDrawn.size(); ++k) {
    FigureOptions options = draw::options_for(result, kDrawn[k]);
    options.range = ranges_[k].range();
    options.extremes = ranges_[k].extremes();
    options.scale_bar = result.info().has_scale();
    options.outline =
        job_.roi.rect || !job_.roi.polygons.empty() || !job_.roi.holes.empty() || !job_.roi.mask.empty();
    quantities.push_back({kDrawn[k], options});
  }
  // Of all frames there are too many pixels to keep.
  const std::unique_ptr<FrameSource> source =
      job_.pictures == Pictures::all ? open_frames(job_.frames) : nullptr;
  std::vector<draw::ResultPictures::Frame> frames;
  for (const Drawn& drawn : frames_) {
    draw::ResultPictures::Frame frame;
    frame.index = drawn.index;
    frame.heading = drawn.frame.name;
    if (info_.time_unit == "s") {
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, ",  %.4g s", drawn.frame.time);
      frame.heading += seconds;
    }
    frame.image = [this, &source, index = drawn.frame.index]() -> Image {
      if (source) return draw::small_grey(source->read(index), draw::kScreenSide);
      const auto kept = images_.find(index);
      return kept != images_.end() ? std::move(kept->second) : std::move(last_image_);
    };
    for (const char* name : kDrawn)
      frame.files.push_back(folder_.claim(fs::path("pictures") / (drawn.stem + "_" + name + ".png")));
    frames.push_back(std::move(frame));
  }
  const Camera* camera = job_.options.camera ? &*job_.options.camera : nullptr;
  const draw::ResultPictures pictures(result, std::move(quantities), camera,
                                      job_.canvases ? job_.canvases : png_canvases());
  pictures.write(frames, !source || source->reads_in_parallel(), threads_);
}

void Results::finish(TrackSummary& summary) {
  writer_->finish();
  if (!frames_.empty()) draw_pictures(result_path_);
  summary.frames_drawn = std::ssize(frames_);
  if (!summary.noise_curve.empty()) {
    track::write_noise_table(folder_.claim("noise_curve.csv"), summary.noise_curve);
    track::write_noise_picture(folder_.claim("noise_curve.png"), summary.noise_curve);
  }
  write_text_file(folder_.claim("run.json"), run_json(job_, summary));
  folder_.commit();
}

}  // namespace dic

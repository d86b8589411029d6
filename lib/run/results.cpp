#include "run/results.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "draw/result_pictures.hpp"
#include "draw/small_grey.hpp"
#include "run/noise_curve_files.hpp"
#include "run/run_json.hpp"

namespace dic::run {

namespace fs = std::filesystem;

std::set<std::int64_t> frames_to_draw(std::int64_t count) {
  constexpr std::int64_t kMost = 10, kEvery = 5;
  const std::int64_t pictures = std::min(kMost, (count + kEvery - 1) / kEvery);
  std::set<std::int64_t> frames;
  for (std::int64_t k = 1; k <= pictures; ++k) frames.insert(k * count / pictures - 1);
  return frames;
}

OutputFolder::Earlier earlier_of(const TrackJob& job) {
  if (job.resume) return OutputFolder::Earlier::resume;
  return job.force ? OutputFolder::Earlier::replace : OutputFolder::Earlier::refuse;
}

Results::Results(const TrackJob& job, bool can_be_continued)
    : job_(job),
      can_be_continued_(can_be_continued),
      folder_(job.output, earlier_of(job)),
      threads_(job.options.threads) {
  // The first canvas looks for fonts, which takes 10 ms.
  if (job.pictures != Pictures::none)
    finding_fonts_ =
        std::async(std::launch::async, [this] { canvases()(1, 1)->width_of("0", FigureOptions().font); });
}

CanvasFactory Results::canvases() const { return job_.canvases ? job_.canvases : png_canvases(); }

std::optional<RunLog::Contents> Results::earlier() const {
  if (folder_.resumed().empty()) return {};
  return Journal<FrameSummary>::read(folder_.resumed());
}

Result Results::earlier_result() const { return Result(folder_.resumed() / "result.vtkhdf"); }

std::vector<std::byte> Results::state_after(std::int64_t index) const {
  return Journal<FrameSummary>::state_after(folder_.resumed(), index);
}

void Results::begin(const Grid& grid, ResultInfo info, std::int64_t first, std::optional<std::int64_t> count,
                    const RunLog::Contents& done) {
  info_ = std::move(info);
  folder_.begin();
  result_path_ = folder_.claim("result.vtkhdf");
  plan_pictures(first, count);
  if (count) last_frame_ = *count - 1;
  is_resumed_ = !folder_.resumed().empty() && std::ranges::any_of(done.frames, &RunLog::Done::was_measured);
  if (is_resumed_)
    resume(done, grid);
  else
    grid_ = grid;
  is_begun_ = true;
  journal_.emplace(folder_, result_path_, done, can_be_continued_);
  run_path_ = folder_.claim("run.json");
}

void Results::plan_pictures(std::int64_t first, std::optional<std::int64_t> count) {
  for (const std::int64_t k : frames_to_draw(count.value_or(first) - first)) planned_.insert(first + k);
}

void Results::resume(const RunLog::Contents& done, const Grid& grid) {
  const auto measured = std::ranges::count_if(done.frames, &RunLog::Done::was_measured);
  writer_.emplace(VtkHdfWriter::resume(result_path_, measured, grid, info_));
  add_earlier_frames(done);
}

/// Opens the file in the background, so that drawing of the last picture begins first.
void Results::open_writer() {
  if (!writer_) writer_.emplace(result_path_, grid_, info_);
}

void Results::join(const Grid& grid, ResultInfo info, std::int64_t first, std::int64_t count,
                   std::span<const ResultPart> parts) {
  info_ = std::move(info);
  folder_.begin();
  result_path_ = folder_.claim("result.vtkhdf");
  plan_pictures(first, count);
  if (parts.empty())
    VtkHdfWriter(result_path_, grid, info_).finish();
  else
    VtkHdfWriter::join(result_path_, grid, info_, parts);
}

void Results::take_joined(const RunLog::Contents& done, std::span<const fs::path> tables) {
  const std::vector<std::string> stems = add_earlier_frames(done);
  if (job_.csv) place_tables(stems, tables);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(job_.output / "parts"))
    if (entry.is_regular_file()) folder_.adopt(entry.path().lexically_relative(job_.output));
  journal_.emplace(folder_, result_path_, done, true);
  run_path_ = folder_.claim("run.json");
}

void Results::place_tables(const std::vector<std::string>& stems, std::span<const fs::path> tables) {
  std::optional<Result> result;
  for (std::size_t k = 0; k < stems.size(); ++k) {
    const fs::path table = fs::path("csv") / (stems[k] + ".csv");
    if (k < tables.size()) {
      if (fs::exists(tables[k])) fs::rename(tables[k], folder_.claim(table));
      continue;
    }
    if (!result) result.emplace(result_path_);
    write_table(folder_.claim(table), result->field(static_cast<int>(k)));
  }
}

/// Adds the frames of an earlier run: pictures need from each frame what `add` keeps. Returns the stems of
/// the measured frames.
std::vector<std::string> Results::add_earlier_frames(const RunLog::Contents& done) {
  std::vector<std::string> stems;
  std::optional<Result> result;
  if (job_.pictures != Pictures::none && std::ranges::any_of(done.frames, &RunLog::Done::was_measured))
    result.emplace(result_path_);
  int number = 0;
  for (const RunLog::Done& frame : done.frames) {
    ++number;
    if (!frame.was_measured()) continue;
    const std::string& name = frame.summary.file;
    const std::string stem = folder_.unique_stem(fs::path(name).stem().string());
    const double time = info_.time_unit == "s" ? frame.summary.time.value_or(NAN) : number;
    if (result) add_picture(result->field(count_), {frame.index, time, name, number}, stem);
    stems.push_back(stem);
    ++count_;
  }
  return stems;
}

void Results::add(const Field& field, const Frame& frame, Image current, std::vector<std::byte> state) {
  const bool needs_stem = job_.csv || job_.pictures != Pictures::none;  // stems take memory
  const std::string stem = needs_stem ? folder_.unique_stem(fs::path(frame.name).stem().string()) : "";
  if (job_.pictures != Pictures::none) add_picture(field, frame, stem);
  if (job_.pictures != Pictures::none && frame.index == last_frame_)
    begin_last_picture(field, std::move(current));
  else if (job_.pictures == Pictures::some)
    keep_image(frame, std::move(current));
  open_writer();
  writer_->add(field, frame.time, frame.name, frame.number);
  if (job_.csv) write_table(folder_.claim(fs::path("csv") / (stem + ".csv")), field);
  journal_->set_state(frame.index, std::move(state));
  ++count_;
}

void Results::write_table(const fs::path& path, const Field& field) const {
  if (field.stereo.x.empty())
    write_csv(path, info_, field, job_.csv_style, threads_.size());
  else
    write_stereo_csv(path, field, threads_.size());
}

void Results::add_picture(const Field& field, const Frame& frame, const std::string& stem) {
  find_ranges(field);
  const bool last_was_planned = frames_.empty() || planned_.contains(frames_.back().frame.index);
  if (job_.pictures == Pictures::some && !last_was_planned) frames_.pop_back();
  frames_.push_back({count_, frame, stem});
}

void Results::note(RunLog::Done done, const TrackSummary& summary) {
  constexpr double kPublishSeconds =
      0.02;  // time whose frames may be lost; fewer writes allow more frames per second
  journal_->note(std::move(done));
  if (!is_reported_ || since_publish_.seconds() > kPublishSeconds) publish(summary);
}

void Results::publish(const TrackSummary& summary) {
  constexpr double kReportSeconds = 1;
  if (writer_) writer_->publish();
  if (journal_) journal_->write();  // absent if its file could not be opened
  since_publish_ = {};
  if (!is_reported_ || since_report_.seconds() > kReportSeconds) {
    write_run(summary, RunState::running);
    is_reported_ = true;
    since_report_ = {};
  }
}

void Results::write_run(const TrackSummary& summary, RunState state) {
  write_text_file(run_path_, run_json(job_, info_.settings_json, summary, state));
}

void Results::find_ranges(const Field& field) {
  const auto factor = static_cast<float>(info_.length_factor());
  const auto add = [&](std::int64_t k) {
    visit_values(field, kDrawnArrays[k], [&]<typename T>(const NodeValues<T>& values) {
      if constexpr (std::is_same_v<T, float>)
        if (!kDrawnArrays[k].is_length()) return ranges_[k].add({values.data(), values.size()});
      std::vector<float> numbers(values.size());
      std::ranges::transform(values, numbers.begin(), [&](T value) {
        return kDrawnArrays[k].is_length() ? static_cast<float>(value) * factor : static_cast<float>(value);
      });
      ranges_[k].add(numbers);
    });
  };
  threads_.parallel_for(std::ssize(kDrawnArrays), 1, [&](std::int64_t k, std::int64_t, int) { add(k); });
}

/// Keeps the image of a frame for a picture: reduced to what a picture shows if the frame is planned. The
/// last one is kept as it is, in case it will be drawn.
void Results::keep_image(const Frame& frame, Image current) {
  if (planned_.contains(frame.index))
    images_.emplace(frame.index, draw::small_grey(current, draw::kScreenSide));
  else
    last_image_ = {frame.index, std::move(current)};
}

std::vector<draw::Quantity> Results::quantities() const {
  std::vector<draw::Quantity> quantities;
  for (std::size_t k = 0; k < kDrawnArrays.size(); ++k) {
    const std::string name(kDrawnArrays[k].name);
    FigureOptions options =
        draw::options_for(info_, name, kDrawnArrays[k].is_length() ? info_.length_unit() : "1");
    options.range = ranges_[k].range();
    options.extremes = ranges_[k].extremes();
    options.scale_bar = info_.has_scale();
    options.outline =
        job_.roi.rect || !job_.roi.polygons.empty() || !job_.roi.holes.empty() || !job_.roi.mask.empty();
    quantities.push_back({name, options});
  }
  return quantities;
}

fs::path Results::picture_name(const Drawn& drawn, const FieldArray& array) {
  return fs::path("pictures") / (drawn.stem + "_" + std::string(array.name) + ".png");
}

/// Returns everything that a picture shows except the image.
draw::ResultPictures::Frame Results::picture_of(const Drawn& drawn) {
  draw::ResultPictures::Frame picture;
  picture.index = drawn.index;
  picture.heading = drawn.frame.name;
  if (info_.time_unit == "s") {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, ",  %.4g s", drawn.frame.time);
    picture.heading += seconds;
  }
  for (const FieldArray& array : kDrawnArrays)
    picture.files.push_back(folder_.claim(picture_name(drawn, array)));
  return picture;
}

void Results::draw(const draw::DrawnFields& fields, std::span<const draw::ResultPictures::Frame> pictures,
                   bool parallel_images) {
  draw::ResultPictures(fields, quantities(), canvases()).write(pictures, parallel_images, threads_);
}

/// Draws the last picture from memory while the result is written. All colour ranges are known by then.
void Results::begin_last_picture(const Field& field, Image current) {
  auto picture = picture_of(frames_.back());
  frames_.pop_back();
  drawing_last_ =
      std::async(std::launch::async, [this, fields = std::make_unique<draw::MeasuredField>(field, info_),
                                      image = std::move(current), picture = std::move(picture)]() mutable {
        picture.image = [&] { return std::move(image); };
        draw(*fields, std::span(&picture, 1), true);
      });
}

/// Draws the pictures that are not drawn yet.
void Results::draw_pictures(FrameSource& source) {
  // A video has been read to its end and has to be opened again.
  const bool is_video = !source.reads_in_parallel();
  const std::unique_ptr<FrameSource> again = is_video ? open_frames(job_.frames) : nullptr;
  std::vector<draw::ResultPictures::Frame> pictures;
  for (const Drawn& drawn : frames_) {
    pictures.push_back(picture_of(drawn));
    // Images of all frames would not fit into memory, and an earlier run left none.
    pictures.back().image = [&, index = drawn.frame.index]() -> Image {
      if (const auto kept = images_.find(index); kept != images_.end()) return std::move(kept->second);
      if (index == last_image_.first && !last_image_.second.empty()) return std::move(last_image_.second);
      return draw::small_grey((again ? *again : source).read(index), draw::kScreenSide);
    };
  }
  const Result result(result_path_);
  draw(draw::ResultFields(result, job_.options.camera ? &*job_.options.camera : nullptr), pictures,
       !is_video);
}

bool Results::lacks_pictures() const {
  return std::ranges::any_of(frames_, [&](const Drawn& drawn) {
    return std::ranges::any_of(kDrawnArrays, [&](const FieldArray& array) {
      return !fs::exists(result_path_.parent_path() / picture_name(drawn, array));
    });
  });
}

std::int64_t Results::complete_earlier(const RunLog::Contents& done, std::int64_t first,
                                       FrameSource& source) {
  if (!folder_.resumes_a_collection() && job_.pictures == Pictures::none) return 0;
  folder_.begin();
  result_path_ = folder_.claim("result.vtkhdf");
  info_ = Result(result_path_).info();
  plan_pictures(first, source.count());
  add_earlier_frames(done);
  const std::int64_t drawn = lacks_pictures() ? std::ssize(frames_) : 0;
  if (drawn > 0) {
    draw_pictures(source);
    run_path_ = folder_.claim("run.json");
    note_pictures(run_path_, job_.pictures, drawn);
  }
  folder_.commit();
  return drawn;
}

void Results::finish(TrackSummary& summary, FrameSource& source) {
  const track::Stopwatch watch;
  if (is_begun_) {
    open_writer();
    publish(summary);
    writer_->finish();
  }
  summary.frames_drawn = std::ssize(frames_) + (drawing_last_.valid() ? 1 : 0);
  if (drawing_last_.valid()) drawing_last_.get();
  if (!frames_.empty()) draw_pictures(source);
  if (!summary.noise_curve.empty()) {
    write_noise_table(folder_.claim("noise_curve.csv"), summary.noise_curve);
    write_noise_picture(folder_.claim("noise_curve.png"), summary.noise_curve);
  }
  if (journal_) journal_->finish(summary.interrupted);  // later frames need the state of the last one
  const double seconds = watch.seconds();
  summary.seconds.write += seconds;
  summary.seconds.total += seconds;
  write_run(summary, summary.interrupted ? RunState::interrupted : RunState::complete);
  folder_.commit();
}

fs::path Results::keep(const TrackSummary& summary) {
  if (drawing_last_.valid()) drawing_last_.wait();     // the task writes to the folder
  if (folder_.is_committing()) return folder_.keep();  // everything is written
  try {
    publish(summary);
  } catch (const FileError&) {  // only the frames noted last are lost
  }
  writer_.reset();
  const fs::path place = folder_.keep();
  try {
    write_run(summary, RunState::interrupted);
  } catch (const FileError&) {  // the report of a second ago stays
  }
  return place;
}

}  // namespace dic::run

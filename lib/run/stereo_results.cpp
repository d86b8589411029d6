#include "run/stereo_results.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <memory>
#include <set>
#include <utility>

#include "run/results.hpp"
#include "run/run_json.hpp"
#include "run/stereo_json.hpp"

namespace dic::run {

namespace fs = std::filesystem;

StereoResults::StereoResults(const StereoJob& job)
    : job_(job), folder_(job.track.output, earlier_of(job.track)) {}

std::optional<StereoLog::Contents> StereoResults::earlier() const {
  if (folder_.resumed().empty()) return {};
  return Journal<StereoFrameSummary>::read(folder_.resumed());
}

void StereoResults::begin(const Grid& grid, const ResultInfo& info, const StereoLog::Contents& done,
                          const StereoSummary& summary) {
  folder_.begin();
  result_path_ = folder_.claim("result.vtkhdf");
  in_seconds_ = info.time_unit == "s";
  surface_.emplace(folder_.claim("surface.vtkhdf"), info);
  if (folder_.resumed().empty()) {
    result_.emplace(result_path_, grid, info);
  } else {
    add_earlier(done);
    result_.emplace(VtkHdfWriter::resume(result_path_, std::ssize(written_), grid, info));
  }
  if (job_.options.correct_rig) write_camera_rig(folder_.claim("stereo.json"), summary.rig);
  journal_.emplace(folder_, result_path_, done, true);
  run_path_ = folder_.claim("run.json");
}

/// Takes the pairs of an earlier run. The surface file exists only when a run is complete, and is made again.
void StereoResults::add_earlier(const StereoLog::Contents& done) {
  std::optional<Result> result;
  if (surface_) result.emplace(result_path_);
  for (const StereoLog::Done& frame : done.frames) {
    if (!frame.was_measured()) continue;
    const double time = in_seconds_ ? frame.summary.time.value_or(NAN) : static_cast<double>(frame.index);
    if (surface_) surface_->add(result->field(static_cast<int>(written_.size())), time);
    take({frame.index, time, frame.summary.left});
  }
}

void StereoResults::take(Pair pair) {
  const std::string stem = folder_.unique_stem(fs::path(pair.name).stem().string());
  written_.push_back({std::move(pair), stem});
}

void StereoResults::add(const Field& field, Pair pair, std::vector<std::byte> state) {
  take(std::move(pair));
  const Written& written = written_.back();
  result_->append(field, written.pair.time, written.pair.name, written.pair.number);
  surface_->add(field, written.pair.time);
  if (job_.track.csv)
    write_stereo_csv(folder_.claim(fs::path("csv") / (written.stem + ".csv")), field,
                     job_.track.options.threads);
  journal_->set_state(written.pair.number, std::move(state));
}

void StereoResults::note(StereoLog::Done done, const StereoSummary& summary) {
  constexpr double kReportSeconds = 1;
  journal_->note(std::move(done));
  journal_->write();
  if (is_reported_ && since_report_.seconds() < kReportSeconds) return;
  write_run(summary, RunState::running);
  is_reported_ = true;
  since_report_ = {};
}

void StereoResults::write_run(const StereoSummary& summary, RunState state) {
  write_text_file(run_path_, stereo_run_json(job_, summary, state));
}

/// Places in written_ of the pairs to draw. count: number of pairs of the whole run; 0 = unknown.
std::vector<std::size_t> StereoResults::pairs_to_draw(std::int64_t count) const {
  std::vector<std::size_t> places;
  if (job_.track.pictures == Pictures::none || written_.empty()) return places;
  std::set<std::int64_t> planned = frames_to_draw(count > 0 ? count : written_.back().pair.number + 1);
  planned.insert({0, written_.back().pair.number});
  for (std::size_t k = 0; k < written_.size(); ++k)
    if (job_.track.pictures == Pictures::all || planned.contains(written_[k].pair.number))
      places.push_back(k);
  return places;
}

/// The shape, and displacement and strain where there are any.
std::vector<std::string_view> StereoResults::drawn_arrays(const Pair& pair) {
  if (pair.number == 0) return {"Z"};
  return {"Z", "W", "e1"};
}

fs::path StereoResults::picture_name(const std::string& stem, std::string_view array) {
  return fs::path("pictures") / (stem + "_" + std::string(array) + ".png");
}

std::int64_t StereoResults::draw_pictures(ImagePairs& images, std::int64_t count) {
  const std::vector<std::size_t> places = pairs_to_draw(count);
  if (places.empty()) return 0;
  // A video has been read to its end and has to be opened again.
  const auto again =
      images.left().reads_in_parallel() ? std::unique_ptr<FrameSource>() : open_frames(job_.track.frames);
  FrameSource& source = again ? *again : images.left();
  const Result result(result_path_);
  std::int64_t drawn = 0;
  for (const std::size_t k : places) {
    Image left;
    try {
      left = source.read(images.left_index(written_[k].pair.number));
    } catch (const FileError&) {  // it is gone; what was measured is not
      continue;
    }
    draw(result.field(static_cast<int>(k)), left, written_[k]);
    ++drawn;
  }
  return drawn;
}

void StereoResults::draw(const Field& field, ImageView left, const Written& written) {
  for (const std::string_view name : drawn_arrays(written.pair)) {
    const FieldArray& array = *find_field_array(name);
    std::vector<float> values(field.status.size());
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(value_at(field, array, k));
    FigureOptions options;
    options.symbol = array.symbol.empty() ? std::string(name) : std::string(array.symbol);
    options.unit = array.is_strain() ? "" : array.unit_in("px");
    options.heading = written.pair.name;
    if (in_seconds_) {
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, ",  %.4g s", written.pair.time);
      options.heading += seconds;
    }
    write_field_picture(folder_.claim(picture_name(written.stem, name)), left, field, values, options,
                        job_.track.canvases ? job_.track.canvases : png_canvases());
  }
}

bool StereoResults::lacks_pictures(std::int64_t count) const {
  return std::ranges::any_of(pairs_to_draw(count), [&](std::size_t k) {
    return std::ranges::any_of(drawn_arrays(written_[k].pair), [&](std::string_view array) {
      return !fs::exists(result_path_.parent_path() / picture_name(written_[k].stem, array));
    });
  });
}

std::int64_t StereoResults::complete_earlier(const StereoLog::Contents& done, ImagePairs& images) {
  if (!folder_.resumes_a_collection() && job_.track.pictures == Pictures::none) return 0;
  folder_.begin();
  result_path_ = folder_.claim("result.vtkhdf");
  in_seconds_ = Result(result_path_).info().time_unit == "s";
  add_earlier(done);
  const std::int64_t count = images.count().value_or(0);
  std::int64_t drawn = 0;
  if (lacks_pictures(count)) {
    drawn = draw_pictures(images, count);
    run_path_ = folder_.claim("run.json");
    note_pictures(run_path_, job_.track.pictures, drawn);
  }
  folder_.commit();
  return drawn;
}

void StereoResults::finish(StereoSummary& summary, ImagePairs& images) {
  const track::Stopwatch watch;
  journal_->write();
  result_->finish();
  surface_->finish();
  summary.frames_drawn = draw_pictures(images, summary.frames_given.value_or(0));
  journal_->finish(summary.interrupted);
  const double seconds = watch.seconds();
  summary.seconds.write += seconds;
  summary.seconds.total += seconds;
  write_run(summary, summary.interrupted ? RunState::interrupted : RunState::complete);
  folder_.commit();
}

fs::path StereoResults::keep(const StereoSummary& summary) {
  if (folder_.is_committing()) return folder_.keep();  // everything is written
  try {
    if (journal_) journal_->write();
  } catch (const FileError&) {  // only the pairs noted last are lost
  }
  result_.reset();
  const fs::path place = folder_.keep();
  try {
    write_run(summary, RunState::interrupted);
  } catch (const FileError&) {  // the report of a second ago stays
  }
  return place;
}

}  // namespace dic::run

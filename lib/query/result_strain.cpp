#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <dic/io.hpp>
#include <dic/result_strain.hpp>
#include <dic/track_files.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "fields/strain.hpp"
#include "global/global_step.hpp"
#include "io/hdf5_file.hpp"
#include "io/hdf5_input.hpp"
#include "io/pending_file.hpp"
#include "io/vtkhdf_layout.hpp"
#include "run/output_folder.hpp"
#include "run/replacement.hpp"
#include "run/run_log.hpp"
#include "run/strain_summary.hpp"

namespace dic {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// field_strain() on the threads of a caller.
StrainField strain_of(const Field& field, const ResultStrain& basis, const StrainOptions& options,
                      core::ThreadPool& pool) {
  if (basis.global.enabled && basis.subsets)
    return fields::compute_strain(field, options, pool,
                                  global::global_errors(field, *basis.subsets, basis.global, pool),
                                  *basis.subsets);
  return fields::compute_strain(field, options, pool, basis.subsets);
}

/// An empty object where the text is none.
Json parsed(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  return json.is_object() ? json : Json::object();
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void set_strain(Json& settings, const StrainOptions& strain) {
  settings["strain_window"] = strain.window;
  settings["strain_measure"] = to_string(strain.measure);
}

/// Summaries of one frame as run.json has them, one for each of kStrainComponents.
using StrainSummaries = std::array<FrameSummary::Strain, kStrainComponents.size()>;

/// The run.json of a result with other strain. Frames are found by their names, in order: those with errors
/// are not in the result.
std::string changed_run_json(const std::string& text, const ResultStrainJob& job,
                             const std::vector<StrainSummaries>& summaries) {
  Json json = parsed(text);
  set_strain(json["settings"], job.strain);
  json["strain_command"] = job.command;
  std::size_t next = 0;
  std::array<double, kStrainComponents.size()> sigmas{};
  if (json.contains("frames") && json["frames"].is_array())
    for (Json& frame : json["frames"]) {
      if (!frame.is_object() || !frame.contains("counts") || next == summaries.size()) continue;
      for (std::size_t k = 0; k < kStrainComponents.size(); ++k) {
        run::describe_strain(frame, kStrainComponents[k].name, summaries[next][k]);
        sigmas[k] += summaries[next][k].sigma;
      }
      ++next;
    }
  if (json.contains("noise_floor") && json["noise_floor"].is_object() && next > 0)
    for (std::size_t k = 0; k < kStrainComponents.size(); ++k)
      json["noise_floor"][std::string(sigma_of(kStrainComponents[k])->name)] =
          sigmas[k] / static_cast<double>(next);
  return dump(json, 2) + "\n";
}

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// shown: name of `to` in messages.
void copy_whole(const fs::path& from, const fs::path& to, const fs::path& shown) {
  std::error_code failure;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, failure);
  if (failure) throw_cannot_write(shown, failure.value());
}

/// Replaces the strain in the copy of a result.
class Change {
 public:
  Change(const Result& result, const ResultStrainJob& job, const fs::path& copy)
      : result_(result), job_(job), file_(hdf5::OutputFile::open(copy)) {
    describe();
  }

  void write(int frame, const Field&, const StrainField& strain) {
    for (const FieldArray& array : kStrainArrays)
      file_.write_item(io::path_of(array), static_cast<std::uint64_t>(frame),
                       strain_values(strain, array).data());
  }
  void finish() { file_.close(); }

 private:
  void describe() {
    const auto window = static_cast<std::int64_t>(job_.strain.window);
    for (const std::string& group : {io::kAbout, std::string("/")}) {
      file_.set_attribute(group, "strain_measure", to_string(job_.strain.measure));
      file_.set_attribute(group, "strain_window", window);
    }
    for (const FieldArray& array : kStrainArrays)
      if (result_.has(array.name))
        file_.set_attribute(io::path_of(array), "measure", to_string(job_.strain.measure));
    Json settings = parsed(result_.info().settings_json);
    set_strain(settings, job_.strain);
    file_.write_text(io::kAbout + "/settings", dump(settings, -1));
    file_.write_text(io::kAbout + "/strain_command", job_.command);
  }

  const Result& result_;
  const ResultStrainJob& job_;
  hdf5::OutputFile file_;
};

/// Writes a result anew, with another strain. One that several processes measured is a view of their files,
/// which hold the strain: what replaces it is one file with everything.
class Rewriting {
 public:
  Rewriting(const Result& result, const ResultStrainJob& job, const fs::path& file)
      : result_(result), job_(job), path_(file), writer_(file, result.grid(), changed_info(result, job)) {}

  void write(int frame, Field field, StrainField strain) {
    field.strain = std::move(strain);
    writer_.append(field, result_.times()[frame], result_.frame_names()[frame],
                   result_.frame_numbers()[frame]);
  }
  void finish() {
    writer_.finish();
    hdf5::OutputFile file = hdf5::OutputFile::open(path_);
    file.write_text(io::kAbout + "/strain_command", job_.command);
    file.close();
  }

 private:
  static ResultInfo changed_info(const Result& result, const ResultStrainJob& job) {
    ResultInfo info = result.info();
    info.strain = job.strain;
    Json settings = parsed(info.settings_json);
    set_strain(settings, job.strain);
    info.settings_json = dump(settings, -1);
    return info;
  }

  const Result& result_;
  const ResultStrainJob& job_;
  fs::path path_;
  VtkHdfWriter writer_;
};

/// Hands the strain of every frame to a `Change` or `Rewriting`. Returns the summaries.
template <typename Writer>
std::vector<StrainSummaries> write_strain(Writer writer, const Result& result, const ResultStrainJob& job,
                                          const ProgressCallback& progress, const std::stop_token& stop) {
  core::ThreadPool pool(job.threads);
  const ResultStrain basis = strain_basis(result);
  std::vector<StrainSummaries> summaries;
  for (int frame = 0; frame < result.frame_count(); ++frame) {
    if (stop.stop_requested()) throw Cancelled("Interrupted: the result is as it was.");
    if (progress) progress({"strain", frame + 1, result.frame_count(), 0, 0});
    Field field = result.field(frame);
    StrainField strain = strain_of(field, basis, job.strain, pool);
    summaries.push_back(run::summarize_strain(strain, result.grid(), result.positions().get(),
                                              result.info().length_factor()));
    writer.write(frame, std::move(field), std::move(strain));
  }
  writer.finish();
  return summaries;
}

bool is_view_of_parts(const Result& result) {
  return !result.arrays().empty() &&
         hdf5::InputFile(result.path()).is_virtual(io::kPointData + result.arrays().front().name);
}

void check(const Result& result, const StrainOptions& options) {
  for (const std::string& problem : options.validate()) throw UsageError(problem);
  for (const FieldArray& array : kStrainArrays)
    if (result.frame_count() > 0 && !result.has(array.name))
      throw FileError("'" + result.path().string() + "' lacks the array " + std::string(array.name) +
                      ": measure again with this version of dic.");
}

/// Writes both files. `path_of(name)`: where a file goes.
template <typename PathOf>
void write(const Result& result, const ResultStrainJob& job, const ProgressCallback& progress,
           const std::stop_token& stop, const PathOf& path_of) {
  const fs::path run_json = result.path().parent_path() / "run.json";
  const bool is_of_run = result.path().filename() == "result.vtkhdf" && fs::is_regular_file(run_json);
  const std::string run = is_of_run ? read_text(run_json) : std::string();
  PendingFile target(path_of(result.path().filename()));
  std::vector<StrainSummaries> summaries;
  if (is_view_of_parts(result)) {
    summaries = write_strain(Rewriting(result, job, target.temporary()), result, job, progress, stop);
  } else {
    copy_whole(result.path(), target.temporary(),
               job.output.empty() ? result.path() : job.output / "result.vtkhdf");
    summaries = write_strain(Change(result, job, target.temporary()), result, job, progress, stop);
  }
  run::sync_to_disk(target.temporary());  // it may replace the only one
  target.commit();
  if (!run.empty()) write_text_file(path_of("run.json"), changed_run_json(run, job, summaries));
}

bool is_regular(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::regular;
}

/// Changes the result itself. Its two files are replaced as one step if they are files of a folder, not links
/// to others.
void change(const fs::path& path, const ResultStrainJob& job, const ProgressCallback& progress,
            const std::stop_token& stop) {
  const fs::path place = path.has_parent_path() ? path.parent_path() : ".";
  if (run::has_unfinished_replacement(place)) run::OutputFolder(place, run::OutputFolder::Earlier::change);
  if (path.filename() != "result.vtkhdf" || !is_regular(path) || !is_regular(place / "run.json")) {
    const Result result(path);
    check(result, job.strain);
    return write(result, job, progress, stop, [&](const fs::path& name) { return place / name; });
  }
  run::OutputFolder folder(place, run::OutputFolder::Earlier::change);
  const Result result(path);  // opened now: a commit that was cut off has replaced the file just before
  check(result, job.strain);
  folder.begin();
  write(result, job, progress, stop, [&](const fs::path& name) { return folder.claim(name); });
  folder.commit();
}

}  // namespace

ResultStrain strain_basis(const Result& result) {
  if (result.has("Z"))
    throw UsageError(
        "The strain of this result is that of a surface in 3-D, which is computed with the "
        "measurement: choose window and measure there.");
  const Json settings = parsed(result.info().settings_json);
  ResultStrain basis;
  if (settings.contains("global") && settings["global"] == true) {
    basis.global.enabled = true;
    if (settings.contains("global_resolution") && settings["global_resolution"].is_number())
      basis.global.resolution = settings["global_resolution"].get<double>();
  }
  const bool is_old = !settings.contains("order") || (basis.global.enabled && !result.has("resolution"));
  if (is_old) {
    basis.no_sigma_reason =
        "The result is of an older version of dic, and does not say how its errors are related: the strain "
        "has no sigma.";
    return basis;
  }
  MeasuredSubsets& subsets = basis.subsets.emplace();
  subsets.size = result.info().subset;
  // If orders are mixed and the points do not store theirs, order 2 is assumed, whose errors are less
  // alike: sigma is then too large.
  subsets.order = settings["order"].is_number_integer() ? settings["order"].get<int>() : 2;
  if (settings.contains("weights") && settings["weights"].is_string())
    subsets.weights =
        from_name<SubsetWeights>(settings["weights"].get<std::string>()).value_or(SubsetWeights::uniform);
  return basis;
}

StrainField field_strain(const Field& field, const ResultStrain& basis, const StrainOptions& options,
                         int threads) {
  core::ThreadPool pool(threads);
  return strain_of(field, basis, options, pool);
}

StrainField result_strain(const Result& result, int frame, const StrainOptions& options, int threads) {
  return field_strain(result.field(frame), strain_basis(result), options, threads);
}

fs::path write_result_strain(const ResultStrainJob& job, const ProgressCallback& progress,
                             std::stop_token stop) {
  if (job.output.empty()) {
    const fs::path path = Result(job.result).path();
    change(path, job, progress, stop);
    return path;
  }
  const Result result(job.result);
  check(result, job.strain);
  std::error_code unknown;
  if (fs::equivalent(job.output, result.path().parent_path(), unknown))
    throw UsageError(job.output.string() +
                     " is the folder of the result itself: give another with -o, or --in-place.");
  run::OutputFolder folder(
      job.output, job.force ? run::OutputFolder::Earlier::replace : run::OutputFolder::Earlier::refuse);
  folder.begin();
  write(result, job, progress, stop, [&](const fs::path& name) {
    return folder.claim(name == "run.json" ? name : fs::path("result.vtkhdf"));
  });
  folder.commit();
  return job.output / "result.vtkhdf";
}

}  // namespace dic

#include "export/export.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <utility>

#include "export/mesh.hpp"
#include "export/selection.hpp"

namespace dic::exporting {
namespace {

namespace fs = std::filesystem;

/// Has a file per frame, whose ending this is; empty for one file.
std::string_view ending_of_frames(Format format) {
  switch (format) {
    case Format::vtu:
      return ".vtu";
    case Format::ply:
      return ".ply";
    case Format::nodemap:
      return ".txt";
    case Format::matchid:
      return ".csv";
    default:
      return {};
  }
}

/// Makes the folder of the files. Throws FileError if it has others of their kind, which readers would take
/// for frames of this result.
void make_folder(const fs::path& folder, const Selection& selection, std::string_view ending) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw FileError("Cannot make the folder " + folder.string() + " (" + error.message() + ").");
  const std::vector<std::string> stems = selection.stems();
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ending &&
        std::ranges::find(stems, entry.path().stem().string()) == stems.end())
      throw FileError("The folder " + folder.string() + " holds " + entry.path().filename().string() +
                      ", which is not of this export: give another folder, or remove it.");
}

std::vector<std::string> notes_of(Format format, const Result& result) {
  std::vector<std::string> notes;
  const Grid& grid = result.grid();
  const bool has_mm = result.info().length_unit() == "mm";
  if (format == Format::nodemap && !has_mm && !is_surface(result))
    notes.emplace_back("The result has no scale: lengths are px, which readers of nodemaps take for mm.");
  if (format == Format::ncorr && (grid.x0 % grid.step != 0 || grid.y0 % grid.step != 0))
    notes.push_back("Ncorr counts its points from the first pixel, those of this result begin " +
                    std::to_string(grid.x0 % grid.step) + " px to the right and " +
                    std::to_string(grid.y0 % grid.step) + " px below: see dispinfo.origin.");
  if (format == Format::ncorr && result.info().strain.measure != StrainMeasure::green_lagrange)
    notes.push_back("Ncorr's strain is green-lagrange, that of this result is " +
                    std::string(to_string(result.info().strain.measure)) + ".");
  return notes;
}

void write(const ExportJob& job, const Selection& selection, Steps& steps) {
  core::ThreadPool threads;
  switch (job.format) {
    case Format::csv:
      return write_csv_table(job.output, selection, threads, steps);
    case Format::npz:
      return write_npz(job.output, selection, steps);
    case Format::mat:
      return write_mat(job.output, selection, steps);
    case Format::netcdf:
      return write_netcdf(job.output, selection, steps);
    case Format::vtu:
      return write_vtu(job.output, selection, steps);
    case Format::ply:
      return write_ply(job.output, selection, steps);
    case Format::nodemap:
      return write_nodemaps(job.output, selection, threads, steps);
    case Format::matchid:
      return write_matchid(job.output, selection, threads, steps);
    case Format::ncorr:
      return write_ncorr(job.output, selection, steps);
  }
}

}  // namespace

std::string_view default_name(Format format) {
  switch (format) {
    case Format::csv:
      return "table.csv";
    case Format::npz:
      return "table.npz";
    case Format::mat:
      return "table.mat";
    case Format::netcdf:
      return "table.nc";
    case Format::vtu:
      return "table.pvd";
    case Format::ply:
      return "surface";
    case Format::nodemap:
      return "nodemaps";
    case Format::matchid:
      return "matchid";
    case Format::ncorr:
      break;
  }
  return "ncorr.mat";
}

bool is_folder(Format format) {
  return format == Format::ply || format == Format::nodemap || format == Format::matchid;
}

std::vector<std::string> export_result(const ExportJob& job, const ProgressCallback& progress,
                                       std::stop_token stop) {
  const Result result(job.result);
  const Selection selection(result, job);
  const bool has_own_arrays =
      (is_folder(job.format) && job.format != Format::ply) || job.format == Format::ncorr;
  if (has_own_arrays && !job.arrays.empty())
    throw UsageError("The format " + std::string(to_string(job.format)) +
                     " has arrays of its own: leave out the names of arrays.");
  if (job.format == Format::ply && !is_surface(result))
    throw UsageError("The format ply is for surfaces that two cameras measured: choose vtu for one camera.");
  if (job.format == Format::vtu && job.output.extension() != ".pvd")
    throw UsageError("'" + job.output.string() +
                     "' needs the ending .pvd: the meshes go to a folder of its name.");
  const std::string_view ending = ending_of_frames(job.format);
  if (!ending.empty())
    make_folder(is_folder(job.format) ? job.output : job.output.parent_path() / job.output.stem(), selection,
                ending);
  const bool by_frame = job.format == Format::csv || has_own_arrays || !ending.empty();
  Steps steps(progress, std::move(stop), by_frame ? selection.frames.size() : selection.arrays.size());
  write(job, selection, steps);
  return notes_of(job.format, result);
}

}  // namespace dic::exporting

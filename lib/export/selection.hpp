#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/progress.hpp>
#include <dic/result.hpp>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "export/export.hpp"

namespace dic::exporting {

/// A point in the plane.
struct Position {
  double x = 0, y = 0;
};

/// The part of a result that goes into a file.
struct Selection {
  /// Throws UsageError: an array or a frame that is not there.
  Selection(const Result& stored, const ExportJob& job);

  const Result& result;
  std::vector<ResultArray> arrays;  ///< each with one component
  std::vector<int> frames;          ///< indices

  /// Numbers of the frames, 1 is the first after the reference.
  std::vector<double> frame_numbers() const;
  std::vector<double> times() const;
  std::vector<std::string> files() const;
  bool has_seconds() const { return result.time_unit() == "s"; }
  /// Positions of the columns and rows of nodes in the reference, in the length unit.
  std::vector<double> x() const;
  std::vector<double> y() const;
  /// Indices of the nodes inside the ROI.
  std::vector<std::size_t> nodes() const;
  /// Position of a node in the length unit; in corrected coordinates where the result has them.
  Position position(std::size_t node) const;
  /// A name for the file of each frame: that of the image without its ending, numbered if two are equal.
  std::vector<std::string> stems() const;
};

/// Data of the nodes that exporters to formats of other programs need for each frame.
struct NodeFrame {
  NodeFrame(const Selection& selection, int frame);

  std::vector<double> u, v, exx, eyy, exy;
  std::vector<std::uint8_t> status;
  bool is_ok(std::size_t node) const { return status[node] == static_cast<std::uint8_t>(Status::ok); }
};

/// Told before each step of a long export. Throws Cancelled.
class Steps {
 public:
  Steps(const ProgressCallback& progress, std::stop_token stop, std::size_t count)
      : progress_(progress), stop_(std::move(stop)), count_(static_cast<int>(count)) {}
  void next();

 private:
  const ProgressCallback& progress_;
  std::stop_token stop_;
  int count_, done_ = 0;
};

void write_csv_table(const std::filesystem::path& path, const Selection& selection, core::ThreadPool& threads,
                     Steps& steps);
void write_npz(const std::filesystem::path& path, const Selection& selection, Steps& steps);
void write_mat(const std::filesystem::path& path, const Selection& selection, Steps& steps);
void write_netcdf(const std::filesystem::path& path, const Selection& selection, Steps& steps);
/// Files of a frame each, in a folder that is there.
void write_nodemaps(const std::filesystem::path& folder, const Selection& selection,
                    core::ThreadPool& threads, Steps& steps);
void write_matchid(const std::filesystem::path& folder, const Selection& selection, core::ThreadPool& threads,
                   Steps& steps);
void write_ncorr(const std::filesystem::path& path, const Selection& selection, Steps& steps);
/// Files of a frame each, in a folder that is there; only of a surface.
void write_ply(const std::filesystem::path& folder, const Selection& selection, Steps& steps);
/// path: the collection; the files of the frames lie in a folder of its name beside it.
void write_vtu(const std::filesystem::path& path, const Selection& selection, Steps& steps);

}  // namespace dic::exporting

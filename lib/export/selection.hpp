#pragma once

#include <dic/progress.hpp>
#include <dic/result.hpp>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "export/export.hpp"

namespace dic::exporting {

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

void write_csv_table(const std::filesystem::path& path, const Selection& selection, Steps& steps);
void write_npz(const std::filesystem::path& path, const Selection& selection, Steps& steps);
void write_mat(const std::filesystem::path& path, const Selection& selection, Steps& steps);
void write_netcdf(const std::filesystem::path& path, const Selection& selection, Steps& steps);

}  // namespace dic::exporting

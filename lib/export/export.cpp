#include "export/export.hpp"

#include <utility>

#include "export/selection.hpp"

namespace dic::exporting {

std::string_view ending_of(Format format) { return format == Format::netcdf ? "nc" : to_string(format); }

void export_result(const ExportJob& job, const ProgressCallback& progress, std::stop_token stop) {
  const Result result(job.result);
  const Selection selection(result, job);
  const bool by_frame = job.format == Format::csv;
  Steps steps(progress, std::move(stop), by_frame ? selection.frames.size() : selection.arrays.size());
  switch (job.format) {
    case Format::csv:
      return write_csv_table(job.output, selection, steps);
    case Format::npz:
      return write_npz(job.output, selection, steps);
    case Format::mat:
      return write_mat(job.output, selection, steps);
    case Format::netcdf:
      return write_netcdf(job.output, selection, steps);
  }
}

}  // namespace dic::exporting

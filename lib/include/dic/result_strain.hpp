#pragma once

#include <dic/fields.hpp>
#include <dic/global.hpp>
#include <dic/progress.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

namespace dic {

/// How the strain of a result follows from its displacements.
struct ResultStrain {
  /// The subsets that it was measured with. None: the strain has no standard deviations.
  std::optional<MeasuredSubsets> subsets;
  /// Of the global step that followed.
  GlobalOptions global;
  /// Why there are no standard deviations, one sentence; else empty.
  std::string no_sigma_reason;
};
ResultStrain strain_basis(const Result& result);
/// The strain of a field that was measured so. Throws UsageError.
StrainField field_strain(const Field& field, const ResultStrain& basis, const StrainOptions& options,
                         int threads = 0);

/// The strain of one frame by other options, from the stored displacements. Without scale and camera it has
/// the bits that `dic track` on a CPU with these options gives. Lengths that were stored in mm are rounded:
/// then values may differ in their last digits, and with a camera the standard deviations by a few per cent.
/// Throws UsageError, FileError.
StrainField result_strain(const Result& result, int frame, const StrainOptions& options, int threads = 0);

struct ResultStrainJob {
  std::filesystem::path result;  ///< file, or folder of `dic track`
  /// Folder of the second result; empty: the result itself gets the other strain.
  std::filesystem::path output;
  bool force = false;  ///< replace an earlier result in `output`
  StrainOptions strain;
  int threads = 0;      ///< 0 = one per core
  std::string command;  ///< as typed, for the file and run.json
};

/// Writes a result with another strain, and the run.json that belongs to it: every other array keeps its
/// bytes. A failure leaves what was there. Pictures and tables are not drawn anew. Returns the file that was
/// written. Throws UsageError, FileError, Cancelled.
std::filesystem::path write_result_strain(const ResultStrainJob& job, const ProgressCallback& progress = {},
                                          std::stop_token stop = {});

}  // namespace dic

#pragma once

#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/global.hpp>
#include <dic/progress.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

namespace dic {

/// The data from which the strain of a result, with its sigma, is computed from the displacements.
struct ResultStrain {
  /// The subsets that the result was measured with. None: the strain gets no standard deviations.
  std::optional<MeasuredSubsets> subsets;
  /// The global step that followed the measurement.
  GlobalOptions global;
  /// Why there are no standard deviations, one sentence; empty if there are.
  std::string no_sigma_reason;
};
/// The basis of a result's strain, from its stored settings.
DIC_API ResultStrain strain_basis(const Result& result);
/// Computes the strain of a field that was measured as `basis` describes. Throws UsageError.
DIC_API StrainField field_strain(const Field& field, const ResultStrain& basis, const StrainOptions& options,
                                 int threads = 0);

/// Computes the strain of one frame (from 0) with other options, from the stored displacements. Without scale
/// and camera it equals, to the bit, what `dic track` computes on a CPU with these options. Lengths stored in
/// mm are rounded, so that values may then differ in their last digits, and with a camera the standard
/// deviations by a few per cent. Throws UsageError, FileError.
DIC_API StrainField result_strain(const Result& result, int frame, const StrainOptions& options,
                                  int threads = 0);

struct ResultStrainJob {
  std::filesystem::path result;  ///< file, or folder of `dic track`
  /// Folder of the new result; empty: the strain in `result` itself is replaced.
  std::filesystem::path output;
  bool force = false;  ///< replace an earlier result in `output`
  StrainOptions strain;
  int threads = 0;      ///< 0 = one per core
  std::string command;  ///< as typed, for the file and run.json
};

/// Writes a result with another strain, and its run.json; all other arrays stay equal to the bit. After a
/// failure, the files are unchanged. Pictures and tables are not updated. Returns the written file. Throws
/// UsageError, FileError, Cancelled.
DIC_API std::filesystem::path write_result_strain(const ResultStrainJob& job,
                                                  const ProgressCallback& progress = {},
                                                  std::stop_token stop = {});

}  // namespace dic

#pragma once

#include <cstdint>
#include <dic/shared/enum_names.hpp>
#include <iterator>

namespace dic {

/// How the measurement of one point ended. A point that failed is NaN plus a status; `outlier` is the one
/// status besides `ok` that keeps its values. The numbers are part of the file format.
enum class Status : std::uint8_t {
  ok = 0,
  flat = 1,             ///< no contrast in the subset
  out_of_image = 2,     ///< too much of the subset is outside the reference, or it left the current image
  low_correlation = 3,  ///< zncc below the threshold, a match by chance, or too uncertain
  not_converged = 4,    ///< the refinement used up its iterations
  diverged = 5,         ///< the refinement ran away
  masked = 6,           ///< too little of the subset is inside the ROI
  outlier = 7,          ///< measured, but contradicts its neighbours; values kept
  ambiguous = 8,        ///< another match is as good: the texture repeats itself
  epipolar = 9          ///< the two cameras contradict each other (dic/stereo.hpp)
};
template <>
struct EnumNames<Status> {
  static constexpr EnumName<Status> table[] = {{Status::ok, "ok"},
                                               {Status::flat, "flat"},
                                               {Status::out_of_image, "out_of_image"},
                                               {Status::low_correlation, "low_correlation"},
                                               {Status::not_converged, "not_converged"},
                                               {Status::diverged, "diverged"},
                                               {Status::masked, "masked"},
                                               {Status::outlier, "outlier"},
                                               {Status::ambiguous, "ambiguous"},
                                               {Status::epipolar, "epipolar"}};
};
inline constexpr int kStatusCount = static_cast<int>(std::size(EnumNames<Status>::table));
/// True if a point of this status carries values.
constexpr bool has_values(Status s) { return s == Status::ok || s == Status::outlier; }
/// True if the search for a point failed, and nothing indicates that it left the image.
constexpr bool is_lost(Status s) {
  return !has_values(s) && s != Status::flat && s != Status::out_of_image && s != Status::masked;
}

}  // namespace dic

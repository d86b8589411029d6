#pragma once

#include <string>

/// Where things are in a result.vtkhdf (docs/file-formats.md).
namespace dic::io {

inline const std::string kRoot = "/VTKHDF";
inline const std::string kPointData = kRoot + "/PointData/";
inline const std::string kSteps = kRoot + "/Steps";
inline const std::string kTimes = kSteps + "/Values";
inline const std::string kOffsets = kSteps + "/PointDataOffsets/";
inline const std::string kAbout = "/dic";  // ours: readers of VTKHDF leave other groups alone

}  // namespace dic::io

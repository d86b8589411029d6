#pragma once

#include <dic/field_schema.hpp>
#include <string>

/// Paths of groups and datasets in a result.vtkhdf (docs/file-formats.md).
namespace dic::io {

inline const std::string kRoot = "/VTKHDF";
inline const std::string kPointData = kRoot + "/PointData/";
inline const std::string kSteps = kRoot + "/Steps";
inline const std::string kTimes = kSteps + "/Values";
inline const std::string kOffsets = kSteps + "/PointDataOffsets/";
inline const std::string kAbout = "/dic";  ///< our own group, which readers of VTKHDF leave alone

inline std::string path_of(const FieldArray& array) { return kPointData + std::string(array.name); }
inline std::string path_of(const PositionArray& array) { return kAbout + "/" + std::string(array.name); }

}  // namespace dic::io

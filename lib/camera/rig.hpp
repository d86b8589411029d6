#pragma once

#include <array>
#include <dic/camera_rig.hpp>
#include <string>

namespace dic::camera {

/// The largest deviation of the products of a matrix' rows from those of a rotation, 0 for a rotation.
double rotation_error(const std::array<double, 9>& matrix);
std::array<double, 9> transposed(const std::array<double, 9>& matrix);
std::array<double, 3> product(const std::array<double, 9>& matrix, const std::array<double, 3>& vector);

/// Reads the text of a stereo file or of another program's calibration. Throws UsageError with a problem
/// that lacks the name of the file. image: size of the images, for files that do not say it.
CameraRig parse_rig(const std::string& text, Size image);
/// The same for the calibration of another program.
CameraRig import_rig(const std::string& text, Size image);

}  // namespace dic::camera

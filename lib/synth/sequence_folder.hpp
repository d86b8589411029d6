#pragma once

#include <filesystem>
#include <string>

namespace dic::synth {

/// The number with a decimal point and 12 digits, regardless of the locale of the calling program.
std::string decimal(double value);

/// File name of frame i.
std::string frame_name(int i);

/// Makes a folder that must be empty, because frames of an earlier sequence would mix with the new ones.
/// Throws FileError.
void make_empty_directory(const std::filesystem::path& directory);

}  // namespace dic::synth

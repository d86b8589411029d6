#pragma once

#include <dic/track_files.hpp>
#include <filesystem>
#include <vector>

namespace dic::run {

/// Writes a table "grey,noise,pixels" with a row per class of grey. Throws FileError.
void write_noise_table(const std::filesystem::path& path, const std::vector<NoiseAtGrey>& curve);
/// Draws the curve as a PNG. Throws FileError.
void write_noise_picture(const std::filesystem::path& path, const std::vector<NoiseAtGrey>& curve);

}  // namespace dic::run

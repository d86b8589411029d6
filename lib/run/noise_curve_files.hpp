#pragma once

#include <dic/track_files.hpp>
#include <filesystem>
#include <vector>

namespace dic::run {

/// "grey,noise,pixels", a row per class of grey. Throws FileError.
void write_noise_table(const std::filesystem::path& path, const std::vector<NoiseAtGrey>& curve);
/// A picture of the curve, PNG. Throws FileError.
void write_noise_picture(const std::filesystem::path& path, const std::vector<NoiseAtGrey>& curve);

}  // namespace dic::run

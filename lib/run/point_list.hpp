#pragma once

#include <dic/track.hpp>
#include <filesystem>
#include <vector>

namespace dic::run {

/// Reads positions in px from a text file: a table with columns x and y, or two numbers per line. Throws
/// FileError.
std::vector<Roi::Vertex> read_points(const std::filesystem::path& file);

}  // namespace dic::run

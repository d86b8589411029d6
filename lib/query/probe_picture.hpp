#pragma once

#include <dic/probe.hpp>
#include <filesystem>

namespace dic::query {

/// Draws the history as PNG: loads over the strain of extensometers where there are both, else over the
/// frames the strain of extensometers, else means of areas, else displacements of points. False where there
/// is nothing to draw. Throws FileError.
bool write_history_picture(const std::filesystem::path& path, const ProbeHistory& history,
                           const CanvasFactory& canvases);

}  // namespace dic::query

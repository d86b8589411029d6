#pragma once

#include <dic/camera.hpp>
#include <memory>

#include "core/parallel.hpp"

/// The public functions of these names, on the threads of a caller inside the library.
namespace dic::camera {

NodePositions corrected_nodes(const Grid& grid, const Camera& camera, core::ThreadPool& pool);
void correct_field(Field& field, const Camera& camera, std::shared_ptr<const NodePositions> nodes,
                   core::ThreadPool& pool);

}  // namespace dic::camera

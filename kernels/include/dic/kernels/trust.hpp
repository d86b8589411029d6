#pragma once

#include <cstddef>
#include <dic/kernels/points.hpp>
#include <dic/shared/trust_rules.hpp>

/// Judgement of matches by chance and ambiguous matches, by the rules of <dic/shared/trust_rules.hpp>. All
/// pointers are device memory.
namespace dic::kernels {

/// A frame whose measurements are judged, all of them on this GPU: GridPoints::own does not matter.
struct TrustFrame {
  GridPoints points;
  TrackedPoint* tracked = nullptr;      ///< [count]; receives the new statuses
  const float* alternatives = nullptr;  ///< [count]: see track::is_as_good; null if no texture repeats
  int subset = 0, step = 0;
};

/// Bytes of scratch memory of launch_judge_points.
std::size_t trust_workspace_bytes(std::int64_t count);
/// Queues the judgement. The result does not depend on the order in which threads run.
void launch_judge_points(const TrustFrame& frame, void* workspace, StreamHandle stream);

}  // namespace dic::kernels

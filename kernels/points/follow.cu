#include "points/points.cuh"

// Moves points and ROI into an image that becomes the reference.
namespace dic::kernels {
namespace {

__global__ void __launch_bounds__(point_threads)
    count_nodes(const __grid_constant__ FieldArrays field, std::int64_t nodes, NodeCounts* counts) {
  std::int32_t measured = 0, lost = 0;
  for_each_point(nodes, [&](std::int32_t node) {
    const Status status = field.status[node];
    measured += has_values(status);
    lost += is_lost(status);
  });
  measured = warp_sum(measured), lost = warp_sum(lost);
  if (threadIdx.x % warp_size != 0) return;
  atomicAdd(&counts->measured, measured);
  atomicAdd(&counts->lost, lost);
}

__global__ void __launch_bounds__(point_threads)
    follow_points(const __grid_constant__ GridPoints points, const __grid_constant__ FieldArrays field,
                  Size image, const __grid_constant__ FollowedPoints to) {
  for_each_point(points.count, [&](std::int32_t i) {
    const std::int32_t k = points.node_of[i];
    int x = points.x[i], y = points.y[i];
    to.material[i] = track::followed(
        {field.status[k], field.u[k], field.v[k], field.sigma_u[k], field.sigma_v[k]}, image, x, y);
    to.x[i] = x;
    to.y[i] = y;
  });
}

/// Moves the ROI. Several threads may write one pixel; all write the same value.
__global__ void __launch_bounds__(point_threads)
    move_roi(const __grid_constant__ GridPoints points, const __grid_constant__ track::Cells cells,
             const __grid_constant__ ImageView roi, const track::MaterialPoint* material,
             std::uint8_t* moved) {
  for_each_task(std::int64_t{roi.width} * roi.height, point_threads, threadIdx.x, [&](std::int64_t pixel) {
    const auto y = static_cast<int>(pixel / roi.width);
    const auto x = static_cast<int>(pixel - std::int64_t{y} * roi.width);
    if (static_cast<const std::uint8_t*>(roi.data)[y * roi.row_bytes + x] == 0) return;
    const std::int32_t i = points.point_at[cells.node_of(x, y)];
    if (i < 0 || material[i].status != Status::ok) return;
    track::mark_moved_pixel(x, y, material[i], roi.width, roi.height,
                            [&](int a, int b) { moved[b * roi.row_bytes + a] = 255; });
  });
}

}  // namespace

void launch_count_nodes(const FieldArrays& field, std::int64_t nodes, NodeCounts* counts,
                        StreamHandle stream) {
  fill(counts, 0, sizeof(*counts), stream);
  if (nodes == 0) return;
  constexpr unsigned most_blocks = 256;  // each warp adds to the counts once
  count_nodes<<<std::min(grid_size(nodes, point_threads), most_blocks), point_threads, 0, stream>>>(
      field, nodes, counts);
  check_launch(describe_points("counting nodes", nodes));
}

void launch_follow_points(const GridPoints& points, const FieldArrays& field, Size size,
                          const FollowedPoints& to, StreamHandle stream) {
  if (points.count == 0) return;
  follow_points<<<grid_size(points.count, point_threads), point_threads, 0, stream>>>(points, field, size,
                                                                                      to);
  check_launch(describe_points("following points", points.count));
}

void launch_move_roi(const GridPoints& points, const track::Cells& cells, ImageView roi,
                     const track::MaterialPoint* material, std::uint8_t* moved, StreamHandle stream) {
  const std::int64_t pixels = std::int64_t{roi.width} * roi.height;
  fill(moved, 0, static_cast<std::size_t>(roi.row_bytes) * roi.height, stream);
  move_roi<<<grid_size(pixels, point_threads), point_threads, 0, stream>>>(points, cells, roi, material,
                                                                           moved);
  check_launch("moving the ROI");
}

}  // namespace dic::kernels

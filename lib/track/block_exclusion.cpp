#include "track/block_exclusion.hpp"

#include <algorithm>
#include <utility>

#include "core/mask_counts.hpp"

namespace dic::track {
namespace {

/// Mark of pixels of the reference that do not count.
constexpr std::uint8_t kLeftOut = 255;

/// Takes the values of a measurement without the marked pixels at points whose subsets contain some.
void take_unmarked(Field& field, const Field& again, const Image& marks, int radius, core::ThreadPool& pool) {
  const core::MaskCounts counts(marks.view(), pool);
  const Grid& grid = field.grid();
  const auto is_affected = [&](int x, int y) {
    const int left = std::max(0, x - radius), top = std::max(0, y - radius);
    return counts.inside(left, top, std::min(marks.width(), x + radius + 1) - left,
                         std::min(marks.height(), y + radius + 1) - top) > 0;
  };
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::int64_t node = std::int64_t{j} * grid.nx + i;
      if (field.status[node] == Status::masked || !is_affected(grid.x(i), grid.y(j))) continue;
      take_node(field, again, node);
      if (again.status[node] == Status::masked) clear_node(field, node, Status::low_correlation);
    }
}

}  // namespace

BlockExclusion::BlockExclusion(const TrackOptions& options, std::shared_ptr<const Frame> reference,
                               ImageView original, const Points& points, const ReferenceAnalysis& analysis,
                               const TrackingBackend& backend, BackendFactory open, core::ThreadPool& pool)
    : options_(options),
      reference_(std::move(reference)),
      size_(original.size()),
      points_(points),
      analysis_(analysis),
      backend_(backend),
      open_(std::move(open)),
      pool_(pool),
      blocks_(original) {}

FieldStep BlockExclusion::leave_out(const std::shared_ptr<const Frame>& current,
                                    const std::stop_token& stop) {
  if (!current->repeated)  // as in most sequences; the step keeps no frame
    return [this](MeasuredFrame& frame) { blocks_.keep_motion(nullptr, frame.result.field); };
  return [this, current, stop](MeasuredFrame& frame) {
    const BlockFlags& repeated = *current->repeated;
    Image marks(size_, ScalarType::u8);
    if (blocks_.mark(repeated, frame.result.field, marks, kLeftOut))
      measure_again(frame, marks, *current, stop);
    blocks_.keep_motion(&repeated, frame.result.field);
  };
}

/// The analysis of the reference for the pixels that are not marked.
ReferenceAnalysis BlockExclusion::analysis_without(const Image& marks) const {
  Image roi(size_, ScalarType::u8);
  for (int y = 0; y < size_.height; ++y)
    for (int x = 0; x < size_.width; ++x)
      if (marks.row<std::uint8_t>(y)[x] == 0)
        roi.row<std::uint8_t>(y)[x] = analysis_.roi.empty() ? 255 : analysis_.roi.row<std::uint8_t>(y)[x];
  return {std::move(roi), analysis_.alternatives, analysis_.largest_motion, analysis_.ramps,
          analysis_.noise_patches};
}

void BlockExclusion::measure_again(MeasuredFrame& frame, const Image& marks, const Frame& current,
                                   const std::stop_token& stop) const {
  const ReferenceAnalysis analysis = analysis_without(marks);
  const Image reference = backend_.pixels(*reference_), moved = backend_.pixels(current);
  const auto backend = open_(options_, reference.view(), analysis);
  const auto active =
      backend->make_reference(backend->take(reference.view()), *backend->place(points_), nullptr);
  if (!efforts_.empty()) active->limit_effort(efforts_);
  const FrameResult again = active->measure(backend->take(moved.view()), stop, {})->fetch().result;
  add_time_of(frame.result, again);
  frame.result.noise = again.noise;
  change_displacements(frame, "refine", [&](Field& field) {
    take_unmarked(field, again.field, marks, options_.refine.subset / 2, pool_);
  });
}

}  // namespace dic::track

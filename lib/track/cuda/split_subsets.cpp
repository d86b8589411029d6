#include "track/cuda/split_subsets.hpp"

#include <algorithm>
#include <bit>

namespace dic::track::cuda {
namespace {

RefineOptions with_few_iterations(RefineOptions options) {
  options.max_iterations = kSplitIterations;
  return options;
}

/// Measurements that the whole device does at once: with few blocks, the next frames would wait for them.
constexpr std::int64_t few_measurements = 8192;

/// Bytes that one measurement needs.
std::size_t bytes_of(const RefineOptions& options) {
  const auto words = static_cast<std::size_t>(kernels::PixelMasks(nullptr, options.subset).words_of());
  return sizeof(kernels::PreparedSubset) + kernels::matrix_floats(options.order) * sizeof(float) +
         sizeof(kernels::RefineTask) + sizeof(kernels::RefineResult) + sizeof(kernels::PartSlot) +
         sizeof(float) + words * sizeof(std::uint32_t);
}

/// Most points that are measured at once: a power of two, for which memory is reserved.
std::int64_t most_points(const RefineOptions& options) {
  constexpr std::size_t enough = 64 << 20;  // bytes
  const std::size_t points = enough / (kDirections * bytes_of(options));
  return static_cast<std::int64_t>(std::clamp<std::size_t>(std::bit_floor(points), 256, 8192));
}

}  // namespace

SplitSubsets::SplitSubsets(const TrackOptions& options, const ImageMemory& memory)
    : options_(with_few_iterations(options.refine)),
      step_(options.step),
      most_points_(most_points(options.refine)),
      images_(make_image_access(options_, memory)),
      saturated_(options_) {}

std::size_t SplitSubsets::most_bytes(const RefineOptions& options) {
  return kDirections * static_cast<std::size_t>(most_points(options)) * bytes_of(options);
}

void SplitSubsets::run(const DeviceReference& reference, const DeviceFrame& current,
                       kernels::TrackedPoint* tracked, const kernels::Stream& stream) {
  const kernels::SplitFrame frame = frame_of(reference, tracked);
  const kernels::PointList open{open_.reserve<std::int32_t>(frame.points.count),
                                counts_.reserve<std::int32_t>(2)};
  kernels::launch_find_open_points(frame, open, stream.handle());
  const std::int64_t n = fetched(open.count, stream);
  for (std::int64_t first = 0; first < n; first += most_points_)
    measure(reference, current, frame, open.points + first, std::min(most_points_, n - first), stream);
}

kernels::SplitFrame SplitSubsets::frame_of(const DeviceReference& reference, kernels::TrackedPoint* tracked) {
  const kernels::GridPoints& points = reference.points();
  const ImageView& image = reference.frame().image;
  const Tiles tiles(points.nx, points.ny, options_.subset, step_);
  return {.points = points,
          .tracked = tracked,
          .states = states_.reserve<kernels::SplitState>(points.count),
          .refuted = refuted_.reserve<std::uint16_t>(points.count),
          .residual_levels = levels_.reserve<ResidualLevel>(2 * std::int64_t{tiles.count()}),
          .tiles = tiles,
          .radius = options_.subset / 2,
          .step = step_,
          .image = image.size()};
}

/// Memory for all measurements of this number of points times rounds.
kernels::PartList SplitSubsets::parts_of(std::int64_t points) {
  const std::int64_t most = kDirections * static_cast<std::int64_t>(std::bit_ceil<std::uint64_t>(points));
  matrices_.reserve<float>(most * kernels::matrix_floats(options_.order));
  results_.reserve<kernels::RefineResult>(most);
  return {parts_.reserve<kernels::PreparedSubset>(most),
          tasks_.reserve<kernels::RefineTask>(most),
          most_residuals_.reserve<float>(most),
          masks_.reserve<std::uint32_t>(most * kernels::PixelMasks(nullptr, options_.subset).words_of()),
          static_cast<std::int32_t*>(counts_.data()) + 1,
          slots_.reserve<kernels::PartSlot>(most)};
}

int SplitSubsets::rounds_at_once(std::int64_t n) const {
  constexpr int rounds = kSplitRounds - 1;  // the first, with whole subsets, closes most points alone
  const auto most = static_cast<int>(std::clamp<std::int64_t>(most_points_ / n, 1, rounds));
  const int batches = (rounds + most - 1) / most;
  return (rounds + batches - 1) / batches;
}

void SplitSubsets::measure(const DeviceReference& reference, const DeviceFrame& current,
                           const kernels::SplitFrame& frame, const std::int32_t* points, std::int64_t n,
                           const kernels::Stream& stream) {
  const int at_once = rounds_at_once(n);
  const kernels::PartList parts = parts_of(n * at_once);
  for (kernels::SplitRounds rounds; rounds.first < kSplitRounds;
       rounds = {rounds.first + rounds.count,
                 std::min(at_once, kSplitRounds - rounds.first - rounds.count)}) {
    if (rounds.first == 1 && refine(reference, current, frame, points, n, {kProbingRound}, parts, stream))
      kernels::launch_refute_directions(frame, points, n, parts,
                                        static_cast<const kernels::RefineResult*>(results_.data()),
                                        stream.handle());
    if (!refine(reference, current, frame, points, n, rounds, parts, stream)) continue;
    kernels::launch_take_parts(frame, points, n, rounds, parts,
                               static_cast<const kernels::RefineResult*>(results_.data()), stream.handle());
  }
  kernels::launch_give_up_contradicted(frame, points, n, stream.handle());
}

bool SplitSubsets::refine(const DeviceReference& reference, const DeviceFrame& current,
                          const kernels::SplitFrame& frame, const std::int32_t* open, std::int64_t open_count,
                          const kernels::SplitRounds& rounds, const kernels::PartList& parts,
                          const kernels::Stream& stream) {
  kernels::launch_list_parts(frame, open, open_count, rounds, parts, stream.handle());
  const std::int64_t n = fetched(parts.count, stream);
  if (n == 0) return false;
  const kernels::GridPoints& points = reference.points();
  const ReferenceSubsets subsets{points.x, points.y, n, parts.subsets, static_cast<float*>(matrices_.data())};
  ReferenceImage of_parts = reference.image();
  of_parts.planes.masks = kernels::PixelMasks(parts.masks, options_.subset);
  images_->prepare_parts(of_parts, subsets, {parts.tasks, n, parts.count}, stream);
  const kernels::RefineTasks tasks{.first = parts.tasks,
                                   .max_count = n,
                                   .most_residuals = parts.most_residuals,
                                   .are_parts = true,
                                   .in_background = n > few_measurements};
  auto* results = static_cast<kernels::RefineResult*>(results_.data());
  images_->refine(of_parts, current, subsets, tasks, results, stream, nullptr);
  saturated_.run(*images_, of_parts, current, subsets, tasks, results, stream);
  return true;
}

std::int64_t SplitSubsets::fetched(const std::int32_t* count, const kernels::Stream& stream) {
  auto* to = on_host_.reserve<std::int32_t>(1);
  kernels::launch_store_counts(count, 1, to, stream.handle());
  counted_.record(stream);
  counted_.synchronize("the measurement of parts of subsets");
  return *to;
}

}  // namespace dic::track::cuda

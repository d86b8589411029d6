#include "track/global_result.hpp"

#include <utility>

#include "fields/strain.hpp"
#include "global/global_step.hpp"
#include "track/stopwatch.hpp"

namespace dic::track {
namespace {

class GlobalResult final : public Result {
 public:
  GlobalResult(std::unique_ptr<Result> measured, const TrackOptions& options, ThreadPool& pool)
      : measured_(std::move(measured)), options_(options), pool_(pool) {}

  std::shared_ptr<const TrackedPositions> positions() override { return measured_->positions(); }
  PointCounts counts() override { return measured_->counts(); }

 private:
  FrameResult read() override {
    FrameResult result = measured_->fetch();
    Stopwatch watch;
    const auto begin = std::chrono::steady_clock::now();
    const RefineOptions& refined = options_.refine;
    const ErrorDraws errors = global::global_step(
        result.field, {refined.subset, refined.order, refined.weights}, options_.global, pool_);
    const double refine = watch.lap();
    result.field.strain = fields::compute_strain(result.field, options_.strain, pool_, errors);
    const double strain = watch.lap();
    result.seconds += {.refine = refine, .strain = strain};
    add_spans(result.spans, begin, {{"global", refine}, {"strain", strain}});
    return result;
  }

  std::unique_ptr<Result> measured_;
  TrackOptions options_;
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Result> with_global_step(std::unique_ptr<Result> measured, const TrackOptions& options,
                                         ThreadPool& pool) {
  return std::make_unique<GlobalResult>(std::move(measured), options, pool);
}

}  // namespace dic::track

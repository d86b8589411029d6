#include "track/global_result.hpp"

#include <utility>

#include "track/stopwatch.hpp"

namespace dic::track {
namespace {

class GlobalResult final : public Result {
 public:
  GlobalResult(std::unique_ptr<Result> measured, const TrackOptions& options)
      : measured_(std::move(measured)), options_(options) {}

  std::shared_ptr<const TrackedPositions> positions() override { return measured_->positions(); }
  PointCounts counts() override { return measured_->counts(); }

 private:
  FrameResult read() override {
    FrameResult result = measured_->fetch();
    Stopwatch watch;
    const auto begin = std::chrono::steady_clock::now();
    const ErrorDraws errors =
        global_step(result.field, {options_.refine.subset, options_.refine.order, options_.refine.weights},
                    options_.global, options_.threads);
    const double refine = watch.lap();
    result.field.strain = compute_strain(result.field, options_.strain, options_.threads, errors);
    const double strain = watch.lap();
    result.seconds += {.refine = refine, .strain = strain};
    add_spans(result.spans, begin, {{"global", refine}, {"strain", strain}});
    return result;
  }

  std::unique_ptr<Result> measured_;
  TrackOptions options_;
};

}  // namespace

std::unique_ptr<Result> with_global_step(std::unique_ptr<Result> measured, const TrackOptions& options) {
  return std::make_unique<GlobalResult>(std::move(measured), options);
}

}  // namespace dic::track

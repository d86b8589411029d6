#include "track/changed_result.hpp"

#include <utility>

#include "track/changed_field.hpp"

namespace dic::track {
namespace {

class FilteredResult final : public Result {
 public:
  FilteredResult(std::unique_ptr<Result> measured, double noise_gain)
      : measured_(std::move(measured)), noise_gain_(noise_gain) {}

  std::shared_ptr<const TrackedPositions> positions() override { return measured_->positions(); }
  PointCounts counts() override { return measured_->counts(); }

 private:
  FrameResult read() override {
    FrameResult result = measured_->fetch();
    result.noise /= noise_gain_;
    return result;
  }

  std::unique_ptr<Result> measured_;
  double noise_gain_;
};

class BiasResult final : public Result {
 public:
  BiasResult(std::unique_ptr<Result> measured, std::shared_ptr<const analysis::InterpolationBias> bias,
             const TrackOptions& options, ThreadPool& pool)
      : measured_(std::move(measured)), bias_(std::move(bias)), options_(options), pool_(pool) {}

  std::shared_ptr<const TrackedPositions> positions() override { return measured_->positions(); }
  PointCounts counts() override { return measured_->counts(); }

 private:
  FrameResult read() override {
    FrameResult result = measured_->fetch();
    change_field(result, options_, pool_, "refine", [&](Field& field) {
      bias_->subtract_from(field, options_.refine.subset, options_.refine.weights, pool_);
    });
    return result;
  }

  std::unique_ptr<Result> measured_;
  std::shared_ptr<const analysis::InterpolationBias> bias_;
  TrackOptions options_;
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Result> without_bias(std::unique_ptr<Result> measured,
                                     std::shared_ptr<const analysis::InterpolationBias> bias,
                                     const TrackOptions& options, ThreadPool& pool) {
  return std::make_unique<BiasResult>(std::move(measured), std::move(bias), options, pool);
}

std::unique_ptr<Result> with_noise_before_filter(std::unique_ptr<Result> measured, double noise_gain) {
  return std::make_unique<FilteredResult>(std::move(measured), noise_gain);
}

}  // namespace dic::track

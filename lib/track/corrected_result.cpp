#include "track/corrected_result.hpp"

#include <utility>

#include "camera/correct_field.hpp"
#include "fields/strain.hpp"
#include "track/stopwatch.hpp"

namespace dic::track {
namespace {

class CorrectedResult final : public Result {
 public:
  CorrectedResult(std::unique_ptr<Result> measured, const TrackOptions& options,
                  std::shared_ptr<const NodePositions> nodes, ThreadPool& pool)
      : measured_(std::move(measured)), options_(options), nodes_(std::move(nodes)), pool_(pool) {}

  std::shared_ptr<const TrackedPositions> positions() override { return measured_->positions(); }
  PointCounts counts() override { return measured_->counts(); }

 private:
  FrameResult read() override {
    FrameResult result = measured_->fetch();
    const Stopwatch watch;
    const StrainField in_image = std::move(result.field.strain);
    camera::correct_field(result.field, *options_.camera, nodes_, pool_);
    StrainField strain = fields::compute_strain(result.field, options_.strain, pool_);
    // The camera's derivative scales displacement and positions alike: it leaves the noise of their quotient.
    strain.sigma_exx = in_image.sigma_exx;
    strain.sigma_eyy = in_image.sigma_eyy;
    strain.sigma_exy = in_image.sigma_exy;
    result.field.strain = std::move(strain);
    result.seconds += {.strain = watch.seconds()};
    result.spans.push_back(watch.span("strain"));
    return result;
  }

  std::unique_ptr<Result> measured_;
  TrackOptions options_;
  std::shared_ptr<const NodePositions> nodes_;
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Result> with_camera(std::unique_ptr<Result> measured, const TrackOptions& options,
                                    std::shared_ptr<const NodePositions> nodes, ThreadPool& pool) {
  return std::make_unique<CorrectedResult>(std::move(measured), options, std::move(nodes), pool);
}

}  // namespace dic::track

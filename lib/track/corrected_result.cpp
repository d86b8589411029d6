#include "track/corrected_result.hpp"

#include <utility>

#include "track/stopwatch.hpp"

namespace dic::track {
namespace {

class CorrectedResult final : public Result {
 public:
  CorrectedResult(std::unique_ptr<Result> measured, const TrackOptions& options,
                  std::shared_ptr<const NodePositions> nodes)
      : measured_(std::move(measured)), options_(options), nodes_(std::move(nodes)) {}

  std::shared_ptr<const TrackedPositions> positions() override { return measured_->positions(); }
  PointCounts counts() override { return measured_->counts(); }

 private:
  FrameResult read() override {
    FrameResult result = measured_->fetch();
    const Stopwatch watch;
    const StrainField in_image = std::move(result.field.strain);
    correct_field(result.field, *options_.camera, nodes_, options_.threads);
    StrainField strain = compute_strain(result.field, options_.strain, options_.threads);
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
};

}  // namespace

std::unique_ptr<Result> with_camera(std::unique_ptr<Result> measured, const TrackOptions& options,
                                    std::shared_ptr<const NodePositions> nodes) {
  return std::make_unique<CorrectedResult>(std::move(measured), options, std::move(nodes));
}

}  // namespace dic::track

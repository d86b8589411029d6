#include "track/direct_result.hpp"

#include <cmath>
#include <utility>

#include "track/changed_field.hpp"

namespace dic::track {
namespace {

/// Both measurements agree within so many standard deviations of their difference.
constexpr double kSigmas = 5;

bool agree(const Field& a, const Field& b, std::int64_t node) {
  const double spread_u = std::hypot(a.sigma_u[node], b.sigma_u[node]);
  const double spread_v = std::hypot(a.sigma_v[node], b.sigma_v[node]);
  return std::abs(a.u[node] - b.u[node]) <= kSigmas * spread_u &&
         std::abs(a.v[node] - b.v[node]) <= kSigmas * spread_v;
}

class DirectResult final : public Result {
 public:
  DirectResult(std::unique_ptr<Result> followed, std::unique_ptr<Result> direct, const TrackOptions& options,
               ThreadPool& pool)
      : followed_(std::move(followed)), direct_(std::move(direct)), options_(options), pool_(pool) {}

  std::shared_ptr<const TrackedPositions> positions() override { return followed_->positions(); }
  PointCounts counts() override { return followed_->counts(); }

 private:
  FrameResult read() override {
    FrameResult result = followed_->fetch();
    const FrameResult direct = direct_->fetch();
    result.seconds += direct.seconds;
    result.spans.insert(result.spans.end(), direct.spans.begin(), direct.spans.end());
    change_field(result, options_, pool_, "refine", [&](Field& field) { take_direct(field, direct.field); });
    return result;
  }

  std::unique_ptr<Result> followed_, direct_;
  TrackOptions options_;
  ThreadPool& pool_;
};

}  // namespace

void take_direct(Field& followed, const Field& direct) {
  for (std::int64_t node = 0; node < followed.grid().nodes(); ++node) {
    if (direct.status[node] != Status::ok) continue;
    if (followed.status[node] == Status::ok && !agree(followed, direct, node)) continue;
    followed.u[node] = direct.u[node];
    followed.v[node] = direct.v[node];
    followed.zncc[node] = direct.zncc[node];
    followed.sigma_u[node] = direct.sigma_u[node];
    followed.sigma_v[node] = direct.sigma_v[node];
    followed.status[node] = Status::ok;
    followed.iterations[node] = direct.iterations[node];
    if (!followed.order.empty()) followed.order[node] = direct.order[node];
  }
}

std::unique_ptr<Result> with_direct(std::unique_ptr<Result> followed, std::unique_ptr<Result> direct,
                                    const TrackOptions& options, ThreadPool& pool) {
  return std::make_unique<DirectResult>(std::move(followed), std::move(direct), options, pool);
}

}  // namespace dic::track

#include <cmath>
#include <dic/error.hpp>
#include <dic/track.hpp>
#include <utility>

#include "track/sequence.hpp"
#include "track/stopwatch.hpp"

namespace dic {

std::vector<std::string> TrackOptions::validate() const {
  std::vector<std::string> out = refine.validate();
  if (step < 1) out.push_back("The step between points must be at least 1 px.");
  if (search && (*search < 0 || *search > 4096))
    out.push_back("The search range must be auto or from 0 to 4096 px.");
  if (noise && !(*noise >= 0)) out.push_back("The noise must be auto or 0 grey levels or more.");
  if (threads < 0) out.push_back("The number of threads must be 0 (one per core) or more.");
  if (gpu_memory < 0) out.push_back("The memory of images on a GPU must be 0 (all) or more MB.");
  if (prefilter && *prefilter != 0 && !(*prefilter >= 0.3 && *prefilter <= 5))
    out.push_back("The prefilter must be auto, none, or from 0.3 to 5 px.");
  if (anti_bias && reference_strategy != ReferenceStrategy::first)
    out.push_back("The bias of the interpolation is known for the reference strategy first alone.");
  if (automatic_order && global.enabled)
    out.push_back(
        "The global step needs subsets of one order: choose an order or leave out the global step.");
  if (sigma_target && !(*sigma_target > 0)) out.push_back("The demanded sigma must be above 0 px.");
  const auto global_problems = global.validate();
  out.insert(out.end(), global_problems.begin(), global_problems.end());
  if (out.empty() && global.resolution) {
    const double least = least_resolution({refine.subset, refine.order, refine.weights}, step);
    if (*global.resolution < least)
      out.push_back("The resolution of the global step must be at least " +
                    std::to_string(static_cast<int>(std::ceil(least))) + " px for this subset and step.");
  }
  const auto strain_problems = strain.validate();
  out.insert(out.end(), strain_problems.begin(), strain_problems.end());
  return out;
}

StageSeconds& StageSeconds::operator+=(const StageSeconds& other) {
  for (double StageSeconds::*stage :
       {&StageSeconds::load, &StageSeconds::prepare, &StageSeconds::search, &StageSeconds::refine,
        &StageSeconds::strain, &StageSeconds::write, &StageSeconds::total})
    this->*stage += other.*stage;
  return *this;
}

struct Tracker::Impl {
  track::Sequence sequence;
  std::int64_t next_index = 0;

  Impl(const TrackOptions& options, ImageView reference, const Roi& roi)
      : sequence(options, reference, roi) {}

  FrameResult track(ImageView current, const std::stop_token& stop) {
    const track::Stopwatch since_call;
    FrameResult result = sequence.measure(sequence.take(current), stop)->fetch();
    result.index = next_index++;
    result.latency = since_call.seconds();
    return result;
  }
};

Tracker::Tracker(const TrackOptions& options, ImageView reference, const Roi& roi)
    : impl_(std::make_unique<Impl>(options, reference, roi)) {}
Tracker::~Tracker() = default;
Tracker::Tracker(Tracker&&) noexcept = default;
Tracker& Tracker::operator=(Tracker&&) noexcept = default;

const Grid& Tracker::grid() const { return impl_->sequence.grid(); }
FrameResult Tracker::track(ImageView current, std::stop_token stop) { return impl_->track(current, stop); }
std::vector<std::string> Tracker::kernels() const { return impl_->sequence.backend().kernels(); }
std::string Tracker::device() const { return impl_->sequence.backend().device(); }
std::string Tracker::device_reason() const { return impl_->sequence.device_reason(); }
double Tracker::prepare_seconds() const { return impl_->sequence.prepare_seconds(); }
TrackOptions Tracker::options() const { return impl_->sequence.options(); }

}  // namespace dic

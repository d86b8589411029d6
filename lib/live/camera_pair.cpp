#include "live/camera_pair.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dic::live {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// How long one camera is waited for before the other one is looked at.
constexpr milliseconds kSlice{10};
/// Time after which no frame follows that belongs to an earlier one.
constexpr milliseconds kLatestPartner{200};
/// Share of the time between two frames by which intervals of both cameras may differ.
constexpr double kLargestDifference = 0.6;

}  // namespace

CameraPair::CameraPair(std::unique_ptr<LiveCamera> left, std::unique_ptr<LiveCamera> right)
    : left_{std::move(left), {}, {}}, right_{std::move(right), {}, {}} {}

std::string CameraPair::name() const { return left_.camera->name() + " with " + right_.camera->name(); }

std::vector<CameraSetting> CameraPair::settings() const {
  std::vector<CameraSetting> all = left_.camera->settings();
  for (CameraSetting setting : right_.camera->settings()) {
    setting.name.insert(0, "right ");
    all.push_back(std::move(setting));
  }
  return all;
}

/// The right camera is ready before the left one, so that each frame of the left one has a partner.
void CameraPair::start() {
  right_.camera->start();
  left_.camera->start();
}

void CameraPair::trigger() {
  left_.camera->trigger();
  right_.camera->trigger();
}

void CameraPair::stop() {
  left_.camera->stop();
  right_.camera->stop();
}

std::optional<CameraFrame> CameraPair::next(milliseconds longest) {
  const auto end = Clock::now() + longest;
  for (;;) {
    fetch(left_);
    fetch(right_);
    if (std::optional<CameraFrame> pair = match()) return pair;
    const auto rest = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (rest.count() <= 0) return {};
    Side& behind = left_.waiting.size() <= right_.waiting.size() ? left_ : right_;
    if (std::optional<CameraFrame> frame = behind.camera->next(std::min(rest, kSlice)))
      accept(behind, std::move(*frame));
  }
}

void CameraPair::fetch(Side& side) {
  while (std::optional<CameraFrame> frame = side.camera->next(milliseconds(0)))
    accept(side, std::move(*frame));
}

/// Frames that the camera lost come before the one that shows it.
void CameraPair::accept(Side& side, CameraFrame frame) {
  const LiveDrops lost = side.camera->losses() - std::exchange(side.losses, side.camera->losses());
  for (const Cause cause :
       {&LiveDrops::camera, &LiveDrops::network, &LiveDrops::no_buffer, &LiveDrops::measuring})
    for (std::int64_t k = 0; k < lost.*cause; ++k) side.waiting.push_back({{}, cause});
  side.waiting.push_back({std::move(frame), nullptr});
}

/// Finds the frame of the right camera that was received closest to the first one of the left camera. Returns
/// false if a closer one may follow.
bool CameraPair::align() {
  std::deque<Waiting>&left = left_.waiting, &right = right_.waiting;
  while (!left.empty() && !left.front().frame) left.pop_front();
  while (left.empty() && right.size() > 1) right.pop_front();
  if (left.empty() || right.empty()) return false;
  const auto first = left.front().frame->received;
  const auto is_closer = [&](const Waiting& a, const Waiting& b) {
    if (!a.frame || !b.frame) return a.frame.has_value();
    return std::chrono::abs(a.frame->received - first) < std::chrono::abs(b.frame->received - first);
  };
  right.erase(right.begin(), std::ranges::min_element(right, is_closer));
  return right.back().frame->received >= first || std::chrono::system_clock::now() - first > kLatestPartner;
}

std::optional<CameraFrame> CameraPair::match() {
  if (!is_aligned_) is_aligned_ = align();
  if (!is_aligned_) return {};
  while (!left_.waiting.empty() && !right_.waiting.empty()) {
    const Waiting &left = left_.waiting.front(), &right = right_.waiting.front();
    if (Side* side = side_without_partner()) {
      lose(&LiveDrops::camera);
      side->waiting.pop_front();
    } else if (left.frame && right.frame) {
      return take_pair();
    } else {
      lose(left.frame ? right.cause : left.cause);
      left_.waiting.pop_front();
      right_.waiting.pop_front();
    }
  }
  drop_what_waits_too_long();
  return {};
}

/// The camera whose frame is of an earlier trigger than that of the other one; null if both are of the same.
CameraPair::Side* CameraPair::side_without_partner() {
  const Waiting &left = left_.waiting.front(), &right = right_.waiting.front();
  if (!left.frame || !right.frame || !left_.last_time || !right_.last_time) return nullptr;
  const auto of_left = static_cast<double>(left.frame->camera_time - *left_.last_time);
  const auto of_right = static_cast<double>(right.frame->camera_time - *right_.last_time);
  if (of_left <= 0 || of_right <= 0) return nullptr;  // a camera without a clock
  const double period = std::min(of_left, of_right) / static_cast<double>(since_pair_ + 1);
  if (std::abs(of_right - of_left) <= kLargestDifference * period) return nullptr;
  return of_left < of_right ? &left_ : &right_;
}

CameraFrame CameraPair::take_pair() {
  for (Side* side : {&left_, &right_}) side->last_time = side->waiting.front().frame->camera_time;
  CameraFrame pair = std::move(*left_.waiting.front().frame);
  pair.right = std::move(right_.waiting.front().frame->image);
  pair.received = std::max(pair.received, right_.waiting.front().frame->received);
  left_.waiting.pop_front();
  right_.waiting.pop_front();
  since_pair_ = 0;
  ++produced_;
  return pair;
}

void CameraPair::lose(Cause cause) {
  ++since_pair_;
  ++produced_;
  ++(losses_.*cause);
}

/// A camera that sends nothing must not let the other one fill the memory.
void CameraPair::drop_what_waits_too_long() {
  for (Side* side : {&left_, &right_})
    for (; side->waiting.size() > kMostWaiting; side->waiting.pop_front()) lose(&LiveDrops::camera);
}

}  // namespace dic::live

#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live/camera.hpp"

namespace dic::live {

/// Two cameras that share a trigger, as one camera whose frames are pairs: CameraFrame::right is the image of
/// the right camera; id and times are those of the left one. Counts are those of pairs; a pair is lost for
/// the cause for which one of its frames is.
///
/// The first pair is found by the times at which this computer received the frames. From then on, the frames
/// of both cameras follow each other in the same order. Intervals by the clocks of the cameras show where one
/// of them missed a trigger and did not number the frame.
class CameraPair final : public LiveCamera {
 public:
  CameraPair(std::unique_ptr<LiveCamera> left, std::unique_ptr<LiveCamera> right);

  std::string name() const override;
  /// The settings of the left camera, then those of the right one, whose names begin with "right ".
  std::vector<CameraSetting> settings() const override;
  void start() override;
  std::optional<CameraFrame> next(std::chrono::milliseconds longest) override;
  void trigger() override;
  std::int64_t produced() const override { return produced_; }
  LiveDrops losses() const override { return losses_; }
  void stop() override;

 private:
  using Cause = std::int64_t LiveDrops::*;

  /// A frame, or the cause of its loss.
  struct Waiting {
    std::optional<CameraFrame> frame;
    Cause cause = nullptr;
  };
  struct Side {
    std::unique_ptr<LiveCamera> camera;
    std::deque<Waiting> waiting;
    LiveDrops losses;                            ///< of the camera, as far as they are in `waiting`
    std::optional<std::int64_t> last_time = {};  ///< camera's clock, ns; of the last pair
  };
  /// Number of frames that may wait for those of the other camera.
  static constexpr std::size_t kMostWaiting = 64;

  static void accept(Side& side, CameraFrame frame);
  static void fetch(Side& side);
  bool align();
  std::optional<CameraFrame> match();
  Side* side_without_partner();
  CameraFrame take_pair();
  void lose(Cause cause);
  void drop_what_waits_too_long();

  Side left_, right_;
  bool is_aligned_ = false;
  std::int64_t since_pair_ = 0;  ///< pairs that were lost since the last whole one
  std::int64_t produced_ = 0;
  LiveDrops losses_;
};

}  // namespace dic::live

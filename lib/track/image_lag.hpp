#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <dic/track.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "analysis/skipped_cells.hpp"
#include "core/parallel.hpp"
#include "track/field_steps.hpp"

namespace dic::track {

/// What of a frame may show older frames.
struct LaggingFrame {
  std::int64_t number = 0;  ///< frames are numbered from 1 on in the order in which they were taken
  std::shared_ptr<const Image> rows, rows_before;  ///< sampled rows of this frame and of the one before
  analysis::SkippedCells skipped;
};

/// Accounts for frames that show older frames: in blocks that a video codec has not updated, or everywhere,
/// where a camera denoises over time and mixes a share of the frame before into each frame. Both draw
/// displacements towards those of older frames, which no residual shows. The bias counts in sigma; points
/// with a large bias are given up.
class ImageLag {
 public:
  /// reference: on the host, as the camera gave it. blob: standard deviation of the texture's correlation,
  /// px, or 0 if unknown. options and pool must outlive this object.
  ImageLag(ImageView reference, double blob, const TrackOptions& options, core::ThreadPool& pool);

  /// Takes the next frame, on the host, as the camera gave it.
  std::shared_ptr<const LaggingFrame> take(ImageView frame);
  /// Returns the step that adds the bias by older frames to the sigmas.
  FieldStep step(std::shared_ptr<const LaggingFrame> frame);

 private:
  double share_in(const LaggingFrame& frame, double noise) const;
  void apply(const LaggingFrame& frame, MeasuredFrame& measured);

  const TrackOptions& options_;
  core::ThreadPool& pool_;
  double blob_;
  std::shared_ptr<const Image> reference_rows_;
  std::mutex mutex_;  ///< protects last_taken_
  std::shared_ptr<const LaggingFrame> last_taken_;
  std::int64_t last_number_ = 0;        ///< number of the frame of last_u_, last_v_; 0: the reference
  std::vector<float> last_u_, last_v_;  ///< by node, px; empty: the reference
};

/// Share of the reference in the first frame after it, as the correlation of their noise shows it; 0 if it is
/// not significant, or if the texture is as fine as noise. rows: see analysis::sampled_rows. skipped: cells
/// that do not count. noise: of the images, grey levels.
double share_of_older_image(ImageView older_rows, ImageView newer_rows, const analysis::SkippedCells& skipped,
                            double noise, core::ThreadPool& pool);
/// The same of the frame before in a later frame. number: of the newer frame.
double share_of_frame_before(ImageView reference_rows, ImageView older_rows, ImageView newer_rows,
                             std::int64_t number, const analysis::SkippedCells& skipped, double noise,
                             core::ThreadPool& pool);

}  // namespace dic::track

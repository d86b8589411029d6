#pragma once

#include <algorithm>
#include <dic/match.hpp>
#include <vector>

#include "match/pattern.hpp"
#include "match/pose_image.hpp"
#include "match/pose_kernels.hpp"

namespace dic::match {

/// A template, or the middle of it, at one level of its pyramid; see PoseTemplate::image_level().
struct TemplateLevel {
  FloatImage values, mask;
  double center_x = 0, center_y = 0;  ///< of the whole template, in pixels of this level
  double rim = 0;                     ///< largest distance of a pixel that counts from the centre, px
  PixelList pixels;                   ///< some thousand at most, those with the largest gradients
  double deviation = 0;               ///< standard deviation of the grey values that count
};

/// A template prepared for the search of its pose.
class PoseTemplate {
 public:
  /// least_scale: smallest scale that is searched.
  PoseTemplate(const Template& source, double least_scale, core::ThreadPool& pool);

  int top() const { return static_cast<int>(levels_.size()) - 1; }  ///< coarsest level
  /// The level of the image with which a level is compared: its pixels cover 2^image_level pixels. A fine
  /// texture is lost when it is reduced; above the last level that has it, levels are smaller and smaller
  /// middles of the template.
  int image_level(int level) const { return std::min(level, reduced_); }
  const TemplateLevel& level(int level) const { return levels_[level]; }
  /// All pixels of full resolution, without those at the outline, which show the background as well.
  const PixelList& full() const { return full_; }
  /// Some ten thousand of them; empty if `full` has hardly more.
  const PixelList& many() const { return many_; }
  int width() const { return levels_[0].values.width; }
  int height() const { return levels_[0].values.height; }
  /// Turns by which the template looks nearly the same, degrees.
  const std::vector<double>& symmetries() const { return symmetries_; }
  /// True if it looks nearly the same after any turn, as a disc or a ring does.
  bool is_round() const { return is_round_; }

  /// The template at a pose of the coarsest level, for an image with this distance between rows.
  CoarsePattern coarse_pattern(double radians, double scale, std::ptrdiff_t stride) const;

 private:
  void reduce(double least_scale, core::ThreadPool& pool);
  void add_middles(double least_scale);

  std::vector<TemplateLevel> levels_;
  int reduced_ = 0;  ///< coarsest level that is the whole template
  PixelList full_, many_;
  std::vector<double> symmetries_;
  bool is_round_ = false;
};

}  // namespace dic::match

#pragma once

#include <chrono>
#include <dic/match.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "match/pose_refinement.hpp"
#include "match/pose_template.hpp"

namespace dic::match {

/// Ends a search: by an exception when the caller asks, or quietly when its time is over.
class SearchLimit {
 public:
  SearchLimit(std::stop_token stop, int timeout_ms);
  /// True once the time is over. Throws Cancelled.
  bool is_over() const;
  const std::stop_token& stop() const { return stop_; }

 private:
  std::stop_token stop_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

/// An image and its reduced copies.
class ImagePyramid {
 public:
  /// mask: empty, or of the image's size, non-zero = the pixel counts.
  ImagePyramid(ImageView image, ImageView mask, core::ThreadPool& pool);
  /// Makes the levels up to this one.
  void require(int level, core::ThreadPool& pool);
  const ImageView& image() const { return image_; }
  /// Level 0 is only there after require_full().
  const FloatImage& level(int level) const { return levels_[level]; }
  const FloatImage* mask(int level) const { return masks_.empty() ? nullptr : &masks_[level]; }
  void require_full(core::ThreadPool& pool);

 private:
  ImageView image_;
  std::vector<FloatImage> levels_, masks_;
};

/// Pixels left .. right - 1 and top .. bottom - 1.
struct Rectangle {
  int left = 0, top = 0, right = 0, bottom = 0;
};

/// Searches one template at all poses of ranges of angles and scales: coarse to fine on image pyramids, with
/// Gauss-Newton steps over the pose at every level.
class PoseSearch {
 public:
  /// options and pool must outlive this object.
  PoseSearch(const Template& source, const MatchOptions& options, core::ThreadPool& pool);

  /// `pose`: template index and size, which the matches take over.
  MatchResult find(ImagePyramid& image, const Match& pose, const SearchLimit& limit);
  /// Searches around the angle and scale of an earlier match only. Large templates count with some of their
  /// pixels, so that an image of a sequence costs milliseconds.
  MatchResult find_near(ImagePyramid& image, const Match& last, const SearchLimit& limit);

 private:
  struct Candidate {
    pose::Warp warp;  ///< in pixels of full resolution
    double score = 0;
    double gain = 0, offset = 0;  ///< of the last fit; gain 0: none
    int angle = 0, scale = 0;     ///< index of the coarse pose
    bool of_all = false;          ///< refined with all pixels, beside a candidate refined with a part
  };
  /// How much a search may cost.
  struct Effort {
    const SearchLimit& limit;
    int matches = 1;       ///< largest number that is wanted
    bool is_fast = false;  ///< large templates count with some of their pixels
  };
  /// An image in which one thread tries poses.
  struct Trial {
    const ImagePyramid& image;
    const Effort& effort;
    PoseRefiner& refiner;
  };
  struct Refined {
    PoseFit fit;
    pose::Warp warp;
    pose::Freedom freedom;  ///< of the last fit
  };
  /// The best pose that was tried.
  struct Best {
    std::optional<Refined> pose;
    double score = -1;
  };

  MatchResult find(ImagePyramid& image, const Match& pose, const std::vector<int>& poses,
                   const Effort& effort);
  /// poses: indices of the coarse poses, by scale, then angle.
  std::vector<Candidate> coarse(const ImagePyramid& image, const std::vector<int>& poses,
                                const Effort& effort);
  void refine_level(const ImagePyramid& image, int level, std::vector<Candidate>& candidates,
                    const Effort& effort);
  std::optional<Match> finish(const Trial& trial, const Candidate& candidate, const Match& pose) const;
  Rectangle reach_of(const pose::Warp& warp, const ImageView& image) const;
  PoseFit refine_window(const SampleImage& from, const pose::Warp& start, const Trial& trial,
                        RefinementPlan& plan) const;
  std::optional<Refined> refine_full(const Trial& trial, const Candidate& candidate) const;
  void try_pose(const Trial& trial, const Candidate& start, bool is_turned, Best& best) const;
  void try_symmetries(const Trial& trial, const pose::Warp& start, Best& best) const;
  void settle_loose_motion(const Trial& trial, Best& best) const;
  std::vector<double> qualities(const Trial& trial, const PoseFit& fit, std::vector<pose::Warp>& poses) const;
  PoseFit covering(PoseFit fit, const pose::Warp& warp, const std::vector<pose::Warp>& poses,
                   const std::vector<double>& quality) const;
  std::optional<pose::Warp> rival(const Trial& trial, const pose::Warp& start, const pose::Warp& known) const;
  std::optional<pose::Warp> pose_of_all(const Trial& trial, const pose::Warp& known) const;
  PoseFit fit_at(const Trial& trial, int level, const pose::Warp& start, const RefinementPlan& plan) const;
  RefinementPlan plan_at(int level, const SearchLimit& limit) const;
  double structure(const Trial& trial, const PoseFit& fit) const;
  Match match_at(const pose::Warp& warp, const Candidate& candidate, const Match& pose) const;
  std::vector<Candidate> next_batch(const std::vector<Candidate>& candidates, std::size_t& next,
                                    const Match& pose, const std::vector<Match>& accepted) const;
  void drop_duplicates(std::vector<Candidate>& candidates, int level) const;
  bool is_in_range(const pose::Warp& warp) const;
  double top_threshold() const;
  double threshold_at(int level) const;

  const MatchOptions& options_;
  core::ThreadPool& pool_;
  PoseTemplate template_;
  pose::Freedom freedom_;
  std::vector<double> angles_, scales_;  ///< coarse poses, radians and factors
  bool full_circle_ = false;
  std::vector<CoarsePattern> patterns_;  ///< by scale, then angle, for `pattern_stride_`
  std::ptrdiff_t pattern_stride_ = 0;
  std::vector<PoseRefiner> refiners_;  ///< one per thread
};

}  // namespace dic::match

#pragma once

#include <dic/match.hpp>
#include <optional>
#include <span>
#include <vector>

#include "match/pose_backend.hpp"

namespace dic::match {

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

  /// Number of products of the coarsest level.
  double coarse_work(ImageView image) const;

  /// A template to find; `pose`: its index and size, which the matches take over.
  struct Request {
    PoseSearch* search;
    Match pose;
  };
  /// Where a search runs.
  struct Setting {
    ImagePyramid& image;
    PoseBackend& backend;
    core::ThreadPool& pool;
    const SearchLimit& limit;
  };
  /// Searches several templates at the same time. One result per request.
  static std::vector<MatchResult> find_all(std::span<const Request> requests, const Setting& setting);
  /// Searches around the angle and scale of an earlier match only. Large templates count with some of their
  /// pixels, so that an image of a sequence costs milliseconds.
  MatchResult find_near(const Match& last, const Setting& setting);

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
    FloatImage& pixels;  ///< memory
    PoseBackend& backend;
  };
  struct Refined {
    PoseFit fit;
    pose::Warp warp;
    pose::Freedom freedom;  ///< of the last fit
  };
  /// Agreement of edges and of contrast at a pose, see PoseRefiner.
  struct Structure {
    double correlation, contrast;
  };
  /// The best pose that was tried.
  struct Best {
    std::optional<Refined> pose;
    double score = -1;
  };

  /// A candidate at full resolution.
  struct Measured {
    Match match;
    double agreement;  ///< score without regard to standard deviations
    bool is_loose;     ///< a motion is not determined
  };

  /// The search of one template in one image.
  struct Run {
    PoseSearch* search;
    Match pose;
    std::vector<int> wanted{};  ///< coarse poses
    std::vector<Candidate> candidates{};
    MatchResult result{};
  };

  static std::vector<MatchResult> find(std::span<Run> runs, const Setting& setting, const Effort& effort);
  static void set_image(std::span<const Run> runs, const Setting& setting);
  static void find_together(std::span<Run> runs, const Setting& setting, const Effort& effort);
  static void refine_level(std::span<Run> runs, int level, int image_level, const Setting& setting,
                           bool is_fast);
  CoarsePoses coarse_poses() const;
  int coarse_margin() const;
  int top_of_image() const { return template_.image_level(template_.top()); }
  pose::Warp at_level(const pose::Warp& warp, int level) const;
  pose::Warp from_level(const pose::Warp& warp, int level) const;
  CoarseSearch coarse_search(ImagePyramid& pyramid, std::span<const int> wanted, const Effort& effort);
  std::vector<Candidate> candidates_of(CoarseSearch& search) const;
  void take_fits(int level, std::span<const LevelFit> fits, bool is_fast,
                 std::vector<Candidate>& candidates) const;
  void measure(Run& run, const Setting& setting, const Effort& effort);
  std::vector<Match> determined(std::span<const Measured> measured) const;
  bool is_known(const pose::Warp& warp, std::span<const Match> matches, double unit) const;
  std::optional<Measured> finish(const Trial& trial, const Candidate& candidate, const Match& pose,
                                 std::span<const Match> known) const;
  Rectangle reach_of(const pose::Warp& warp, const ImageView& image) const;
  PoseFit refine_list(const Trial& trial, FullFits& fits, const pose::Warp& start, double wanted,
                      RefinementPlan& plan) const;
  static bool is_by_all(const PoseFit& fit, bool is_turned, const Best& best);
  std::optional<Refined> refine_full(const Trial& trial, const Candidate& candidate, bool is_turned,
                                     const Best& best) const;
  void try_pose(const Trial& trial, const Candidate& start, bool is_turned, Best& best) const;
  void try_symmetries(const Trial& trial, const pose::Warp& start, Best& best) const;
  struct Misfit;
  Misfit misfit(double quality) const;
  double same_quality(double quality) const;
  std::vector<double> loose_sigmas(const Trial& trial, const Refined& pose) const;
  void settle_loose_motion(const Trial& trial, Best& best) const;
  std::vector<double> qualities(const Trial& trial, const PoseFit& fit, std::vector<pose::Warp>& poses) const;
  PoseFit covering(PoseFit fit, const pose::Warp& warp, const std::vector<pose::Warp>& poses,
                   const std::vector<double>& quality) const;
  double determination(const PoseFit& fit, const pose::Warp& warp) const;
  bool has_many_pixels() const;
  bool is_hopeless(const Best& best) const;
  bool is_open(const Trial& trial, const Candidate& candidate) const;
  std::optional<pose::Warp> rival(const Trial& trial, const pose::Warp& start, const pose::Warp& known) const;
  std::optional<pose::Warp> pose_of_all(const Trial& trial, const pose::Warp& known) const;
  PoseFit fit_at(const Trial& trial, int level, const pose::Warp& start, const RefinementPlan& plan,
                 Sampling sampling = Sampling::bilinear) const;
  RefinementPlan plan_at(int level, const SearchLimit& limit) const;
  Structure structure(const Trial& trial, const PoseFit& fit) const;
  double agreement(double correlation) const;
  double score_of(const Trial& trial, const PoseFit& fit) const;
  Match match_at(const pose::Warp& warp, const Candidate& candidate, const Match& pose) const;
  std::vector<Candidate> next_batch(std::vector<Candidate>& waiting, std::size_t most, double least,
                                    const Match& pose, const std::vector<Match>& accepted) const;
  void keep_best(std::vector<Candidate>& candidates, int level, std::size_t most) const;
  bool is_in_range(const pose::Warp& warp, double sigma_radians = 0, double sigma_log_scale = 0) const;
  double top_threshold() const;
  double threshold_at(int level) const;

  const MatchOptions& options_;
  core::ThreadPool& pool_;
  PoseTemplate template_;
  pose::Freedom freedom_;
  CoarsePoses poses_;
  std::vector<CoarsePattern> patterns_;  ///< by pose, for `pattern_stride_`
  std::ptrdiff_t pattern_stride_ = 0;
  std::vector<PoseRefiner> refiners_;  ///< one per thread
  std::vector<FloatImage> pixels_;     ///< one per thread
};

}  // namespace dic::match

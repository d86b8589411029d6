#pragma once

#include <array>
#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace dic {

struct MatchOptions {
  /// zncc ignores brightness and contrast, ncc ignores contrast only, ssd compares grey levels as they are.
  Criterion method = Criterion::zncc;
  int max_matches = 1;  ///< per template and image, after non-maximum suppression; >= 1
  /// Matches scoring lower are dropped; in [-1, 1]. Judged at the sub-pixel position, with 1e-6 for rounding.
  double threshold = 0.5;
  /// Two matches of one template whose boxes overlap by more than this (intersection over union) are one: the
  /// better scoring stays. In [0, 1].
  double max_overlap = 0.3;
  std::vector<double> rotations = {0};  ///< degrees, positive from x towards y; at least one
  std::vector<double> scales = {1};     ///< of the template, > 0; at least one
  std::string device = "auto";          ///< auto, cpu, cuda, cuda:N, opencl, opencl:N
  int threads = 0;                      ///< 0 = one per core
  std::string variant;                  ///< of the correlation; empty = planner
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// One place where a template was found.
struct Match {
  int image = 0;                      ///< index
  int template_index = 0;             ///< index
  double x = 0, y = 0;                ///< where the template's own top-left pixel centre lands, image px
  double center_x = 0, center_y = 0;  ///< where the template's centre ((w-1)/2, (h-1)/2) lands, image px
  double score = 0;                   ///< at this sub-pixel position, [-1, 1], 1 = equal
  double rotation_deg = 0;            ///< one of MatchOptions::rotations
  double scale = 1;                   ///< one of MatchOptions::scales
  int width = 0, height = 0;          ///< of the template as given, px
};

/// Corners of the matched box, image px: the outer edges of the template's corner pixels, in the order
/// top-left, top-right, bottom-right, bottom-left of the template.
std::array<std::array<double, 2>, 4> box_corners(const Match& match);

struct MatchResult {
  std::vector<Match> matches;  ///< best score first
  /// Best score seen anywhere, also below the threshold: says how far off the threshold was.
  double best_score = -1;

  /// Takes in the matches of another result, in order of score.
  void add(MatchResult other);
};

/// Searches the same templates in one image after the other; keeps threads, FFT plans and buffers between
/// calls.
///
/// A score is the method's value between template and image at the sub-pixel position:
///   zncc, ncc   the (zero-)normalized cross-correlation; 0 where the image has no contrast (no energy)
///   ssd         1 - sum (t - i)^2 / (sum t^2 + sum i^2), so that one threshold rule serves all methods
/// Candidates are the local maxima (ssd: minima) of the correlation surface at whole pixels. Each is refined
/// by Gauss-Newton steps of a translation with gain and offset (Lucas & Kanade 1981) on a prefiltered quintic
/// spline of the image; within 1 px of the whole pixel, and where that fails by a quadratic through the
/// surface. A rotated or scaled template counts with the pixels that lie wholly inside its outline. A rotated
/// or scaled template that does not fit into the image is left out.
///
/// One call at a time per object; objects are independent of each other.
class Matcher {
 public:
  /// Copies the templates. masks: empty, or one per template (any type, the template's size, non-zero = the
  /// pixel counts). Throws UsageError (options; a template that is empty or has no contrast for the method),
  /// DeviceError.
  Matcher(std::span<const ImageView> templates, const MatchOptions& options,
          std::span<const ImageView> masks = {});
  ~Matcher();
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;

  /// Finds every template in the image. Template and image may differ in element type for zncc and ncc, which
  /// do not depend on the grey scale. Throws UsageError (a template larger than the image, element types that
  /// cannot be compared), Cancelled.
  MatchResult find(ImageView image, std::stop_token stop = {});
  /// The same for one template alone; `template_index` counts from 0 (UsageError where there is none).
  MatchResult find_template(int template_index, ImageView image, std::stop_token stop = {});
  int templates() const;  ///< number of templates
  const MatchOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Where a template is in one image of a sequence.
struct TrackedMatch {
  int template_index = 0;
  int track = -1;                ///< number of the track, from 0 in the order of finding; -1 = not found yet
  std::optional<Match> match{};  ///< none where it was not found; Match::image counts the calls of `next`
  double best_score = -1;        ///< seen in the searched part of the image
  double dx = 0, dy = 0;         ///< px: of the centre, since the image in which the track begins
};

/// Follows templates through a sequence. Every template is searched in the whole image until it is found;
/// each of its matches begins a track. From then on it is searched near its last place: two copies of a
/// template are not confused, and images cost less. A track that is lost in an image is looked for in twice
/// the range in the next one. The template stays as it was given, so that errors do not add up.
class TemplateTracker {
 public:
  /// search: how far a template is looked for from one image to the next, px (a few more are seen); none =
  /// half the smaller side of the template, at least 16. The Matcher must outlive this object. Throws
  /// UsageError (search below 1).
  explicit TemplateTracker(Matcher& matcher, std::optional<int> search = std::nullopt);

  /// One entry per track, and one without a match for each template that has none yet: by template, then by
  /// track. Throws as Matcher::find does.
  std::vector<TrackedMatch> next(ImageView image, std::stop_token stop = {});

 private:
  struct Track {
    int number = 0;
    Match first, last;
    int lost = 0;  ///< images since it was seen
  };

  std::vector<TrackedMatch> begin(int template_index, ImageView image, std::stop_token stop);
  TrackedMatch follow(Track& track, ImageView image, std::stop_token stop);

  Matcher& matcher_;
  std::optional<int> search_;
  std::vector<std::vector<Track>> tracks_;  ///< by template
  int image_ = -1;                          ///< the last one
  int begun_ = 0;
};

/// Finds each template in each image; best score first over all of them. See Matcher.
MatchResult match_templates(std::span<const ImageView> templates, std::span<const ImageView> images,
                            const MatchOptions& options, std::span<const ImageView> masks = {},
                            std::stop_token stop = {});

/// The image (grey, stretched to its own range where it is not 8 bit) with the box, the top edge and the
/// score of every match drawn over it, as a colour image. Throws FileError.
void write_match_picture(const std::filesystem::path& path, ImageView image, std::span<const Match> matches);

}  // namespace dic

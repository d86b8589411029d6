#pragma once

#include <array>
#include <dic/correlate.hpp>
#include <dic/export.hpp>
#include <dic/image.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace dic {

/// An interval of angles (degrees) or scales.
struct PoseRange {
  double min = 0, max = 0;
};

struct MatchOptions {
  /// zncc ignores brightness and contrast, ncc ignores contrast only, ssd compares grey levels as they are.
  Criterion method = Criterion::zncc;
  int max_matches = 1;  ///< per template and image, after non-maximum suppression; >= 1
  /// Matches with a lower score are dropped; in [-1, 1]. Compared with the score at the sub-pixel position,
  /// with a tolerance of 1e-6 for rounding.
  double threshold = 0.5;
  /// If the boxes of two matches of one template overlap by more than this (intersection over union), the one
  /// with the lower score is dropped. In [0, 1].
  double max_overlap = 0.3;
  std::vector<double> rotations = {0};  ///< degrees, positive from x towards y; at least one
  std::vector<double> scales = {1};     ///< scales of the template, 0.01 to 100; at least one
  /// Angles, degrees, within which the rotation is searched and measured, instead of `rotations`; a range of
  /// 360 degrees or more is any angle. With a range of angles or scales, `method` must be zncc, and parts
  /// that the image's border cuts are found down to half of the template. A GPU does all but the last level.
  std::optional<PoseRange> rotation_range;
  std::optional<PoseRange> scale_range;  ///< scales, 0.01 to 100, to search and measure, instead of `scales`
  bool affine = false;                   ///< a search of poses also fits shear and aspect ratio at the end
  bool ignore_polarity = false;          ///< a search of poses also finds dark on bright for bright on dark
  int timeout_ms = 0;           ///< time after which a search of poses of one template ends; 0 = none
  std::string device = "auto";  ///< auto, cpu, cuda, cuda:N, opencl, opencl:N
  int threads = 0;              ///< 0 = one per core
  std::string variant;          ///< correlation variant; empty = the planner chooses
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

/// One place where a template was found.
struct Match {
  int image = 0;                      ///< index of the image
  int template_index = 0;             ///< index of the template
  double x = 0, y = 0;                ///< centre of the template's top-left pixel, image px
  double center_x = 0, center_y = 0;  ///< template's centre, its pixel ((w-1)/2, (h-1)/2), image px
  double score = 0;                   ///< score at this sub-pixel position, [-1, 1], 1 = equal
  double rotation_deg = 0;            ///< one of MatchOptions::rotations
  double scale = 1;                   ///< one of MatchOptions::scales
  int width = 0, height = 0;          ///< size of the template as given, px
  bool refined = false;  ///< true if the pose was searched within ranges; the following are only set then
  double visible = 1;    ///< share of the template's pixels that lie inside the image and fit
  double sigma_x = 0, sigma_y = 0;                 ///< standard deviations of the centre, px
  double sigma_rotation_deg = 0, sigma_scale = 0;  ///< standard deviations; 0 for a parameter that was given
};

/// Corners of the matched box, image px: the outer edges of the template's corner pixels, in the order
/// top-left, top-right, bottom-right, bottom-left of the template.
DIC_API std::array<std::array<double, 2>, 4> box_corners(const Match& match);

struct MatchResult {
  std::vector<Match> matches;  ///< best score first
  /// Best score found anywhere, also below the threshold; shows how far off the threshold was.
  double best_score = -1;
  bool timed_out = false;  ///< true if MatchOptions::timeout_ms ended the search; the matches so far are kept

  /// Merges the matches of another result, in order of score.
  DIC_API void add(MatchResult other);
};

/// Searches for the same templates in one image after the other. Keeps threads, FFT plans and buffers between
/// calls.
///
/// A score is the method's value between template and image at the sub-pixel position:
///   zncc, ncc   the (zero-)normalized cross-correlation; 0 where the image has no contrast (no energy)
///   ssd         1 - sum (t - i)^2 / (sum t^2 + sum i^2), so that one threshold rule serves all methods
/// Candidates are the local maxima (ssd: minima) of the correlation surface at whole pixels. Each is refined
/// by Gauss-Newton steps of a translation with gain and offset (Lucas & Kanade 1981) on a prefiltered quintic
/// spline of the image, within 1 px of the whole pixel; if that fails, by a quadratic through the surface. Of
/// a rotated or scaled template, the pixels wholly inside its outline count. A rotated or scaled template
/// that does not fit into the image is skipped.
///
/// One call at a time per object; objects are independent of each other.
class Matcher {
 public:
  /// Copies the templates. masks: empty, or one per template (any type, the template's size, non-zero = the
  /// pixel counts). Throws UsageError (options; a template that is empty or has no contrast for the method),
  /// DeviceError.
  DIC_API Matcher(std::span<const ImageView> templates, const MatchOptions& options,
                  std::span<const ImageView> masks = {});
  DIC_API ~Matcher();
  DIC_API Matcher(Matcher&&) noexcept;
  DIC_API Matcher& operator=(Matcher&&) noexcept;

  /// Finds all matches of every template in the image. For zncc and ncc, which do not depend on the grey
  /// scale, template and image may have different element types. image_mask: empty, or of the image's size,
  /// any type; pixels where it is zero do not count (only with ranges of poses). Throws UsageError (a
  /// template larger than the image, element types that cannot be compared, a mask of another size),
  /// Cancelled.
  DIC_API MatchResult find(ImageView image, std::stop_token stop = {}, ImageView image_mask = {});
  /// Finds what `find` does, and returns it by template. Throws as `find` does.
  DIC_API std::vector<MatchResult> find_each(ImageView image, std::stop_token stop = {},
                                             ImageView image_mask = {});
  /// Finds the matches of one template. template_index: from 0; an invalid one throws UsageError. Throws as
  /// `find` does.
  DIC_API MatchResult find_template(int template_index, ImageView image, std::stop_token stop = {},
                                    ImageView image_mask = {});
  /// Finds a match of an earlier image again, near its angle and scale but anywhere in this image, which may
  /// be a part of the whole one. Takes milliseconds. Without ranges of poses it does what find_template does.
  DIC_API MatchResult find_again(const Match& last, ImageView image, std::stop_token stop = {});
  DIC_API int templates() const;  ///< number of templates
  DIC_API const MatchOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A template's position in one image of a sequence.
struct TrackedMatch {
  int template_index = 0;
  int track = -1;                ///< number of the track, from 0 in the order of finding; -1 = not found yet
  std::optional<Match> match{};  ///< none if not found; Match::image counts the calls of `next`
  double best_score = -1;        ///< best score in the searched part of the image
  double dx = 0, dy = 0;         ///< displacement of the centre since the track's first image, px
};

/// Follows templates through a sequence. Every template is searched in the whole image until it is found;
/// each of its matches begins a track. Later images are searched only near the track's last position, so that
/// copies of a template are not confused and the search is faster. If a track is lost in an image, the search
/// range doubles for the next one. The template is never updated, so that errors do not add up.
class TemplateTracker {
 public:
  /// search: largest motion between two images, px (a few px more are seen); none = half the smaller side of
  /// the template, at least 16. The Matcher must outlive this object. Throws UsageError (search below 1).
  DIC_API explicit TemplateTracker(Matcher& matcher, std::optional<int> search = std::nullopt);

  /// Searches the next image. Returns one entry per track, and one without a match for each template that has
  /// no track yet, sorted by template, then by track. Throws as Matcher::find does.
  DIC_API std::vector<TrackedMatch> next(ImageView image, std::stop_token stop = {});

 private:
  struct Track {
    int number = 0;
    Match first, last;
    int lost = 0;  ///< number of images since the last match
  };

  std::vector<TrackedMatch> begin(int template_index, ImageView image, std::stop_token stop);
  TrackedMatch follow(Track& track, ImageView image, std::stop_token stop);

  Matcher& matcher_;
  std::optional<int> search_;
  std::vector<std::vector<Track>> tracks_;  ///< tracks of each template
  int image_ = -1;                          ///< the last one
  int begun_ = 0;
};

/// Finds each template in each image; the result is sorted by score over all images. Throws as Matcher does.
DIC_API MatchResult match_templates(std::span<const ImageView> templates, std::span<const ImageView> images,
                                    const MatchOptions& options, std::span<const ImageView> masks = {},
                                    std::stop_token stop = {});

/// Writes the image (grey, stretched to its range unless it is 8 bit) as a colour image with the box, the top
/// edge and the score of every match drawn over it. Throws FileError.
DIC_API void write_match_picture(const std::filesystem::path& path, ImageView image,
                                 std::span<const Match> matches);

}  // namespace dic

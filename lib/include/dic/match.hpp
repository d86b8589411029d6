#pragma once

#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace dic {

struct MatchOptions {
  Measure method = Measure::zncc;  ///< zncc, ncc or ssd
  int max_matches = 1;             ///< per template and image, after non-maximum suppression; >= 1
  /// Matches scoring lower are dropped. For ssd the score is 1 - ssd / (sum ref^2 + sum search^2), in [0, 1]
  /// for unsigned pictures, so that one threshold rule serves all methods.
  double threshold = 0.5;
  /// Two matches of one template whose boxes overlap by more than this (intersection over union) are one.
  double max_overlap = 0.3;
  std::vector<double> rotations = {0};  ///< degrees, positive from x towards y
  std::vector<double> scales = {1};     ///< of the template, > 0
  std::string device = "auto";
  int threads = 0;      ///< 0 = one per core
  std::string variant;  ///< of the correlation; empty = planner
  std::vector<std::string> problems() const;
};

/// One place where a template was found.
struct Match {
  int image = 0;  ///< index
  int template_index = 0;
  double x = 0, y = 0;  ///< sub-pixel position of the template's top-left pixel centre, image px
  double center_x = 0, center_y = 0;
  double score = 0;  ///< [-1, 1]
  double rotation_deg = 0;
  double scale = 1;
};

/// Finds each template in each image; best score first over all of them.
///
/// masks: empty, or one per template (u8, template's size, non-zero = counts). For a rotated or scaled
/// template x, y is where the template's own top-left pixel centre lands. Throws UsageError (a template
/// larger than the image, different element types that cannot be compared), Cancelled.
std::vector<Match> match_templates(std::span<const ImageView> templates, std::span<const ImageView> images,
                                   const MatchOptions& options, std::span<const ImageView> masks = {},
                                   std::stop_token stop = {});

}  // namespace dic

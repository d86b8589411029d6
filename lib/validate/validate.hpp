#pragma once

#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "validate/metrics.hpp"
#include "validate/resolution.hpp"
#include "validate/scene.hpp"
#include "validate/stereo.hpp"

/// Measures images of known motion, and reports the errors and whether they keep their bounds.
namespace dic::validation {

/// Bounds that a case must keep. None: no bound.
struct Bounds {
  std::optional<double> bias = {}, sd = {}, rmse = {};  ///< largest values, px
  std::optional<double> false_ok = {};                  ///< largest share of false points among the ok points
  /// largest share of lost points among the measurable points
  std::optional<double> lost = {};
  struct Range {
    double least = 0, most = 0;
  };
  std::optional<Range> scatter = {};  ///< range of observed / predicted sigma
  std::optional<double> near_edge =
      {};  ///< smallest share of points beside an edge that are right within 3 sigma
  std::optional<double> resolution = {};     ///< largest spatial resolution, px
  std::optional<double> strain_bias = {};    ///< largest mean error of the strain
  std::optional<Range> strain_scatter = {};  ///< range of observed / predicted sigma of the strain
  /// The bounds as text, for example "false ok <= 0.01 %, lost <= 0.1 %".
  std::string text() const;
};

/// The points whose errors count: by their distance from the border of the reference, and outwards from the
/// edge of a hole, px.
struct Region {
  int nearest = 40, farthest = 1 << 20;
  std::optional<int> farthest_from_hole = {};  ///< none: all points, also those just inside the hole
};

/// Options of the measurement that a case sets, unless the user set them.
struct Variant {
  std::optional<int> subset = {}, order = {}, step = {}, strain_window = {};
  std::optional<Interpolation> interpolation = {};
  std::optional<ReferenceStrategy> strategy = {};
};

struct Case {
  /// A disc of the reference.
  struct Part {
    int x = 0, y = 0, radius = 0;  ///< px
  };

  std::string name;
  std::function<Scene()> scene;
  Bounds bounds;
  Variant variant = {};
  Region region = {};
  std::optional<Roi::Rect> roi = {};
  bool whole_subsets = false;    ///< only points whose whole subset is visible in both images count as lost
  int first_judged = 1;          ///< earlier frames (at rest) only measure the noise
  std::vector<Part> parts = {};  ///< searched as templates at any pose, instead of tracking points
  std::optional<StereoCase> stereo = {};  ///< measured with two cameras; `bounds` has no values then
  std::string bounds_text() const { return stereo ? stereo->bounds.text() : bounds.text(); }
  std::string parameter = {};  ///< quantity on the x axis of a curve over the cases
  double parameter_value = 0;
};

/// Cases of one subject, and the reasons for their bounds.
struct Suite {
  std::string name, about, reason;
  std::function<std::vector<Case>(const struct Options&)> cases;
  std::vector<std::string> columns;  ///< columns of its table, see columns()
};

/// Options of the measurement that the user set: no case changes them.
struct Asked {
  bool subset = false, order = false, step = false, interpolation = false, strategy = false,
       strain_window = false;
};

struct Options {
  TrackOptions track;
  Asked asked;
  bool quick = false;  ///< use fewer and smaller images
  std::uint64_t seed = 90210;
  int side() const { return quick ? 512 : 1024; }  ///< Side of the usual image, px.
};

struct CaseResult {
  std::string suite, name, origin, device;
  TrackOptions options;
  std::vector<Metrics> frames;
  Metrics total;
  std::optional<Resolution> resolution;
  std::optional<StereoMetrics> stereo;  ///< `total` then has the counts of points alone
  Bounds bounds;
  std::optional<StereoBounds> stereo_bounds;
  std::vector<std::string> broken;  ///< a sentence per broken bound
  std::string failure;              ///< why it could not be measured, one sentence; empty = it was
  std::string parameter;
  double parameter_value = 0;
  double seconds = 0;  ///< duration of the measurement

  bool holds() const { return broken.empty() && failure.empty(); }
};

struct Report {
  std::string version, date, command;
  bool quick = false;
  std::uint64_t seed = 0;
  std::vector<CaseResult> cases;
  std::int64_t broken() const;  ///< Number of cases with a broken bound.
};

/// All suites, in the order of the report.
const std::vector<Suite>& suites();

/// The suite of two cameras.
std::vector<Case> stereo_cases(const Options& options);

/// A suite of the images in a folder: frames with truth.h5 (see folder_scene), or collections of real images.
/// Throws FileError.
Suite folder_suite(const std::filesystem::path& folder);

/// Measures and judges a case. If the data cannot be measured, sets `failure`. Throws Cancelled, DeviceError.
CaseResult run_case(const Suite& suite, const Case& one, const Options& options, std::stop_token stop = {});

/// Finds the parts of a case in the current image and judges two points for each: its centre, and its rim,
/// which angle and scale move.
Metrics judge_parts(const Case& one, const Image& reference, const Image& current, const Motion& motion,
                    const Options& options, const std::stop_token& stop);

/// A sentence per broken bound.
std::vector<std::string> broken_bounds(const Bounds& bounds, const Metrics& metrics,
                                       const std::optional<Resolution>& resolution);

/// Runs suites in order; `on_case` is called after each case. Throws as run_case does.
Report run(const std::vector<Suite>& suites, const Options& options, const std::string& command,
           const std::function<void(const Suite&, const CaseResult&)>& on_case = {},
           std::stop_token stop = {});

/// Rows of a table: the header first. The columns are those of the suite.
std::vector<std::vector<std::string>> table_of(const Suite& suite, const std::vector<CaseResult>& cases);
/// The table of a suite as Markdown, with every broken bound.
std::string to_markdown(const Suite& suite, const Report& report);
/// The document with the tables of the suites that ran inserted between its lines "<!-- report: SUITE -->"
/// and "<!-- end of report -->". Throws UsageError if these lines are missing.
std::string insert_tables(std::string document, const std::vector<Suite>& suites, const Report& report);
std::string to_json(const Report& report, const std::vector<Suite>& suites);
/// The report as CSV: a header and a line per case.
std::string to_csv(const Report& report);
/// Draws curves as PNG: loss against period, bias against shift, observed and predicted scatter, ... Returns
/// the files. Throws FileError.
std::vector<std::filesystem::path> write_plots(const std::filesystem::path& folder, const Report& report);

}  // namespace dic::validation

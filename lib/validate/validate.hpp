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

/// Measures images whose motion is known, and says how wrong the measurement is and whether it keeps what is
/// promised.
namespace dic::validation {

/// What a case has to keep. None: no bound.
struct Bounds {
  std::optional<double> bias = {}, sd = {}, rmse = {};  ///< px, at most
  std::optional<double> false_ok = {};                  ///< share of the ok points, at most
  std::optional<double> lost = {};                      ///< share of the measurable points, at most
  struct Range {
    double least = 0, most = 0;
  };
  std::optional<Range> scatter = {};  ///< observed / predicted sigma
  std::optional<double> near_edge =
      {};  ///< share of the points beside an edge right within 3 sigma, at least
  std::optional<double> resolution = {};   ///< spatial resolution, px, at most
  std::optional<double> strain_bias = {};  ///< at most
  std::string text() const;                ///< "false ok <= 0.01 %, lost <= 0.1 %"
};

/// The points whose errors count: by their distance from the border of the reference, px.
struct Region {
  int nearest = 40, farthest = 1 << 20;
};

/// Options of the measurement that a case sets, unless they were asked for.
struct Variant {
  std::optional<int> subset = {}, order = {}, step = {};
  std::optional<Interpolation> interpolation = {};
  std::optional<ReferenceStrategy> strategy = {};
};

struct Case {
  std::string name;
  std::function<Scene()> scene;
  Bounds bounds;
  Variant variant = {};
  Region region = {};
  std::optional<Roi::Rect> roi = {};
  bool whole_subsets = false;  ///< only points whose whole subset is seen in both images can be lost
  int first_judged = 1;        ///< frames before it (still ones) measure the noise alone
  std::string parameter = {};  ///< what a curve over the cases has on its x axis
  double parameter_value = 0;
};

/// Cases of one subject, and why they have the bounds that they have.
struct Suite {
  std::string name, about, reason;
  std::function<std::vector<Case>(const struct Options&)> cases;
  std::vector<std::string> columns;  ///< of its table, see columns()
};

/// Which options of the measurement were asked for: no case changes them.
struct Asked {
  bool subset = false, order = false, step = false, interpolation = false, strategy = false;
};

struct Options {
  TrackOptions track;
  Asked asked;
  bool quick = false;  ///< fewer and smaller images
  std::uint64_t seed = 90210;
  int side() const { return quick ? 512 : 1024; }  ///< of the usual image, px
};

struct CaseResult {
  std::string suite, name, origin, device;
  TrackOptions options;
  std::vector<Metrics> frames;
  Metrics total;
  std::optional<Resolution> resolution;
  Bounds bounds;
  std::vector<std::string> broken;  ///< one sentence per bound that does not hold
  std::string failure;              ///< why it could not be measured, one sentence; empty = it was
  std::string parameter;
  double parameter_value = 0;
  double seconds = 0;  ///< of the measurement

  bool holds() const { return broken.empty() && failure.empty(); }
};

struct Report {
  std::string version, date, command;
  bool quick = false;
  std::uint64_t seed = 0;
  std::vector<CaseResult> cases;
  std::int64_t broken() const;  ///< cases with a bound that does not hold
};

/// All suites, in the order of the report.
const std::vector<Suite>& suites();

/// A suite of the images in a folder: frames and truth.h5 (see folder_scene), or the collections of real
/// images that it holds. Throws FileError.
Suite folder_suite(const std::filesystem::path& folder);

/// Measures and judges. Data that cannot be measured is a `failure`. Throws Cancelled, DeviceError.
CaseResult run_case(const Suite& suite, const Case& one, const Options& options, std::stop_token stop = {});

/// One sentence per bound that does not hold.
std::vector<std::string> broken_bounds(const Bounds& bounds, const Metrics& metrics,
                                       const std::optional<Resolution>& resolution);

/// Runs suites in order; `on_case` is called after each case. Throws as run_case does.
Report run(const std::vector<Suite>& suites, const Options& options, const std::string& command,
           const std::function<void(const Suite&, const CaseResult&)>& on_case = {},
           std::stop_token stop = {});

/// Rows of a table: the header first. The columns are those of the suite.
std::vector<std::vector<std::string>> table_of(const Suite& suite, const std::vector<CaseResult>& cases);
/// The same as Markdown, with every bound that does not hold.
std::string to_markdown(const Suite& suite, const Report& report);
/// The document with the tables of the suites that ran between its lines "<!-- report: SUITE -->" and
/// "<!-- end of report -->". Throws UsageError where it lacks these lines.
std::string insert_tables(std::string document, const std::vector<Suite>& suites, const Report& report);
std::string to_json(const Report& report, const std::vector<Suite>& suites);
/// A header and a line per case.
std::string to_csv(const Report& report);
/// Curves as PNG: loss against period, bias against shift, observed and predicted scatter, ... Returns the
/// files. Throws FileError.
std::vector<std::filesystem::path> write_plots(const std::filesystem::path& folder, const Report& report);

}  // namespace dic::validation

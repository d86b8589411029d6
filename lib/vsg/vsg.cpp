#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <dic/io.hpp>
#include <dic/shared/strain_sigma.hpp>
#include <dic/vsg.hpp>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>

#include "core/parallel.hpp"
#include "draw/chart.hpp"
#include "fields/strain.hpp"
#include "track/stopwatch.hpp"

namespace dic::vsg {
namespace {

std::vector<float> present(const NodeValues<float>& values) {
  std::vector<float> found;
  std::ranges::copy_if(values, std::back_inserter(found), [](float value) { return std::isfinite(value); });
  return found;
}

double root_mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double deviation(const std::vector<float>& values) {
  double mean = 0, squares = 0;
  for (const float value : values) mean += value / static_cast<double>(values.size());
  for (const float value : values) squares += std::pow(value - mean, 2);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

/// 99.9th percentile of the absolute values, so that single wrong points do not decide.
double peak_of(std::vector<float> values) {
  if (values.empty()) return strain::missing;
  for (float& value : values) value = std::abs(value);
  const auto at = values.begin() + std::lround(0.999 * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

VsgResult result_of(const VsgOptions& options, const MeasuredSubsets& subsets, int window,
                    const Field& loaded, const Field* at_rest, core::ThreadPool& pool) {
  const int step = options.track.step;
  const StrainOptions how{window, options.track.strain.measure};
  const auto strain_of = [&](const Field& field) {
    return fields::compute_strain(field, how, pool, subsets, fields::StrainErrors::noise);
  };
  const StrainField signal = strain_of(loaded);
  const StrainField noise = at_rest ? strain_of(*at_rest) : signal;
  VsgResult result;
  result.subset = subsets.size, result.window = window;
  result.gauge = (window - 1) * step + subsets.size;
  result.resolution = vsg_resolution(subsets, window, step);
  result.points = std::ssize(present(strain_values(signal, kStrainComponents.front())));
  for (std::size_t k = 0; k < kStrainComponents.size(); ++k) {
    const FieldArray& array = kStrainComponents[k];
    VsgResult::Component& component = result.strain[k];
    component.sigma = root_mean_square(present(strain_values(noise, *sigma_of(array))));
    component.peak = peak_of(present(strain_values(signal, array)));
    if (at_rest) component.at_rest = deviation(present(strain_values(noise, array)));
  }
  return result;
}

draw::Chart chart_of(const std::string& title, const std::string& x, const std::string& y, bool log_y) {
  return {.title = title,
          .x_label = x,
          .y_label = y,
          .x_ticks = {10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000},
          .y_mark = 0,
          .series = {},
          .log_x = true,
          .log_y = log_y};
}

/// One series per subset, and points for the frame at rest.
template <typename Point>
void add_series(draw::Chart& chart, const std::vector<VsgResult>& results, const std::string& suffix,
                bool is_line, const Point& point) {
  for (const VsgResult& result : results) {
    const std::string name = "subset " + std::to_string(result.subset) + suffix;
    if (chart.series.empty() || chart.series.back().name != name) chart.series.push_back({name, {}, is_line});
    const auto [x, y] = point(result);
    if (std::isfinite(y) && (!chart.log_y || y > 0)) chart.series.back().points.emplace_back(x, y);
  }
}

/// Index of the component with the largest peak, which is the one that the specimen shows.
std::size_t main_component(const std::vector<VsgResult>& results) {
  std::array<double, kStrainComponents.size()> peaks{};
  for (const VsgResult& result : results)
    for (std::size_t k = 0; k < peaks.size(); ++k)
      if (std::isfinite(result.strain[k].peak)) peaks[k] = std::max(peaks[k], result.strain[k].peak);
  return std::ranges::max_element(peaks) - peaks.begin();
}

/// Writes a chart without series that have no points, and without ticks far from all points.
void write_if_drawn(const std::filesystem::path& path, draw::Chart chart) {
  std::erase_if(chart.series, [](const draw::Series& series) { return series.points.empty(); });
  double least = 1e9, most = 0;
  for (const draw::Series& series : chart.series)
    for (const auto& [x, y] : series.points) least = std::min(least, x), most = std::max(most, x);
  std::erase_if(chart.x_ticks, [&](double tick) { return tick < 0.7 * least || tick > 1.4 * most; });
  if (!chart.series.empty() && !chart.x_ticks.empty()) draw::write_chart(path, chart);
}

void write_pictures(const std::filesystem::path& folder, const std::vector<VsgResult>& results) {
  const std::size_t k = main_component(results);
  const std::string name(kStrainComponents[k].name);
  draw::Chart noise = chart_of("Strain resolution over spatial resolution",
                               "spatial resolution [px]: period that keeps 90 %", "sd of " + name, true);
  add_series(noise, results, ", predicted", true,
             [k](const VsgResult& r) { return std::pair(r.resolution, r.strain[k].sigma); });
  if (results.front().strain[k].at_rest)
    add_series(noise, results, ", at rest", false,
               [k](const VsgResult& r) { return std::pair(r.resolution, *r.strain[k].at_rest); });
  write_if_drawn(folder / "vsg_resolution.png", std::move(noise));
  draw::Chart signal = chart_of("Largest strain over gauge length", "virtual strain gauge [px]",
                                "99.9th percentile of |" + name + "|", false);
  add_series(signal, results, "", true,
             [k](const VsgResult& r) { return std::pair(r.gauge, r.strain[k].peak); });
  write_if_drawn(folder / "vsg_peak.png", std::move(signal));
}

void write_table(const std::filesystem::path& path, const std::vector<VsgResult>& results) {
  std::ostringstream text;
  text << "subset,window,gauge,resolution,points";
  for (const FieldArray& array : kStrainComponents)
    text << ",sigma_" << array.name << ",rest_" << array.name << ",peak_" << array.name;
  text << '\n';
  for (const VsgResult& r : results) {
    text << r.subset << ',' << r.window << ',' << r.gauge << ',' << r.resolution << ',' << r.points;
    for (const VsgResult::Component& c : r.strain)
      text << ',' << c.sigma << ',' << c.at_rest.value_or(strain::missing) << ',' << c.peak;
    text << '\n';
  }
  write_text_file(path, text.str());
}

void write_json(const std::filesystem::path& path, const std::vector<VsgResult>& results) {
  auto all = nlohmann::ordered_json::array();
  for (const VsgResult& r : results) {
    nlohmann::ordered_json json = {{"subset", r.subset},
                                   {"window", r.window},
                                   {"gauge", r.gauge},
                                   {"resolution", r.resolution},
                                   {"points", r.points}};
    for (std::size_t k = 0; k < kStrainComponents.size(); ++k) {
      auto& component = json[std::string(kStrainComponents[k].name)];
      component = {{"sigma", r.strain[k].sigma}, {"at_rest", nullptr}, {"peak", r.strain[k].peak}};
      if (r.strain[k].at_rest) component["at_rest"] = *r.strain[k].at_rest;
    }
    all.push_back(json);
  }
  write_text_file(path, all.dump(2) + "\n");
}

/// Share of the amplitude of a normal strain that is left, for wave number `k`, 1/px, along its own axis.
double transfer(const strain::ErrorKernel& kernel, int window, int step, double k) {
  double subset = 0, slope = 0, squares = 0;
  for (int i = -kernel.radius; i <= kernel.radius; ++i)
    subset += kernel.weight(i) * (1 + kernel.curved / kernel.flat * kernel.square(i)) * std::cos(k * i);
  for (int i = 1; i <= window / 2; ++i) slope += i * std::sin(k * i * step), squares += double(i) * i;
  return subset / kernel.total * slope / (k * step * squares);
}

}  // namespace
}  // namespace dic::vsg

namespace dic {

std::vector<std::string> VsgOptions::validate() const {
  if (subsets.empty() || windows.empty()) return {"A sweep needs at least one subset and one strain window."};
  std::vector<std::string> found;
  for (const int subset : subsets) {
    TrackOptions options = track;
    options.refine.subset = subset;
    for (std::string& problem : options.validate()) found.push_back(std::move(problem));
  }
  for (const int window : windows)
    for (std::string& problem : StrainOptions{window}.validate()) found.push_back(std::move(problem));
  return found;
}

double vsg_resolution(const MeasuredSubsets& subsets, int window, int step) {
  const strain::ErrorKernel kernel(subsets);
  const auto share = [&](double period) {
    return vsg::transfer(kernel, window, step, 2 * std::numbers::pi / period);
  };
  double damped = 2, kept = 2;  // periods, px
  while (share(kept) < 0.9 || share(2 * kept) < 0.9) damped = kept, kept *= 1.2;
  for (int i = 0; i < 40; ++i) {
    const double middle = (damped + kept) / 2;
    (share(middle) < 0.9 ? damped : kept) = middle;
  }
  return kept;
}

std::vector<VsgResult> sweep_vsg(const VsgOptions& options, ImageView reference, ImageView loaded,
                                 ImageView at_rest, const Roi& roi, const ProgressCallback& progress,
                                 std::stop_token stop) {
  for (const std::string& problem : options.validate()) throw UsageError(problem);
  const track::Stopwatch watch;
  core::ThreadPool pool(options.track.threads);
  std::vector<VsgResult> results;
  std::int64_t points = 0;
  int done = 0;
  for (const int size : options.subsets) {
    if (progress)
      progress({"refine", ++done, static_cast<int>(options.subsets.size()), points, watch.seconds()});
    TrackOptions how = options.track;
    how.refine.subset = size;
    Tracker tracker(how, reference, roi);
    const bool has_rest = at_rest.width > 0;
    const Field still = has_rest ? tracker.track(at_rest, stop).field : Field();
    const Field field = tracker.track(loaded, stop).field;
    points += tracker.grid().points();
    for (const int window : options.windows)
      results.push_back(vsg::result_of(options, {size, how.refine.order, how.refine.weights}, window, field,
                                       has_rest ? &still : nullptr, pool));
  }
  return results;
}

void write_vsg(const std::filesystem::path& folder, const std::vector<VsgResult>& results) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure)
    throw FileError("Cannot create the folder " + folder.string() + ": " + failure.message() + ".");
  vsg::write_table(folder / "vsg.csv", results);
  vsg::write_json(folder / "vsg.json", results);
  vsg::write_pictures(folder, results);
}

}  // namespace dic

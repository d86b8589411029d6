#include "query/probe_picture.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draw/chart.hpp"
#include "draw/ticks.hpp"

namespace dic::query {
namespace {

constexpr int kMostTicks = 10;

/// The frames that have a value.
draw::Series series_of(std::string name, const std::vector<double>& x, const std::vector<double>& y) {
  draw::Series series{.name = std::move(name), .points = {}};
  for (std::size_t f = 0; f < x.size(); ++f)
    if (!std::isnan(x[f]) && !std::isnan(y[f])) series.points.emplace_back(x[f], y[f]);
  return series;
}

/// "extensometer 1", "area 1 exx".
std::string label_of(std::string kind, std::size_t index, std::string_view quantity = {}) {
  std::string name = std::move(kind) + ' ' + std::to_string(index + 1);
  if (!quantity.empty()) (name += ' ') += quantity;
  return name;
}

class Picture {
 public:
  explicit Picture(const ProbeHistory& history) : history_(history) {
    chart_.log_x = chart_.log_y = false;
    const ProbeRequest& asked = history.request;
    if (!history.loads.empty() && !asked.extensometers.empty())
      add_loads();
    else if (!asked.extensometers.empty())
      add_extensometers();
    else if (!asked.areas.empty())
      add_areas();
    else
      add_points();
    std::erase_if(chart_.series, [](const draw::Series& series) { return series.points.empty(); });
  }

  bool write(const std::filesystem::path& path, const CanvasFactory& canvases) {
    if (chart_.series.empty()) return false;
    add_ticks();
    draw::write_chart(path, chart_, canvases);
    return true;
  }

 private:
  template <typename Value>
  std::vector<double> over_frames(const Value& value) const {
    std::vector<double> values;
    for (const ProbeFrame& frame : history_.frames) values.push_back(value(frame));
    return values;
  }

  template <typename Value>
  void add_over_time(std::string name, const Value& value) {
    chart_.x_label = history_.time_unit == "s" ? "time [s]" : "frame";
    const auto times = over_frames([](const ProbeFrame& frame) { return frame.time; });
    chart_.series.push_back(series_of(std::move(name), times, over_frames(value)));
  }

  /// Adds loads in the order of the frames, so that unloading shows as a loop.
  void add_loads() {
    const std::vector<double> stresses = history_.stresses();
    chart_.x_label = "engineering strain";
    chart_.y_label = stresses.empty() ? history_.load_name + " [" + history_.load_unit + "]" : "stress [MPa]";
    for (std::size_t k = 0; k < history_.request.extensometers.size(); ++k)
      chart_.series.push_back(
          series_of(label_of("extensometer", k),
                    over_frames([k](const ProbeFrame& frame) { return frame.extensometers[k].strain; }),
                    stresses.empty() ? history_.loads : stresses));
  }

  void add_extensometers() {
    chart_.y_label = "engineering strain";
    for (std::size_t k = 0; k < history_.request.extensometers.size(); ++k)
      add_over_time(label_of("extensometer", k),
                    [k](const ProbeFrame& frame) { return frame.extensometers[k].strain; });
  }

  void add_areas() {
    chart_.y_label = "mean strain (" + history_.strain_measure + ")";
    for (std::size_t k = 0; k < history_.request.areas.size(); ++k)
      for (const FieldArray& array : kNormalStrains)
        add_over_time(label_of("area", k, array.name),
                      [&, k](const ProbeFrame& frame) { return frame.areas[k].mean[array.name]; });
  }

  void add_points() {
    chart_.y_label = "displacement [" + history_.extensometer_unit() + "]";
    for (std::size_t k = 0; k < history_.request.points.size(); ++k)
      for (const FieldArray& array : history_.displacements())
        add_over_time(label_of("point", k, array.name),
                      [&, k](const ProbeFrame& frame) { return frame.points[k].values[array.name]; });
  }

  void add_ticks() {
    double least = chart_.series.front().points.front().first, most = least;
    for (const draw::Series& series : chart_.series)
      for (const auto& [x, y] : series.points) least = std::min(least, x), most = std::max(most, x);
    if (most > least) chart_.x_ticks = draw::Ticks(least, most, kMostTicks).values(least, most);
    if (chart_.x_ticks.empty()) chart_.x_ticks = {least};
  }

  const ProbeHistory& history_;
  draw::Chart chart_;
};

}  // namespace

bool write_history_picture(const std::filesystem::path& path, const ProbeHistory& history,
                           const CanvasFactory& canvases) {
  return Picture(history).write(path, canvases);
}

}  // namespace dic::query

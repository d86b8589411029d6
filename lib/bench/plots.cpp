#include <algorithm>
#include <cctype>

#include "bench/bench.hpp"
#include "draw/chart.hpp"

namespace dic::bench {
namespace {

using draw::Chart;
using draw::Series;

constexpr const char* kBaselines[] = {"cpu-naive", "cpu-fft", "cuda-basic", "cuda-fft"};

/// Cases that differ only in the size of the reference, and all their rows that can be plotted.
struct Family {
  Case likeness;  ///< the case without sizes
  Level level;
  std::string title;
  std::vector<const Row*> rows;
};

/// The case without its sizes; windows given relative to the reference ("full", a radius) stay relative.
Case without_size(Case c) {
  const bool is_full = c.shifts == Shifts::full({c.ref_w, c.ref_h}, {c.search_w, c.search_h});
  if (is_full || c.shifts == Shifts::valid({c.ref_w, c.ref_h}, {c.search_w, c.search_h})) {
    c.shifts = is_full ? Shifts{} : c.shifts;
    c.search_h -= c.ref_h;
    c.search_w -= c.ref_w;
  }
  c.ref_h = c.ref_w = 0;
  return c;
}

std::string title_of(const Task& task) {
  const Case& c = task.shape;
  std::string text = describe(c);
  if (task.level != Level::call) text.append(", ").append(to_string(task.level));
  const std::size_t begin = text.find(' ', text.find(' ') + 1);  // form, type, size, ...
  return c.group + ": " + text.erase(begin, text.find(' ', begin + 1) - begin);
}

std::vector<Family> families_of(const Report& report) {
  std::vector<Family> families;
  for (const Row& row : report.rows) {
    const Case& c = row.task.shape;
    if (row.outcome != Outcome::ok || c.ref_h != c.ref_w) continue;
    const Case likeness = without_size(c);
    const Level level = row.task.level;
    auto family = std::find_if(families.begin(), families.end(),
                               [&](const Family& f) { return f.likeness == likeness && f.level == level; });
    if (family == families.end()) family = families.insert(family, {likeness, level, title_of(row.task), {}});
    family->rows.push_back(&row);
  }
  return families;
}

const Row* find_row(const Family& family, const std::string& variant, int size) {
  for (const Row* row : family.rows)
    if (row->task.variant == variant && row->task.shape.ref_h == size) return row;
  return nullptr;
}

/// The chart's series of that name; added if it does not exist.
Series& series_named(Chart& chart, const std::string& name) {
  const auto is_it = [&](const Series& series) { return series.name == name; };
  const auto found = std::find_if(chart.series.begin(), chart.series.end(), is_it);
  if (found != chart.series.end()) return *found;
  return chart.series.emplace_back(Series{name, {}});
}

/// Keeps the series with the highest values, one for each colour.
void keep_best(std::vector<Series>& series) {
  constexpr std::size_t kMost = 7;
  const auto highest = [](const Series& s) {
    double value = 0;
    for (const auto& point : s.points) value = std::max(value, point.second);
    return value;
  };
  std::stable_sort(series.begin(), series.end(),
                   [&](const Series& a, const Series& b) { return highest(a) > highest(b); });
  series.resize(std::min(series.size(), kMost));
}

Chart speed_up_over(const std::string& baseline, const Family& family) {
  Chart chart{family.title, "side of the reference [px]", "times faster than " + baseline, {}, 1, {}};
  for (const Row* row : family.rows) {
    const Row* slow = find_row(family, baseline, row->task.shape.ref_h);
    if (!slow || row->task.variant == baseline) continue;
    series_named(chart, row->task.variant)
        .points.emplace_back(row->task.shape.ref_h, slow->seconds.median / row->seconds.median);
    chart.x_ticks.push_back(row->task.shape.ref_h);
  }
  std::sort(chart.x_ticks.begin(), chart.x_ticks.end());
  for (Series& series : chart.series) std::sort(series.points.begin(), series.points.end());
  keep_best(chart.series);
  return chart;
}

double largest(const std::vector<Ceiling>& roofs, const std::string& unit) {
  double value = 0;
  for (const Ceiling& roof : roofs)
    if (roof.unit == unit) value = std::max(value, roof.value);
  return value;
}

/// Useful operations against useful traffic, below the roofs: sloped for memory, level for arithmetic. Shows
/// only the planner's choices if the report has any.
Chart roofline(const Report& report) {
  const std::vector<Ceiling>& roofs = report.ceilings;
  Chart chart{"Roofline, " + report.machine.model, "useful operations per byte", "Gop/s", {}, 0, {}};
  const auto is_planned = [](const Row& row) { return row.task.variant == "planner"; };
  const bool has_plans = std::any_of(report.rows.begin(), report.rows.end(), is_planned);
  for (const Row& row : report.rows) {
    if (row.outcome != Outcome::ok || (has_plans && !is_planned(row))) continue;
    const double operations = row.task.shape.operations();
    Series& dots = series_named(chart, row.ran);
    dots.line = false;
    dots.points.emplace_back(operations / row.task.shape.bytes(), 1e-9 * operations / row.seconds.median);
  }
  for (double tick = 1; tick <= 1e5; tick *= 10) chart.x_ticks.push_back(tick);
  const double highest = largest(roofs, "op/s"), bandwidth = largest(roofs, "B/s");
  for (const Ceiling& roof : roofs) {
    Series& line = series_named(chart, roof.name);
    const double first = chart.x_ticks.front(), last = chart.x_ticks.back();
    if (roof.unit == "op/s") {
      line.points = {{std::max(first, roof.value / bandwidth), 1e-9 * roof.value}, {last, 1e-9 * roof.value}};
    } else {
      line.points = {{first, 1e-9 * first * roof.value}, {highest / bandwidth, 1e-9 * highest}};
    }
  }
  return chart;
}

/// The text as a file name: letters, digits and single dashes.
std::string file_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c));
    if (plain) name += c;
    if (!plain && !name.empty() && name.back() != '-') name += '-';
  }
  return name;
}

}  // namespace

std::vector<std::filesystem::path> write_plots(const std::filesystem::path& folder, const Report& report) {
  std::filesystem::create_directories(folder);
  std::vector<std::filesystem::path> files;
  for (const Family& family : families_of(report))
    for (const std::string baseline : kBaselines) {
      const Chart chart = speed_up_over(baseline, family);
      const auto is_line = [](const Series& series) { return series.points.size() > 1; };
      if (std::none_of(chart.series.begin(), chart.series.end(), is_line)) continue;
      files.push_back(folder / (file_name(family.title) + "-over-" + baseline + ".png"));
      draw::write_chart(files.back(), chart);
    }
  if (!report.ceilings.empty()) {
    files.push_back(folder / "roofline.png");
    draw::write_chart(files.back(), roofline(report));
  }
  return files;
}

}  // namespace dic::bench

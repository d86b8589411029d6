#include <algorithm>
#include <cctype>
#include <dic/bench.hpp>

#include "bench/chart.hpp"

namespace dic::bench {
namespace {

constexpr const char* kBaselines[] = {"cpu-naive", "cuda-basic", "cpu-fft", "cuda-fft"};

/// Cases that differ in the size of the reference alone, and all their rows that can be plotted.
struct Family {
  Case likeness;  ///< without sizes
  Level level;
  std::string title;
  std::vector<const Row*> rows;
};

/// The case without its sizes: windows that follow the reference ("full", a radius) are counted from it.
Case without_size(Case c) {
  const bool is_full = c.shifts == Shifts::full(c.ref_h, c.ref_w, c.search_h, c.search_w);
  if (is_full || c.shifts == Shifts::valid(c.ref_h, c.ref_w, c.search_h, c.search_w)) {
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

const Row* find(const Family& family, const std::string& variant, int size) {
  for (const Row* row : family.rows)
    if (row->task.variant == variant && row->task.shape.ref_h == size) return row;
  return nullptr;
}

Chart speed_up_over(const std::string& baseline, const Family& family) {
  Chart chart{family.title, "side of the reference [px]", "times faster than " + baseline, {}};
  for (const Row* row : family.rows) {
    const Row* slow = find(family, baseline, row->task.shape.ref_h);
    if (!slow || row->task.variant == baseline) continue;
    const auto is_its = [&](const Series& s) { return s.name == row->task.variant; };
    auto series = std::find_if(chart.series.begin(), chart.series.end(), is_its);
    if (series == chart.series.end()) series = chart.series.insert(series, {row->task.variant, {}});
    series->points.emplace_back(row->task.shape.ref_h, slow->seconds.median / row->seconds.median);
  }
  for (Series& series : chart.series) std::sort(series.points.begin(), series.points.end());
  return chart;
}

/// Letters, digits and single dashes.
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
      write_chart(files.back(), chart);
    }
  return files;
}

}  // namespace dic::bench

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <map>

#include "draw/chart.hpp"
#include "validate/validate.hpp"

namespace dic::validation {
namespace {

using draw::Chart;
using draw::Series;

Chart labelled(std::string title, std::string x_label, std::string y_label) {
  Chart chart;
  chart.title = std::move(title);
  chart.x_label = std::move(x_label);
  chart.y_label = std::move(y_label);
  return chart;
}

std::vector<const CaseResult*> cases_of(const Report& report, const std::string& suite) {
  std::vector<const CaseResult*> cases;
  for (const CaseResult& one : report.cases)
    if (one.suite == suite && one.failure.empty()) cases.push_back(&one);
  return cases;
}

/// Measured share of the amplitude against the period.
Chart transfer_chart(const std::string& suite, const std::vector<const CaseResult*>& cases) {
  Chart chart = labelled(suite + ": what is found of a displacement of this period", "period [px]",
                         "share of the amplitude");
  chart.x_ticks = {10, 20, 30, 40, 60, 80, 100, 150, 200};
  chart.y_mark = 0.9;
  chart.log_y = false;
  for (const CaseResult* one : cases) {
    if (!one->resolution) continue;
    Series series{one->name, {}};
    for (const Transfer& t : one->resolution->curve) series.points.emplace_back(t.period, t.share);
    std::ranges::sort(series.points);
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

/// Spatial resolution against noise; lower left is better.
Chart trade_chart(const std::string& suite, const std::vector<const CaseResult*>& cases) {
  Chart chart =
      labelled(suite + ": spatial resolution against noise", "10 % lost at a period of [px]", "noise [px]");
  chart.x_ticks = {10, 20, 40, 60, 80, 100, 150, 200};
  for (const CaseResult* one : cases)
    if (one->resolution && std::isfinite(one->resolution->spatial) && one->resolution->noise > 0)
      chart.series.push_back({one->name, {{one->resolution->spatial, one->resolution->noise}}, false});
  return chart;
}

/// Bias of u, frame by frame of shifts from 0 to 1 px.
Chart bias_chart(const std::vector<const CaseResult*>& cases) {
  Chart chart = labelled("translation: bias of u", "shift [px]", "bias [px]");
  chart.x_ticks = {0, 0.25, 0.5, 0.75, 1};
  chart.log_x = chart.log_y = false;
  for (const CaseResult* one : cases) {
    Series series{one->name, {}};
    for (std::size_t k = 0; k < one->frames.size(); ++k)
      if (one->frames[k].judged > 0)
        series.points.emplace_back(static_cast<double>(k + 1) / static_cast<double>(one->frames.size()),
                                   one->frames[k].bias[0]);
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

/// Observed and predicted scatter against noise.
Chart scatter_chart(const std::vector<const CaseResult*>& cases) {
  Chart chart = labelled("noise: observed and predicted scatter of u", "noise [grey levels]", "px");
  chart.x_ticks = {0.5, 1, 2, 4, 8, 16};
  Series observed{"observed", {}, false}, predicted{"predicted", {}};
  for (const CaseResult* one : cases) {
    if (one->total.judged == 0) continue;
    observed.points.emplace_back(one->parameter_value, one->total.sd[0]);
    predicted.points.emplace_back(one->parameter_value, one->total.sigma[0]);
  }
  std::ranges::sort(predicted.points);
  if (!observed.points.empty()) chart.series = {observed, predicted};
  return chart;
}

/// Share of the measurable points that are found, against the angle.
Chart found_chart(const std::vector<const CaseResult*>& cases) {
  Chart chart = labelled("rotation: points found in one step", "angle [degrees]",
                         "share of what is seen in both images");
  chart.x_ticks = {0, 30, 60, 90, 120, 150, 180};
  chart.log_x = chart.log_y = false;
  for (const CaseResult* one : cases) {
    if (one->parameter.empty()) continue;
    auto series = std::ranges::find(chart.series, one->parameter, &Series::name);
    if (series == chart.series.end()) series = chart.series.insert(series, Series{one->parameter, {}});
    series->points.emplace_back(one->parameter_value, 1 - one->total.lost_share());
  }
  return chart;
}

}  // namespace

std::vector<std::filesystem::path> write_plots(const std::filesystem::path& folder, const Report& report) {
  std::filesystem::create_directories(folder);
  std::vector<std::pair<std::string, Chart>> charts;
  for (const std::string suite : {"star", "chirp"}) {
    charts.emplace_back(suite + ".png", transfer_chart(suite, cases_of(report, suite)));
    charts.emplace_back(suite + "-noise.png", trade_chart(suite, cases_of(report, suite)));
  }
  charts.emplace_back("translation.png", bias_chart(cases_of(report, "translation")));
  charts.emplace_back("noise.png", scatter_chart(cases_of(report, "noise")));
  charts.emplace_back("rotation.png", found_chart(cases_of(report, "rotation")));
  std::vector<std::filesystem::path> files;
  for (const auto& [name, chart] : charts) {
    if (chart.series.empty()) continue;
    files.push_back(folder / name);
    draw::write_chart(files.back(), chart);
  }
  return files;
}

}  // namespace dic::validation

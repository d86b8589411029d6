#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <initializer_list>
#include <map>

#include "io/document.hpp"
#include "validate/validate.hpp"

namespace dic::validation {
namespace {

using Text = std::string (*)(const CaseResult&);

std::string formatted(const char* format, double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// A share as text: "0", "0.0031 %".
std::string percent(double share) {
  return share == 0 ? "0" : formatted(share < 1e-3 ? "%.2g" : "%.3g", 100 * share) + " %";
}

std::string counted(std::int64_t part, double share) {
  return part == 0 ? "0" : std::to_string(part) + " (" + percent(share) + ")";
}

std::string of_strain(const CaseResult& c, int k) {
  return c.total.strain ? formatted("%.2g", (*c.total.strain)[k]) : "-";
}

/// Measured share of the amplitude at a period, as text.
std::string transfer_at(const CaseResult& c, double period) {
  if (!c.resolution) return "-";
  const auto& curve = c.resolution->curve;
  const auto nearest = std::ranges::min_element(
      curve, {}, [&](const Transfer& t) { return std::abs(std::log(t.period / period)); });
  if (nearest == curve.end() || std::abs(nearest->period / period - 1) > 0.05) return "-";
  return formatted("%.2f", nearest->share);
}

/// Numbers with a blank between them: "0.1 -0.0 2.4".
std::string list_of(const char* format, std::initializer_list<double> values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : " ") + formatted(format, value);
  return text;
}

/// The values of some quantities of two cameras, as text.
std::string of_pairs(const CaseResult& c, const char* format, double StereoMetrics::Quantity::*value,
                     std::initializer_list<const char*> names) {
  if (!c.stereo) return "-";
  std::string text;
  for (const char* name : names)
    text += (text.empty() ? "" : " ") + formatted(format, (*c.stereo)[name].*value);
  return text;
}

/// The smallest and the largest ratio of two cameras.
std::string scatter_of_pairs(const CaseResult& c) {
  if (!c.stereo) return "-";
  const auto [least, most] = std::ranges::minmax(c.stereo->quantities, {}, &StereoMetrics::Quantity::scatter);
  return list_of("%.2f", {least.scatter, most.scatter});
}

struct Column {
  const char* head;
  Text text;
};

const std::map<std::string, Column>& known_columns() {
  static const std::map<std::string, Column> all = {
      {"ok",
       {"ok of points",
        [](const CaseResult& c) {
          return std::to_string(c.total.ok) + " of " + std::to_string(c.total.points);
        }}},
      {"lost", {"lost", [](const CaseResult& c) { return counted(c.total.lost, c.total.lost_share()); }}},
      {"false ok",
       {"false ok", [](const CaseResult& c) { return counted(c.total.false_ok, c.total.false_share()); }}},
      {"hidden", {"hidden, ok", [](const CaseResult& c) { return std::to_string(c.total.hidden_ok); }}},
      {"gross", {"off by > 0.5 px", [](const CaseResult& c) { return std::to_string(c.total.gross); }}},
      {"bias", {"bias, px", [](const CaseResult& c) { return formatted("%.5f", c.total.largest_bias()); }}},
      {"sd", {"sd, px", [](const CaseResult& c) { return formatted("%.5f", c.total.largest_sd()); }}},
      {"RMSE", {"RMSE, px", [](const CaseResult& c) { return formatted("%.5f", c.total.largest_rmse()); }}},
      {"scatter",
       {"observed / predicted",
        [](const CaseResult& c) { return formatted("%.3f", c.total.mean_scatter()); }}},
      {"strain bias", {"bias of strain", [](const CaseResult& c) { return of_strain(c, 0); }}},
      {"strain sd", {"sd of strain", [](const CaseResult& c) { return of_strain(c, 1); }}},
      {"strain scatter",
       {"observed / predicted of strain",
        [](const CaseResult& c) {
          return c.total.strain_scatter ? formatted("%.3f", *c.total.strain_scatter) : "-";
        }}},
      {"beside edge",
       {"right beside the edge",
        [](const CaseResult& c) {
          const auto points = static_cast<double>(c.total.near_edge);
          return formatted("%.1f %%", 100 * static_cast<double>(c.total.near_edge_right) / points);
        }}},
      {"p = 150", {"share at 150 px", [](const CaseResult& c) { return transfer_at(c, 150); }}},
      {"p = 60", {"at 60 px", [](const CaseResult& c) { return transfer_at(c, 60); }}},
      {"p = 30", {"at 30 px", [](const CaseResult& c) { return transfer_at(c, 30); }}},
      {"resolution",
       {"10 % lost at, px",
        [](const CaseResult& c) { return formatted("%.1f", c.resolution ? c.resolution->spatial : NAN); }}},
      {"noise",
       {"noise, px",
        [](const CaseResult& c) { return formatted("%.4f", c.resolution ? c.resolution->noise : NAN); }}},
      {"product",
       {"product, px^2",
        [](const CaseResult& c) { return formatted("%.3f", c.resolution ? c.resolution->product() : NAN); }}},
      {"Z",
       {"Z bias, sd, um",
        [](const CaseResult& c) {
          return c.stereo ? list_of("%.1f", {(*c.stereo)["Z"].bias, (*c.stereo)["Z"].sd}) : "-";
        }}},
      {"UVW bias",
       {"U V W bias, um",
        [](const CaseResult& c) {
          return of_pairs(c, "%.1f", &StereoMetrics::Quantity::bias, {"U", "V", "W"});
        }}},
      {"UVW sd",
       {"U V W sd, um",
        [](const CaseResult& c) {
          return of_pairs(c, "%.1f", &StereoMetrics::Quantity::sd, {"U", "V", "W"});
        }}},
      {"surface strain sd",
       {"strain sd, um/m",
        [](const CaseResult& c) {
          return of_pairs(c, "%.0f", &StereoMetrics::Quantity::sd, {"exx", "eyy", "exy"});
        }}},
      {"surface scatter", {"observed / predicted", scatter_of_pairs}},
  };
  return all;
}

}  // namespace

std::vector<std::vector<std::string>> table_of(const Suite& suite, const std::vector<CaseResult>& cases) {
  std::vector<std::vector<std::string>> rows(1, {suite.name});
  for (const std::string& name : suite.columns) rows[0].emplace_back(known_columns().at(name).head);
  for (const CaseResult& one : cases) {
    if (one.suite != suite.name) continue;
    rows.push_back({one.name});
    for (const std::string& name : suite.columns)
      rows.back().push_back(one.failure.empty() ? known_columns().at(name).text(one) : "-");
  }
  return rows;
}

std::string to_markdown(const Suite& suite, const Report& report) {
  auto rows = table_of(suite, report.cases);
  rows[0][0] = "images";
  std::string text = "\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += "|";
    for (const std::string& cell : rows[r]) text += " " + cell + " |";
    text += "\n";
    if (r > 0) continue;
    text += "|";
    for (std::size_t k = 0; k < rows[0].size(); ++k) text += "---|";
    text += "\n";
  }
  std::string notes;
  for (const CaseResult& one : report.cases) {
    if (one.suite != suite.name) continue;
    for (const std::string& sentence : one.broken) notes += "- " + one.name + ": " + sentence + "\n";
    if (!one.failure.empty()) notes += "- " + one.name + ": " + one.failure + "\n";
  }
  if (!notes.empty()) text += "\nBounds that do not hold:\n\n" + notes;
  return text + "\n";
}

std::string insert_tables(std::string document, const std::vector<Suite>& suites, const Report& report) {
  for (const Suite& suite : suites)
    document = io::insert_report(document, suite.name, to_markdown(suite, report));
  return document;
}

}  // namespace dic::validation

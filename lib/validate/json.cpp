#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "validate/validate.hpp"

namespace dic::validation {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no numbers that are not finite, so they become null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }
Json pair(const std::array<double, 2>& values) { return {number(values[0]), number(values[1])}; }

Json json_of(const Metrics& m) {
  Json statuses;
  for (int k = 0; k < kStatusCount; ++k)
    statuses[std::string(to_string(static_cast<Status>(k)))] = m.statuses[k];
  return {{"points", m.points},
          {"ok", m.ok},
          {"statuses", statuses},
          {"measurable", m.measurable},
          {"lost", m.lost},
          {"false_ok", m.false_ok},
          {"false_ok_share", m.false_share()},
          {"hidden_ok", m.hidden_ok},
          {"gross", m.gross},
          {"beyond_sigma", m.beyond_sigma},
          {"worst", m.worst},
          {"judged", m.judged},
          {"bias", pair(m.bias)},
          {"sd", pair(m.sd)},
          {"rmse", pair(m.rmse)},
          {"sigma", pair(m.sigma)},
          {"scatter", pair(m.scatter)},
          {"near_edge", m.near_edge},
          {"near_edge_right", m.near_edge_right},
          {"strain", m.strain ? pair(*m.strain) : Json(nullptr)},
          {"strain_scatter", number(m.strain_scatter)}};
}

Json range(const std::optional<Bounds::Range>& of) {
  return of ? Json({of->least, of->most}) : Json(nullptr);
}

Json json_of(const Bounds& b) {
  return {{"bias", number(b.bias)},
          {"sd", number(b.sd)},
          {"rmse", number(b.rmse)},
          {"false_ok_share", number(b.false_ok)},
          {"lost_share", number(b.lost)},
          {"scatter", range(b.scatter)},
          {"near_edge_share", number(b.near_edge)},
          {"resolution", number(b.resolution)},
          {"strain_bias", number(b.strain_bias)},
          {"strain_scatter", range(b.strain_scatter)}};
}

Json json_of(const std::optional<Resolution>& r) {
  if (!r) return nullptr;
  Json curve = Json::array();
  for (const Transfer& t : r->curve) curve.push_back({t.period, number(t.share)});
  return {{"spatial", number(r->spatial)},
          {"noise", number(r->noise)},
          {"product", number(r->product())},
          {"transfer", curve}};
}

Json json_of(const StereoMetrics& m) {
  Json json;
  for (std::size_t q = 0; q < kStereoQuantities.size(); ++q)
    json[std::string(kStereoQuantities[q])] = {{"bias", number(m.quantities[q].bias)},
                                               {"sd", number(m.quantities[q].sd)},
                                               {"scatter", number(m.quantities[q].scatter)}};
  json["trace_bias"] = number(m.trace_bias);
  return json;
}

Json json_of(const TrackOptions& o) {
  return {{"subset", o.refine.subset},
          {"step", o.step},
          {"order", o.refine.order},
          {"interpolation", to_string(o.refine.interpolation)},
          {"reference_strategy", to_string(o.reference_strategy)}};
}

Json json_of(const CaseResult& c) {
  Json frames = Json::array();
  for (const Metrics& frame : c.frames) frames.push_back(json_of(frame));
  return {{"name", c.name},
          {"images", c.origin},
          {"options", json_of(c.options)},
          {"device", c.device},
          {"seconds", c.seconds},
          {"failure", c.failure.empty() ? Json(nullptr) : Json(c.failure)},
          {"bounds", c.stereo_bounds ? Json(c.stereo_bounds->text()) : json_of(c.bounds)},
          {"broken", c.broken},
          {"total", json_of(c.total)},
          {"resolution", json_of(c.resolution)},
          {"stereo", c.stereo ? json_of(*c.stereo) : Json(nullptr)},
          {"frames", frames}};
}

/// A quoted field of a CSV file, because names contain commas.
std::string quoted(const std::string& text) { return "\"" + text + "\""; }

}  // namespace

std::string to_json(const Report& report, const std::vector<Suite>& suites) {
  Json json = {{"version", report.version}, {"date", report.date}, {"command", report.command},
               {"quick", report.quick},     {"seed", report.seed}, {"broken", report.broken()}};
  json["suites"] = Json::array();
  for (const Suite& suite : suites) {
    Json cases = Json::array();
    for (const CaseResult& one : report.cases)
      if (one.suite == suite.name) cases.push_back(json_of(one));
    if (cases.empty()) continue;
    json["suites"].push_back(
        {{"name", suite.name}, {"about", suite.about}, {"reason", suite.reason}, {"cases", cases}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_csv(const Report& report) {
  std::ostringstream text;
  text << "suite,case,points,ok,measurable,lost,false_ok,hidden_ok,gross,beyond_sigma,worst,bias_u,bias_v,sd_"
          "u,"
          "sd_v,rmse_u,rmse_v,sigma_u,sigma_v,scatter_u,scatter_v,resolution,noise,product,seconds,broken\n";
  for (const CaseResult& c : report.cases) {
    const Metrics& m = c.total;
    text << c.suite << ',' << quoted(c.name) << ',' << m.points << ',' << m.ok << ',' << m.measurable << ','
         << m.lost << ',' << m.false_ok << ',' << m.hidden_ok << ',' << m.gross << ',' << m.beyond_sigma
         << ',' << m.worst;
    for (const auto& values : {m.bias, m.sd, m.rmse, m.sigma, m.scatter})
      text << ',' << values[0] << ',' << values[1];
    const Resolution resolution = c.resolution.value_or(Resolution{{}, NAN, NAN});
    text << ',' << resolution.spatial << ',' << resolution.noise << ',' << resolution.product() << ','
         << c.seconds << ',' << c.broken.size() + (c.failure.empty() ? 0 : 1) << '\n';
  }
  return text.str();
}

}  // namespace dic::validation

#include <cmath>
#include <cstdio>

#include "validate/validate.hpp"

namespace dic::validation {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string percent(double share) { return number(100 * share) + " %"; }

/// Collects sentences about values that break their bounds. An unknown value (NaN) breaks no bound: no point
/// is ok then, and the lost points break theirs.
class Checks {
 public:
  void at_most(const char* what, double value, const std::optional<double>& bound,
               std::string (*text)(double) = number) {
    if (bound && value > *bound)
      sentences_.push_back(what + (": " + text(value)) + ", at most " + text(*bound));
  }
  void at_least(const char* what, double value, const std::optional<double>& bound,
                std::string (*text)(double) = number) {
    if (bound && value < *bound)
      sentences_.push_back(what + (": " + text(value)) + ", at least " + text(*bound));
  }
  std::vector<std::string> sentences() const { return sentences_; }

 private:
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> broken_bounds(const Bounds& bounds, const Metrics& m,
                                       const std::optional<Resolution>& resolution) {
  Checks checks;
  checks.at_most("false ok", m.false_share(), bounds.false_ok, percent);
  checks.at_most("lost", m.lost_share(), bounds.lost, percent);
  checks.at_most("bias in px", m.largest_bias(), bounds.bias);
  checks.at_most("sd in px", m.largest_sd(), bounds.sd);
  checks.at_most("RMSE in px", m.largest_rmse(), bounds.rmse);
  if (bounds.scatter) {
    checks.at_most("observed / predicted sigma", m.mean_scatter(), bounds.scatter->most);
    checks.at_least("observed / predicted sigma", m.mean_scatter(), bounds.scatter->least);
  }
  if (bounds.near_edge && m.near_edge > 0)
    checks.at_least("right beside the edge",
                    static_cast<double>(m.near_edge_right) / static_cast<double>(m.near_edge),
                    bounds.near_edge, percent);
  if (m.strain) checks.at_most("mean error of strain", (*m.strain)[0], bounds.strain_bias);
  if (bounds.strain_scatter && m.strain_scatter) {
    checks.at_most("observed / predicted sigma of strain", *m.strain_scatter, bounds.strain_scatter->most);
    checks.at_least("observed / predicted sigma of strain", *m.strain_scatter, bounds.strain_scatter->least);
  }
  if (resolution) checks.at_most("spatial resolution in px", resolution->spatial, bounds.resolution);
  return checks.sentences();
}

std::string Bounds::text() const {
  std::string all;
  const auto add = [&](const std::string& part) { all += (all.empty() ? "" : ", ") + part; };
  if (false_ok) add("false ok <= " + percent(*false_ok));
  if (lost) add("lost <= " + percent(*lost));
  if (bias) add("bias <= " + number(*bias) + " px");
  if (sd) add("sd <= " + number(*sd) + " px");
  if (rmse) add("RMSE <= " + number(*rmse) + " px");
  if (scatter) add("observed / predicted " + number(scatter->least) + ".." + number(scatter->most));
  if (near_edge) add("right beside the edge >= " + percent(*near_edge));
  if (resolution) add("resolution <= " + number(*resolution) + " px");
  if (strain_bias) add("strain <= " + number(*strain_bias));
  if (strain_scatter)
    add("observed / predicted of strain " + number(strain_scatter->least) + ".." +
        number(strain_scatter->most));
  return all;
}

}  // namespace dic::validation

#include "validate/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dic::validation {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double larger(const std::array<double, 2>& values) {
  return std::max(std::abs(values[0]), std::abs(values[1]));
}

double rms_of(const std::array<double, 2>& values) {
  return std::sqrt((values[0] * values[0] + values[1] * values[1]) / 2);
}

/// Expected standard deviation of an error, px.
double spread(double sigma, double truth_error) { return std::hypot(sigma, truth_error); }

/// The larger ratio of error to spread of both components.
double deviation(const JudgedPoint& p) {
  const double u = std::abs(p.u - p.true_u), v = std::abs(p.v - p.true_v);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto ratio = [&](double error, double sigma) {
    const double s = spread(sigma, p.truth_error);
    return s > 0 ? error / s : (error > 0 ? infinity : 0);
  };
  return std::max(ratio(u, p.sigma_u), ratio(v, p.sigma_v));
}

double error_of(const JudgedPoint& p) { return std::max(std::abs(p.u - p.true_u), std::abs(p.v - p.true_v)); }

/// True for an error that neither noise nor the uncertainty of the truth explains.
bool is_gross(const JudgedPoint& p) { return !(error_of(p) <= std::max(kGross, kSigmas * p.truth_error)); }

void add_strain(std::optional<std::array<double, 2>>& worst, const std::optional<std::array<double, 2>>& of) {
  if (!of) return;
  if (!worst) worst = {0, 0};
  for (int k = 0; k < 2; ++k) (*worst)[k] = std::max((*worst)[k], (*of)[k]);
}

void add_counts(Metrics& sum, const Metrics& frame) {
  for (int k = 0; k < kStatusCount; ++k) sum.statuses[k] += frame.statuses[k];
  for (std::int64_t Metrics::*count :
       {&Metrics::points, &Metrics::ok, &Metrics::measurable, &Metrics::lost, &Metrics::hidden_ok,
        &Metrics::gross, &Metrics::beyond_sigma, &Metrics::false_ok, &Metrics::judged, &Metrics::near_edge,
        &Metrics::near_edge_right})
    sum.*count += frame.*count;
  sum.worst = std::max(sum.worst, frame.worst);
}

}  // namespace

void Moments::add(double value) {
  ++count_;
  sum_ += value;
  square_ += value * value;
}

double Moments::mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : kNaN; }

double Moments::rms() const { return count_ > 0 ? std::sqrt(square_ / static_cast<double>(count_)) : kNaN; }

double Moments::sd() const {
  return count_ > 0 ? std::sqrt(std::max(0.0, square_ / static_cast<double>(count_) - mean() * mean()))
                    : kNaN;
}

double Metrics::false_share() const { return share(false_ok, ok); }
double Metrics::lost_share() const { return share(lost, measurable); }
double Metrics::largest_bias() const { return larger(bias); }
double Metrics::largest_sd() const { return larger(sd); }
double Metrics::largest_rmse() const { return larger(rmse); }
double Metrics::mean_sigma() const { return rms_of(sigma); }
double Metrics::mean_scatter() const { return rms_of(scatter); }

void Judge::add(const JudgedPoint& p) {
  Metrics& m = counts_;
  const bool ok = p.status == Status::ok, can = p.measurable == Measurable::yes && p.expected;
  ++m.points;
  ++m.statuses[static_cast<int>(p.status)];
  m.ok += ok;
  m.measurable += can;
  m.lost += can && !ok;
  m.near_edge += p.near_edge && can;
  if (!ok) return;
  const bool hidden = p.measurable == Measurable::no;
  const bool gross = !hidden && is_gross(p), beyond = !hidden && !(deviation(p) <= kSigmas);
  m.hidden_ok += hidden;
  m.gross += gross;
  m.beyond_sigma += beyond;
  m.false_ok += hidden || gross || beyond;
  m.near_edge_right += p.near_edge && can && deviation(p) <= 3;
  if (hidden) return;
  m.worst = std::max(m.worst, error_of(p));
  if (!gross && p.in_region) add_error(p);
}

void Judge::add_error(const JudgedPoint& p) {
  const std::array<double, 2> error{p.u - p.true_u, p.v - p.true_v}, sigma{p.sigma_u, p.sigma_v};
  ++counts_.judged;
  for (int k = 0; k < 2; ++k) {
    error_[k].add(error[k]);
    sigma_[k].add(sigma[k]);
    ratio_[k].add(error[k] / spread(sigma[k], p.truth_error));
  }
  if (p.has_strain)
    for (int k = 0; k < 3; ++k) {
      strain_[k].add(p.strain_error[k]);
      strain_ratio_[k].add(p.strain_error[k] / p.strain_sigma[k]);
    }
}

Metrics Judge::metrics() const {
  Metrics m = counts_;
  for (int k = 0; k < 2; ++k) {
    m.bias[k] = error_[k].mean();
    m.sd[k] = error_[k].sd();
    m.rmse[k] = error_[k].rms();
    m.sigma[k] = sigma_[k].rms();
    m.scatter[k] = ratio_[k].rms();
  }
  if (strain_[0].count() > 0) {
    m.strain = {0, 0};
    for (const Moments& component : strain_) {
      (*m.strain)[0] = std::max((*m.strain)[0], std::abs(component.mean()));
      (*m.strain)[1] = std::max((*m.strain)[1], component.sd());
    }
    m.strain_scatter = 0;
    for (const Moments& ratio : strain_ratio_) m.strain_scatter = std::max(*m.strain_scatter, ratio.rms());
  }
  return m;
}

Metrics combined(const std::vector<Metrics>& frames) {
  Metrics all;
  std::array<double, 2> sigma{}, scatter{};
  for (const Metrics& frame : frames) {
    add_counts(all, frame);
    add_strain(all.strain, frame.strain);
    if (frame.strain_scatter)
      all.strain_scatter = std::max(all.strain_scatter.value_or(0), *frame.strain_scatter);
    if (frame.judged == 0) continue;
    const auto weight = static_cast<double>(frame.judged);
    for (int k = 0; k < 2; ++k) {
      if (std::abs(frame.bias[k]) > std::abs(all.bias[k])) all.bias[k] = frame.bias[k];
      all.sd[k] = std::max(all.sd[k], frame.sd[k]);
      all.rmse[k] = std::max(all.rmse[k], frame.rmse[k]);
      sigma[k] += weight * frame.sigma[k] * frame.sigma[k];
      scatter[k] += weight * frame.scatter[k] * frame.scatter[k];
    }
  }
  const auto judged = static_cast<double>(all.judged);
  for (int k = 0; k < 2; ++k) {
    all.sigma[k] = std::sqrt(sigma[k] / judged);
    all.scatter[k] = std::sqrt(scatter[k] / judged);
    if (all.judged == 0) all.bias[k] = all.sd[k] = all.rmse[k] = kNaN;
  }
  return all;
}

}  // namespace dic::validation

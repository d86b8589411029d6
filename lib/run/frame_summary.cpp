#include "run/frame_summary.hpp"

#include <array>
#include <cmath>
#include <cstddef>

#include "run/strain_summary.hpp"

namespace dic::run {
namespace {

/// Sums of terms(i) over the points with values. Several independent sums run at once, because each addition
/// to one sum waits for the previous one.
template <std::size_t n, typename Terms>
std::array<double, n> sums_of(const NodeValues<Status>& status, const Terms& terms) {
  std::array<double, n> sums{};
  for (std::size_t i = 0; i < status.size(); ++i) {
    if (!has_values(status[i])) continue;
    const std::array<double, n> add = terms(i);
    for (std::size_t k = 0; k < n; ++k) sums[k] += add[k];
  }
  return sums;
}

}  // namespace

FrameSummary summarize(const Field& field, double length_factor) {
  auto [n, u, v, zncc, sigma_u, sigma_v] = sums_of<6>(field.status, [&](std::size_t i) {
    return std::array<double, 6>{
        1, field.u[i], field.v[i], field.zncc[i], field.sigma_u[i], field.sigma_v[i]};
  });
  for (double* mean : {&u, &v, &zncc, &sigma_u, &sigma_v}) *mean /= n;  // NaN if nothing was measured
  const auto squares = sums_of<3>(field.status, [&, u = u, v = v, zncc = zncc](std::size_t i) {
    const double du = field.u[i] - u, dv = field.v[i] - v, dz = field.zncc[i] - zncc;
    return std::array{du * du, dv * dv, dz * dz};
  });
  const auto deviation = [n = n](double sum) { return n > 1 ? std::sqrt(sum / (n - 1)) : n > 0 ? 0.0 : NAN; };
  FrameSummary summary;
  summary.strain = summarize_strain(field.strain, field.grid(), field.positions.get(), length_factor);
  summary.counts = field.counts();
  summary.mean_u = u * length_factor;
  summary.mean_v = v * length_factor;
  summary.mean_zncc = zncc;
  summary.sigma_u = sigma_u * length_factor;
  summary.sigma_v = sigma_v * length_factor;
  summary.sd_u = deviation(squares[0]) * length_factor;
  summary.sd_v = deviation(squares[1]) * length_factor;
  summary.sd_zncc = deviation(squares[2]);
  return summary;
}

}  // namespace dic::run

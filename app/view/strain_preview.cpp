#include "view/strain_preview.hpp"

#include <array>
#include <dic/fields.hpp>
#include <vector>

namespace dic::app {
namespace {

constexpr std::array kStrainWindows = {5, 7, 9, 11, 15, 21, 27, 33, 41};  ///< recommended ones, points

int gauge_of(const TrackOptions& options) {
  return (options.strain.window - 1) * options.step + options.refine.subset;
}

}  // namespace

double strain_sigma(double sigma_px, const TrackOptions& options) {
  // Borders of a grid are taken for borders of the image, which cut subsets: they are kept away from the
  // window.
  const int side = options.strain.window + 2 * (options.refine.subset / 2 / options.step + 1);
  const auto nodes = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  Grid grid{.x0 = 0, .y0 = 0, .step = options.step, .nx = side, .ny = side, .inside = {}};
  grid.inside.assign(nodes, 1);
  Field field(grid);
  for (std::size_t node = 0; node < nodes; ++node) {
    field.u[node] = field.v[node] = 0;
    field.sigma_u[node] = field.sigma_v[node] = static_cast<float>(sigma_px);
    field.status[node] = Status::ok;
  }
  const MeasuredSubsets subsets{.size = options.refine.subset,
                                .order = options.automatic_order ? 2 : options.refine.order,
                                .weights = options.refine.weights};
  return compute_strain(field, options.strain, options.threads, subsets).sigma_exx[nodes / 2];
}

Json strain_preview(const Preview& found, const TrackOptions& options, const Preview& recommended,
                    const TrackOptions& better, double demanded) {
  Json json{{"window", options.strain.window},
            {"gauge", gauge_of(options)},
            {"sigma", strain_sigma(found.median_sigma, options)},
            {"demanded", demanded}};
  TrackOptions with = better;
  double sigma = 0;
  for (const int window : kStrainWindows) {
    with.strain.window = window;
    sigma = strain_sigma(recommended.median_sigma, with);
    if (sigma <= demanded) break;
  }
  json["recommended"] = {{"window", with.strain.window},
                         {"gauge", gauge_of(with)},
                         {"sigma", sigma},
                         {"is_reached", sigma <= demanded}};
  return json;
}

}  // namespace dic::app

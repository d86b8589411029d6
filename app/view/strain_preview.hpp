#pragma once

#include <dic/preview.hpp>

#include "view/json.hpp"

namespace dic::app {

/// Predicted standard deviation of a normal strain from that of the displacement, both far from edges.
double strain_sigma(double sigma_px, const TrackOptions& options);

/// Predicts the noise of strain from a preview: {gauge, sigma} of these options and, for a demanded standard deviation of
/// strain, {window, gauge, sigma, is_reached} of the smallest gauge with `recommended` that has it.
/// recommended: the preview with the recommended subset and step, for which `better` are the options.
Json strain_preview(const Preview& found, const TrackOptions& options, const Preview& recommended,
                    const TrackOptions& better, double demanded);

}  // namespace dic::app

#pragma once

#include <dic/camera_rig.hpp>
#include <dic/fields.hpp>
#include <span>
#include <vector>

#include "core/parallel.hpp"

/// Predicted standard deviations of matches across the cameras, checked by their epipolar distances.
namespace dic::stereo {

/// Factors of these standard deviations at all nodes, at most 1: how far the points scatter about their
/// epipolar lines, compared with the prediction. The residuals of matches across the cameras contain more
/// than noise: an oblique view compresses the texture and blurs it differently, light is reflected
/// differently. The prediction takes all of it for noise that displaces, which most of it does not. Errors of
/// the calibration are part of the distances, so that these can only prove a prediction too large.
///
/// The ratio of both variances is a power of the predicted standard deviation times a power of 1 - zncc,
/// fitted to the `ok` points. All factors are 1 if these are too few.
std::vector<float> sigma_factors(const Field& across, const CameraRig& rig, core::ThreadPool& pool);

/// Multiplies the standard deviations of u and v.
void multiply_sigmas(Field& field, std::span<const float> factors);

}  // namespace dic::stereo

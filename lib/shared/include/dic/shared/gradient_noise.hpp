#pragma once

namespace dic {

/// Effect on the displacement of the gradients' noise in a Gauss-Newton matrix H: the part of H^-1 E H^-1
/// that belongs to u and v, px^2. E: the noise in H for a noise of 1 grey level in the reference.
struct GradientNoise {
  float uu = 0, uv = 0, vv = 0;
};

}  // namespace dic

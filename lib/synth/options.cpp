#include <algorithm>
#include <cmath>
#include <dic/synth.hpp>
#include <numbers>

namespace dic {
namespace {

bool finite_motion(const Motion& m) {
  const double sum = m.u + m.v + m.ux + m.uy + m.vx + m.vy + m.angle_deg + m.cx + m.cy + m.amplitude +
                     m.period_min + m.period_max + m.width + m.crack_y + m.slip + m.length + m.radius;
  const auto good = [](const Motion::Body& b) {
    return std::isfinite(b.x + b.y + b.u + b.v + b.angle_deg) && b.radius > 0 && std::isfinite(b.radius);
  };
  if (!std::ranges::all_of(m.bodies, good)) return false;
  return std::isfinite(sum);
}

/// The reason why the motion at `amount` is impossible for material, or an empty text.
std::string impossible(const Motion& m, double amount) {
  const double det = (1 + amount * m.ux) * (1 + amount * m.vy) - amount * amount * m.uy * m.vx;
  if (m.kind == MotionKind::affine && det < 0.1)
    return "The affine motion folds or crushes the material (its determinant must be at least 0.1).";
  const double slope = std::abs(amount * m.amplitude) * 2 * std::numbers::pi / m.period_min;
  if (m.kind == MotionKind::star && !(slope < 0.9))
    return "The star folds the material: the amplitude must be below 0.14 of the smallest period.";
  if (m.kind == MotionKind::chirp && !(slope < 0.9))
    return "The chirp folds the material: the amplitude must be below 0.14 of the smallest period.";
  if (m.kind == MotionKind::ramp && !(m.length > 0 && amount * m.amplitude > -0.9 * m.length))
    return "The ramp folds the material: it must be longer than it compresses.";
  if (m.kind == MotionKind::crack && amount * m.amplitude < 0) return "The crack can open, but not overlap.";
  if (m.kind == MotionKind::hole && !(m.radius > 0 && std::abs(amount * m.vy) <= 0.15))
    return "A plate with a hole needs a positive radius and a strain between -0.15 and 0.15.";
  return {};
}

void add_motion_problems(const SynthOptions& o, std::vector<std::string>& problems) {
  const Motion& m = o.motion;
  if (!finite_motion(m))
    problems.push_back("Every number of the motion must be finite, and the radius of a body positive.");
  const bool periodic = m.kind == MotionKind::star || m.kind == MotionKind::chirp;
  if (periodic && !(m.period_min > 0 && m.period_max >= m.period_min && m.width >= 2))
    problems.push_back(
        "Star and chirp need 0 < period_min <= period_max and the image's width (2 px or more).");
  const bool all_finite = std::ranges::all_of(o.amounts, [](double a) { return std::isfinite(a); });
  if (o.amounts.empty() || o.amounts[0] != 0 || !all_finite) {
    problems.push_back("The amounts of motion must be finite and begin with 0, the reference.");
    return;
  }
  for (const double amount : o.amounts)
    if (const std::string problem = impossible(m, amount); !problem.empty()) {
      problems.push_back(problem);
      return;
    }
}

}  // namespace

std::vector<std::string> SynthFaults::validate() const {
  std::vector<std::string> list;
  const auto require = [&list](bool good, const char* problem) {
    if (!good) list.push_back(problem);
  };
  require(repeat == 0 || (repeat >= 4 && repeat <= 32768),
          "The texture repeats itself every 4 to 32768 px, or never: 0.");
  require(fill_factor > 0 && fill_factor <= 1, "The fill factor must be above 0 and at most 1.");
  require(line_jitter >= 0 && line_jitter <= 1, "The jitter of the rows must be between 0 and 1 px.");
  require(line_pattern >= 0 && line_pattern <= 255,
          "The pattern of rows and columns must be between 0 and 255 grey levels.");
  require(defective >= 0 && defective <= 0.5, "At most half of the pixels, 0 to 0.5, can be defective.");
  require(median == 0 || (median >= 3 && median <= 9 && median % 2 == 1),
          "The side of the median filter must be 0, 3, 5, 7 or 9 px.");
  require(std::abs(pedestal) <= 65535, "The pedestal must be between -65535 and 65535.");
  return list;
}

std::vector<std::string> SynthOptions::validate() const {
  std::vector<std::string> list;
  const auto require = [&list](bool good, const char* problem) {
    if (!good) list.push_back(problem);
  };
  require(size.width >= 8 && size.height >= 8 && size.width <= 32768 && size.height <= 32768,
          "Width and height must be between 8 and 32768 px.");
  require(bits == 8 || bits == 12 || bits == 16, "Images have 8, 12 or 16 bits.");
  require(blob_sigma >= 0.3 && blob_sigma <= 100, "The blobs' sigma must be between 0.3 and 100 px.");
  require(!density || (*density >= 1e-6 && *density <= 10),
          "The density must be between 1e-6 and 10 blobs per px^2.");
  require(grey_min >= 0 && grey_max <= 255 && grey_min < grey_max,
          "Grey needs 0 <= grey_min < grey_max <= 255.");
  require(noise >= 0 && std::isfinite(noise), "The noise must not be negative.");
  require(!reference_noise || (*reference_noise >= 0 && std::isfinite(*reference_noise)),
          "The reference's noise must not be negative.");
  require(std::isfinite(gain) && gain > 0 && std::isfinite(offset),
          "Gain must be positive and offset finite.");
  require(size_spread >= 1 && size_spread <= 5, "The spread of sizes must be between 1 and 5.");
  require(full_well >= 0 && std::isfinite(full_well), "The full well must not be negative.");
  require(light_min > 0 && light_min <= 1, "The light at the left edge must be above 0 and at most 1.");
  require(glare >= 0 && glare <= 0.5, "The glare must be between 0 and 0.5 of the image.");
  require(blur >= 0 && blur <= 100, "The blur must be between 0 and 100 px.");
  require(!camera || camera->parameters().image == size,
          "The camera takes images of another size than the width and height given.");
  const bool rigid = motion.kind == MotionKind::translation || motion.kind == MotionKind::rotation;
  const bool smooth = texture == Texture::blobs || texture == Texture::lattice;
  require(
      blur == 0 || (rigid && smooth && !camera),
      "Blur is exact only for blobs and lattices that are shifted or turned, without a camera: leave out the "
      "blur, or choose --motion translation or rotation.");
  add_motion_problems(*this, list);
  for (const std::string& problem : faults.validate()) list.push_back(problem);
  return list;
}

}  // namespace dic

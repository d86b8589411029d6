#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <random>

#include "validate/validate.hpp"

namespace dic::validation {
namespace {

// Bounds of all cases. `ok` promises an error below 5 sigma and 0.5 px, except for 1 point in 10,000.
constexpr double kFalse = 1e-4;
constexpr double kFalseTorn = 1e-3;  // share of false points if bodies move apart or hide each other
constexpr double kLost = 1e-3;       // share of the points that can be measured
constexpr double kLostTurned = 1e-2;
constexpr double kLostTorn = 5e-2;  // a subset with two motions may have too few pixels of its own
// The same where a camera changes the texture itself, which makes points uncertain.
constexpr double kFalseCamera = 3e-3, kLostCamera = 5e-2;
constexpr Bounds::Range kScatterCamera{0.6, 1.3};
constexpr Bounds::Range kScatterDenoised{0.9, 1.15};  // at most 1.4 without the check by scatter
constexpr Bounds::Range kScatter{0.9, 1.25};
constexpr Bounds::Range kScatterNoise{0.9, 1.1};

/// Bounds of a motion without tears.
Bounds continuous(std::optional<Bounds::Range> scatter = std::nullopt) {
  return {.false_ok = kFalse, .lost = kLost, .scatter = scatter};
}

Bounds torn() { return {.false_ok = kFalseTorn, .lost = kLostTorn, .scatter = kScatter, .near_edge = 0.95}; }

/// Bounds of a case in which nothing can be measured: no point may be ok.
Bounds nothing() { return {.false_ok = 0}; }

SynthOptions speckle(const Options& options, double noise = 2) {
  SynthOptions synth;
  synth.size = {options.side(), options.side()};
  synth.noise = noise;
  synth.seed = options.seed;
  synth.threads = options.track.threads;
  Motion& m = synth.motion;
  m.cx = m.cy = m.crack_y = (options.side() - 1) / 2.0;
  m.width = options.side();
  return synth;
}

SynthOptions shifted(const Options& options, double u, double v, double noise = 2) {
  SynthOptions synth = speckle(options, noise);
  synth.motion.u = u;
  synth.motion.v = v;
  return synth;
}

SynthOptions stretched(const Options& options, double ux, double uy, double vx, double vy) {
  SynthOptions synth = speckle(options);
  Motion& m = synth.motion;
  m.kind = MotionKind::affine;
  m.ux = ux;
  m.uy = uy;
  m.vx = vx;
  m.vy = vy;
  return synth;
}

/// Sets frames in equal steps up to the whole motion.
void set_steps(SynthOptions& synth, int steps) {
  synth.amounts = {0};
  for (int k = 1; k <= steps; ++k) synth.amounts.push_back(static_cast<double>(k) / steps);
}

Case make(std::string name, const SynthOptions& synth, Bounds bounds, Variant variant = {}) {
  return {std::move(name), [synth] { return synthetic_scene(synth); }, bounds, variant};
}

/// Counts only points with whole subsets as lost, for cases where half a subset tells too little: its sigma
/// would exceed 0.1 px, a fifth of what `ok` promises.
Case of_whole_subsets(Case one, bool half_is_too_little = true) {
  one.whole_subsets = half_is_too_little;
  return one;
}

Case with_parameter(Case one, std::string name, double value) {
  one.parameter = std::move(name);
  one.parameter_value = value;
  return one;
}

std::string text(const char* format, double value) {
  char out[64];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

// --- clean images ---

std::vector<Case> translation(const Options& options) {
  std::vector<Case> cases;
  for (const double sigma : {1.7, 1.0})
    for (const Interpolation spline : {Interpolation::cubic, Interpolation::quintic}) {
      if (options.asked.interpolation && spline != Interpolation::cubic) continue;
      SynthOptions synth = shifted(options, 1, 0, 0);
      synth.seed = 1;
      synth.blob_sigma = sigma;
      set_steps(synth, options.quick ? 4 : 20);
      const bool quintic = (options.asked.interpolation ? options.track.refine.interpolation : spline) ==
                           Interpolation::quintic;
      const double bias = sigma > 1.5 ? (quintic ? 1.5e-4 : 6e-4) : (quintic ? 11e-4 : 45e-4);
      Bounds bounds = continuous();
      bounds.bias = bias;
      bounds.sd = 18e-4;
      cases.push_back(make("blobs " + text("%.1f px, ", sigma) + std::string(to_string(spline)), synth,
                           bounds, {.interpolation = spline}));
    }
  return cases;
}

std::vector<Case> border(const Options& options) {
  std::vector<Case> cases;
  for (const Interpolation spline : {Interpolation::cubic, Interpolation::quintic}) {
    if (options.asked.interpolation && spline != Interpolation::cubic) continue;
    for (const Region region : {Region{0, 4}, Region{5, 9}, Region{10, 14}}) {
      if (options.quick && region.nearest > 0) continue;
      SynthOptions synth = shifted(options, 0.5, 0, 0);
      synth.seed = 1;
      set_steps(synth, 2);
      Bounds bounds = continuous();
      bounds.bias = 25e-4;
      bounds.sd = 50e-4;
      char name[64];
      std::snprintf(name, sizeof name, "%s, %d-%d px", std::string(to_string(spline)).c_str(), region.nearest,
                    region.farthest);
      cases.push_back(make(name, synth, bounds, {.interpolation = spline}));
      cases.back().region = region;
    }
  }
  return cases;
}

std::vector<Case> far(const Options& options) {
  const double part = options.side() / 1024.0;
  Bounds bounds = continuous(kScatterNoise);
  return {make("by hundreds of px", shifted(options, 300.37 * part, -150.2 * part), bounds),
          make("70 % leaves the image", shifted(options, 700.4 * part, 12.3), bounds),
          make("whole px, no noise", shifted(options, 2, 1, 0), continuous())};
}

std::vector<Case> affine(const Options& options) {
  std::vector<Case> cases;
  const double angle = std::numbers::pi / 180;
  SynthOptions gentle = stretched(options, 1.02 * std::cos(angle) - 1, -std::sin(angle),
                                  1.02 * std::sin(angle), std::cos(angle) - 1);
  gentle.noise = 0;
  gentle.seed = 1;
  Bounds bounds = continuous();
  bounds.bias = 2e-4;
  bounds.sd = 18e-4;
  bounds.strain_bias = 2e-4;
  cases.push_back(make("stretch 2 %, turn 1 degree, no noise", gentle, bounds));
  const struct {
    double ux, vy;
  } stretches[] = {{-0.3, 0.1}, {0.5, -0.15}, {0.8, -0.2}, {-0.4, 0.12}, {-0.25, -0.25}, {1, -0.3}};
  for (const auto& s : stretches) {
    char name[64];
    std::snprintf(name, sizeof name, "stretch %+.0f %%, %+.0f %%", 100 * s.ux, 100 * s.vy);
    cases.push_back(make(name, stretched(options, s.ux, 0, 0, s.vy), continuous(kScatter)));
  }
  return cases;
}

SynthOptions rotated(const Options& options, double angle, double sigma) {
  SynthOptions synth = speckle(options);
  synth.motion.kind = MotionKind::rotation;
  synth.motion.angle_deg = angle;
  synth.blob_sigma = sigma;
  return synth;
}

SynthOptions zoomed(const Options& options, double angle_deg, double zoom) {
  const double angle = angle_deg * std::numbers::pi / 180;
  const double c = zoom * std::cos(angle), s = zoom * std::sin(angle);
  return stretched(options, c - 1, -s, s, c - 1);
}

std::vector<Case> rotation(const Options& options) {
  std::vector<Case> cases;
  Bounds bounds = continuous(kScatter);
  bounds.lost = kLostTurned;
  bounds.strain_bias = 1e-4;
  const std::vector<double> sigmas = options.quick ? std::vector{1.7} : std::vector{1.0, 1.7, 2.5, 3.5};
  const std::vector<double> angles = options.quick ? std::vector<double>{10, 90, 170}
                                                   : std::vector<double>{5, 10, 20, 25, 30, 45, 90, 135, 180};
  for (const double sigma : sigmas)
    for (const double angle : angles) {
      Case one = make(text("%.0f degrees, ", angle) + text("blobs %.1f px", sigma),
                      rotated(options, angle, sigma), bounds);
      cases.push_back(with_parameter(std::move(one), "blobs " + text("%.1f px", sigma), angle));
    }
  // The strain of a rigid motion is zero, but noise hides that.
  Bounds rigid = continuous();
  rigid.lost = kLostTurned;
  rigid.strain_bias = 1e-5;
  for (const double angle : options.quick ? std::vector<double>{90} : std::vector<double>{30, 90, 170}) {
    SynthOptions clean = rotated(options, angle, 1.7);
    clean.noise = 0;
    cases.push_back(make(text("%.0f degrees, no noise", angle), clean, rigid));
  }
  if (options.quick) return cases;
  for (const int side : {256, 2048}) {
    SynthOptions sized = rotated(options, side == 256 ? 90 : 30, 1.7);
    sized.size = {side, side};
    sized.motion.cx = sized.motion.cy = (side - 1) / 2.0;
    cases.push_back(
        make(text("%.0f degrees, ", sized.motion.angle_deg) + text("image of %.0f px", side), sized, bounds));
  }
  // Rotation with stretch: first stretched, then turned.
  const double c = std::cos(std::numbers::pi / 4), s = std::sin(std::numbers::pi / 4);
  cases.push_back(
      make("45 degrees, stretch +50 %", stretched(options, 1.5 * c - 1, -s, 1.5 * s, c - 1), bounds));
  cases.push_back(make("45 degrees, zoom 0.75", zoomed(options, 45, 0.75), bounds));
  cases.push_back(make("120 degrees, zoom 0.5", zoomed(options, 120, 0.5), bounds));
  cases.push_back(make("60 degrees, zoom 2", zoomed(options, 60, 2), bounds));
  return cases;
}

// --- resolution ---

Case resolution_case(const Options& options, MotionKind kind, int subset, int order) {
  SynthOptions synth = speckle(options);
  synth.size = {options.quick ? 1024 : 2048, 501};
  synth.motion.kind = kind;
  synth.motion.width = synth.size.width;
  synth.motion.cx = (synth.size.width - 1) / 2.0;
  synth.motion.cy = 250;
  synth.amounts = {0, 0, 1};
  synth.seed = 1;
  // Nine tenths of the amplitude need a period of 4.5 subsets at order 1, 1.5 at order 2 (docs/accuracy.md).
  Bounds bounds{.resolution = subset * (order == 1 ? 4.6 : order == 2 ? 1.65 : 4.6)};
  Case one = make("subset " + std::to_string(subset) + ", order " + std::to_string(order), synth, bounds,
                  {.subset = subset, .order = order, .step = options.quick ? 4 : 2});
  one.first_judged = 2;
  one.roi = Roi::Rect{0, 170, synth.size.width, 161};
  return one;
}

std::vector<Case> resolution_cases(const Options& options, MotionKind kind) {
  const bool asked = options.asked.subset || options.asked.order;
  if (asked) return {resolution_case(options, kind, options.track.refine.subset, options.track.refine.order)};
  std::vector<Case> cases;
  const std::vector<std::pair<int, int>> variants =
      options.quick ? std::vector<std::pair<int, int>>{{33, 1}, {33, 2}}
                    : std::vector<std::pair<int, int>>{{15, 1}, {21, 1}, {33, 1}, {21, 2}, {33, 2}, {51, 2}};
  for (const auto& [subset, order] : variants) cases.push_back(resolution_case(options, kind, subset, order));
  return cases;
}

std::vector<Case> star(const Options& options) { return resolution_cases(options, MotionKind::star); }
std::vector<Case> chirp(const Options& options) { return resolution_cases(options, MotionKind::chirp); }

std::vector<Case> ramp(const Options& options) {
  std::vector<Case> cases;
  for (const double length :
       options.quick ? std::vector<double>{100} : std::vector<double>{50, 100, 200, 400})
    for (const int order : {1, 2}) {
      if (options.asked.order && order != 1) continue;
      SynthOptions synth = speckle(options);
      synth.motion.kind = MotionKind::ramp;
      synth.motion.amplitude = -3.2;
      synth.motion.length = length;
      cases.push_back(make(text("3.2 px over %.0f px", length) + ", order " + std::to_string(order), synth,
                           continuous(kScatter), {.order = order}));
    }
  return cases;
}

// --- tears and bodies ---

SynthOptions cracked(const Options& options, double amplitude, double slip, bool textured) {
  SynthOptions synth = speckle(options);
  synth.motion.kind = MotionKind::crack;
  synth.motion.amplitude = amplitude;
  synth.motion.slip = slip;
  synth.motion.textured_gap = textured;
  return synth;
}

std::vector<Case> crack(const Options& options) {
  std::vector<Case> cases = {make("opening 3 px", cracked(options, 1.5, 0, false), torn()),
                             make("slip 3 px", cracked(options, 0, 1.5, false), torn())};
  for (const double opening : options.quick ? std::vector<double>{10} : std::vector<double>{3, 10, 30})
    for (const bool textured : {false, true}) {
      if (opening == 3 && !textured) continue;
      cases.push_back(make(text("opening %.0f px", opening) + (textured ? ", textured" : ", dark"),
                           cracked(options, opening / 2, 0, textured), torn()));
    }
  for (const double angle : options.quick ? std::vector<double>{60} : std::vector<double>{30, 45, 60}) {
    SynthOptions slip = cracked(options, 0, 1.5, false), opening = cracked(options, 5, 0, true);
    slip.motion.angle_deg = opening.motion.angle_deg = angle;
    cases.push_back(make("slip 3 px, " + text("%.0f degrees", angle), slip, torn()));
    cases.push_back(make("opening 10 px, textured, " + text("%.0f degrees", angle), opening, torn()));
  }
  return cases;
}

/// Discs in units of the side of the image; displacements in px.
SynthOptions with_bodies(const Options& options, std::vector<Motion::Body> bodies) {
  SynthOptions synth = speckle(options);
  synth.motion.kind = MotionKind::bodies;
  for (Motion::Body& body : bodies) {
    body.x *= options.side();
    body.y *= options.side();
    body.radius *= options.side();
  }
  synth.motion.bodies = std::move(bodies);
  return synth;
}

std::vector<Case> bodies(const Options& options) {
  std::vector<Case> cases = {
      make("a disc slides by 6.7 px", with_bodies(options, {{0.49, 0.49, 0.2, 6, 3, 0}}), torn()),
      make("a disc turns by 8 degrees", with_bodies(options, {{0.49, 0.49, 0.2, 0, 0, 8}}), torn())};
  if (options.quick) return cases;
  cases.push_back(
      make("a disc turns by 60 degrees", with_bodies(options, {{0.49, 0.49, 0.3, 0, 0, 60}}), torn()));
  cases.push_back(make("three discs move by 40 to 100 px",
                       with_bodies(options, {{0.25, 0.25, 0.15, 100, 0, 0},
                                             {0.72, 0.3, 0.15, -40, 60, 0},
                                             {0.4, 0.72, 0.15, 0, -70, 0}}),
                       torn()));
  return cases;
}

std::vector<Case> occlusion(const Options& options) {
  SynthOptions small = with_bodies(options, {{0.3, 0.6, 0.06, 90, -40, 0}});
  small.motion.u = 2.4;
  return {make("a disc passes in front", with_bodies(options, {{0.49, 0.49, 0.146, 60, 20, 0}}), torn()),
          make("a small disc in front of what moves", small, torn())};
}

// --- light and noise ---

std::vector<Case> noise(const Options& options) {
  std::vector<Case> cases;
  const auto add = [&](double grey, int subset, int order, std::uint64_t seed) {
    SynthOptions synth = shifted(options, 0.3, 0.2, grey);
    synth.seed = seed;
    std::string name =
        text("noise %g", grey) + ", subset " + std::to_string(subset) + ", order " + std::to_string(order);
    Case one = make(std::move(name), synth, continuous(kScatterNoise), {.subset = subset, .order = order});
    const bool half_is_too_little = grey > 8 || (order == 2 && subset < 21);
    cases.push_back(with_parameter(of_whole_subsets(std::move(one), half_is_too_little), "noise", grey));
  };
  const int subset = options.track.refine.subset, order = options.track.refine.order;
  for (const double grey :
       options.quick ? std::vector<double>{0.5, 2, 8} : std::vector<double>{0.5, 1, 2, 4, 8, 16})
    add(grey, subset, order, options.seed);
  if (options.quick || options.asked.subset || options.asked.order) return cases;
  for (const int side : {15, 21, 33, 51})
    for (const int degree : {0, 1, 2})
      if (side != subset || degree != order) add(2, side, degree, 1);
  return cases;
}

std::vector<Case> poisson(const Options& options) {
  SynthOptions uneven = shifted(options, 0.3, 0.2, 0), even = uneven;
  uneven.full_well = even.full_well = 5000;
  uneven.light_min = 0.15;
  return {make("5,000 electrons", even, continuous(kScatterNoise)),
          make("5,000 electrons, light 0.15 to 1", uneven, continuous(kScatterNoise))};
}

std::vector<Case> blur(const Options& options) {
  std::vector<Case> cases;
  for (const double width : options.quick ? std::vector<double>{2} : std::vector<double>{1, 2, 3}) {
    SynthOptions synth = shifted(options, 0.3, 0.2);
    synth.blur = width;
    cases.push_back(
        of_whole_subsets(make(text("defocus %.0f px", width), synth, continuous(kScatter)), width > 2));
  }
  return cases;
}

std::vector<Case> light(const Options& options) {
  SynthOptions darker = shifted(options, 0.3, 0.2), uneven = darker, glare = shifted(options, 2.3, 0.2);
  darker.gain = 0.45;
  darker.offset = 20;
  uneven.light_min = 0.3;
  glare.glare = 0.05;
  return {make("gain 0.45, offset 20", darker, continuous(kScatter)),
          make("light 0.3 to 1", uneven, continuous(kScatter)),
          // Beside the glare, a subset has few usable pixels, and light that does not move with the material.
          of_whole_subsets(make("glare saturates 5 %", glare, continuous(kScatter)))};
}

std::vector<Case> weak(const Options& options) {
  std::vector<Case> cases;
  for (const double grey : {30.0, 15.0}) {
    SynthOptions synth = shifted(options, 0.3, 0.2);
    synth.grey_min = 100;
    synth.grey_max = 100 + grey;
    Bounds bounds = continuous(kScatter);
    if (grey < 20) bounds.lost = std::nullopt;  // the contrast is that of the noise, so points may be lost
    // Half a subset at the border has a sigma of 0.2 px, so it could be wrong by half a pixel.
    cases.push_back(of_whole_subsets(make(text("grey of the speckle spans %.0f", grey), synth, bounds)));
  }
  return cases;
}

// --- textures ---

std::vector<Case> textures(const Options& options) {
  SynthOptions dots = shifted(options, 2.3, 0.2), mixed = dots, spread = dots, coarse = dots, fine = dots;
  dots.texture = mixed.texture = Texture::dots;
  dots.blob_sigma = mixed.blob_sigma = 1.5;
  mixed.size_spread = 1.5;
  spread.size_spread = 2;
  coarse.blob_sigma = 3.5;
  fine.blob_sigma = 1.0;
  std::vector<Case> cases = {make("printed dots of mixed sizes", mixed, continuous(kScatter)),
                             make("blobs 3.5 px", coarse, continuous(kScatter))};
  if (options.quick) return cases;
  cases.push_back(make("printed dots of one size", dots, continuous(kScatter)));
  cases.push_back(make("blobs of mixed sizes", spread, continuous(kScatter)));
  cases.push_back(make("blobs 1.0 px", fine, continuous(kScatter)));
  return cases;
}

std::vector<Case> periodic(const Options& options) {
  SynthOptions near = shifted(options, 2.3, 1.2), away = shifted(options, 30.3, 7.2),
               clean = shifted(options, 2.3, 1.2, 0);
  for (SynthOptions* synth : {&near, &away, &clean}) {
    synth->texture = Texture::lattice;
    synth->blob_sigma = 2;
  }
  // The images do not tell which period it was: both no value and the true value are right.
  std::vector<Case> cases = {make("rows of dots, 2.6 px", near, {.false_ok = kFalse}),
                             make("rows of dots, 31 px", away, {.false_ok = kFalse})};
  if (!options.quick) cases.push_back(make("rows of dots, 2.6 px, no noise", clean, {.false_ok = kFalse}));
  return cases;
}

std::vector<Case> textureless(const Options& options) {
  std::vector<Case> cases;
  for (const double grey : {0.0, 0.3, 2.0}) {
    SynthOptions synth = shifted(options, 3.3, 0, grey);
    synth.texture = Texture::gradient;
    cases.push_back(make(text("grey ramp, noise %g", grey), synth, nothing()));
  }
  return cases;
}

std::vector<Case> unrelated(const Options& options) {
  std::vector<Case> cases;
  for (const double sigma : options.quick ? std::vector<double>{3.5} : std::vector<double>{1.7, 3.5})
    for (const int subset : {33, 21, 11}) {
      if (options.asked.subset && subset != 33) continue;
      SynthOptions synth = speckle(options);
      synth.blob_sigma = sigma;
      synth.unrelated = true;
      cases.push_back(make(text("blobs %.1f px", sigma) + ", subset " + std::to_string(subset), synth,
                           nothing(), {.subset = subset}));
    }
  return cases;
}

// --- cameras ---

/// The case with images of float that hold temperatures.
Case in_kelvin(Case one) {
  one.scene = [inner = one.scene] {
    Scene scene = inner();
    scene.image = [image = scene.image](int frame) {
      const Image grey = image(frame);
      Image kelvin(grey.size(), ScalarType::f32);
      for (int y = 0; y < grey.height(); ++y)
        for (int x = 0; x < grey.width(); ++x)
          kelvin.row<float>(y)[x] = 295 + 0.01F * (static_cast<float>(grey.row<std::uint8_t>(y)[x]) - 128);
      return kelvin;
    };
    scene.origin += "; kelvin = 295 + 0.01 (grey - 128)";
    return scene;
  };
  return one;
}

std::vector<Case> camera(const Options& options) {
  const SynthOptions noisy = shifted(options, 0.4, 0.2), clean = shifted(options, 0.4, 0.2, 0);
  const Bounds rough{.false_ok = kFalseCamera, .lost = kLostCamera, .scatter = kScatterCamera};
  const Bounds usual = continuous(kScatter);
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, SynthOptions synth, const Bounds& bounds,
                       const auto& change) {
    change(synth);
    cases.push_back(make(name, synth, bounds));
  };
  using Synth = SynthOptions;
  for (const double share :
       options.quick ? std::vector<double>{0.003} : std::vector<double>{0.0003, 0.003, 0.01})
    add(text("%g %% of the pixels are defective", 100 * share), noisy, usual,
        [&](Synth& s) { s.faults.defective = share; });
  add("12 bits in 16, glare saturates 5 %", shifted(options, 2.3, 0.2), usual,
      [](Synth& s) { s.glare = 0.05, s.bits = 12; });
  cases.back().whole_subsets = true;
  add("16 bits on a pedestal of 60000", noisy, usual, [](Synth& s) {
    s.bits = 16, s.faults.pedestal = 60000;
    s.grey_min /= 16, s.grey_max /= 16, s.noise /= 16;
  });
  cases.push_back(in_kelvin(make("kelvin, 295 +- 1", noisy, usual)));
  add("two values", clean, rough, [](Synth& s) { s.faults.two_valued = true; });
  add("noise after a 3x3 filter", shifted(options, 0.4, 0.2, 2.25), rough,
      [](Synth& s) { s.faults.correlated_noise = true; });
  add("rows and columns add 3 grey levels", noisy, rough, [](Synth& s) { s.faults.line_pattern = 3; });
  add("each row is displaced by 0.3 px", clean, rough, [](Synth& s) { s.faults.line_jitter = 0.3; });
  add("median filter of 3x3 px", noisy, rough, [](Synth& s) { s.faults.median = 3; });
  add("the same, noise of 5", shifted(options, 0.4, 0.2, 5),
      {.false_ok = kFalse, .lost = kLostCamera, .scatter = kScatterDenoised},
      [](Synth& s) { s.faults.median = 3; });
  add("printed dots, fill factor 0.6", noisy, rough,
      [](Synth& s) { s.texture = Texture::dots, s.faults.fill_factor = 0.6; });
  return cases;
}

// --- textures that repeat ---

std::vector<Case> repeats(const Options& options) {
  std::vector<Case> cases;
  const auto add = [&](int period, double u, double v, const Bounds& bounds) {
    SynthOptions synth = shifted(options, u, v);
    synth.faults.repeat = period;
    cases.push_back(
        make("every " + std::to_string(period) + " px, " + text("moved by %.1f px", u), synth, bounds));
  };
  for (const int period : options.quick ? std::vector<int>{64} : std::vector<int>{40, 64, 100, 128, 160})
    for (const double u : {0.3, 3.3}) add(period, u, -0.4, continuous(kScatter));
  // A motion by half of a short period could be either way: no value is right, too.
  add(20, 9, 0, {.false_ok = kFalse});
  return cases;
}

// --- strain ---

std::vector<Case> strain(const Options& options) {
  SynthOptions rest = shifted(options, 0.3, 0.2), wave = speckle(options), hole = speckle(options);
  wave.motion.kind = MotionKind::chirp;
  wave.motion.amplitude = 1;
  wave.motion.period_min = wave.motion.period_max = 250;
  SynthOptions short_wave = wave;
  short_wave.motion.amplitude = 0.3;
  short_wave.motion.period_min = short_wave.motion.period_max = 100;
  hole.motion.kind = MotionKind::hole;
  hole.motion.radius = 60;
  hole.motion.vy = 0.005;
  std::vector<Case> cases;
  for (const int window : options.quick ? std::vector<int>{9} : std::vector<int>{5, 9, 15}) {
    const std::string of_window = ", window " + std::to_string(window);
    const auto add = [&](const std::string& name, const SynthOptions& synth, Bounds::Range range) {
      Bounds bounds = continuous();
      if (synth.motion.kind == MotionKind::hole) bounds.false_ok = 2e-2;  // points just inside the hole
      bounds.strain_scatter = range;
      cases.push_back(make(name + of_window, synth, bounds, {.strain_window = window}));
    };
    add("translation", rest, kScatterNoise);
    add("wave of 250 px", wave, {0.8, 1.2});
    add("wave of 100 px", short_wave, {0.8, 1.4});
    add("around a hole", hole, {0.8, 1.2});
    add("beside a hole", hole, {0.8, 1.5});
    cases.back().region.farthest_from_hole = (window / 2) * options.track.step + 10;
  }
  return cases;
}

// --- sequences ---

/// The case with one black frame.
Case with_black_frame(Case one, int black) {
  one.scene = [inner = one.scene, black] {
    Scene scene = inner();
    scene.image = [image = scene.image, black](int frame) {
      Image shown = image(frame);
      return frame == black ? Image(shown.size(), shown.type()) : shown;
    };
    scene.truth = [truth = scene.truth, black](int frame, double x, double y) {
      auto value = truth(frame, x, y);
      if (frame == black) value->measurable = Measurable::no;
      return value;
    };
    scene.origin += "; frame " + std::to_string(black) + " black";
    return scene;
  };
  return one;
}

std::vector<Case> sequences(const Options& options) {
  std::vector<Case> cases;
  using enum ReferenceStrategy;
  for (const ReferenceStrategy strategy : {first, previous, automatic}) {
    if (options.asked.strategy && strategy != first) continue;
    SynthOptions shift = shifted(options, 1.8, 1.2), stretch = stretched(options, 0.6, 0, 0, -0.18);
    set_steps(shift, 6);
    set_steps(stretch, 12);
    const std::string name(to_string(strategy));
    cases.push_back(
        make("shift in 6 frames, " + name, shift, continuous(kScatterNoise), {.strategy = strategy}));
    if (options.quick) continue;
    cases.push_back(with_black_frame(
        make("one frame is black, " + name, shift, continuous(kScatterNoise), {.strategy = strategy}), 3));
    cases.push_back(
        make("60 % in 12 frames, " + name, stretch, continuous(kScatterNoise), {.strategy = strategy}));
  }
  return cases;
}

// --- template matching ---

constexpr int kPartRadius = 30, kPartCell = 128;  // of a disc, and distance between discs, px

/// Motion of discs by up to `most` px at any angle. hides: each is then covered by a fifth by another disc.
std::vector<Motion::Body> moving_discs(const Options& options, const std::vector<Case::Part>& parts,
                                       double most, bool hides) {
  std::mt19937_64 random(options.seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(random() >> 11), -53);
  };
  std::vector<Motion::Body> bodies, covers;
  for (const Case::Part& part : parts) {
    const double x = part.x, y = part.y, radius = part.radius;
    const double u = uniform(-most, most), v = uniform(-most, most);
    bodies.push_back({x, y, radius, u, v, uniform(-180, 180)});
    // Discs of the same size at this distance overlap by a fifth.
    const double distance = 1.36 * radius, direction = uniform(-std::numbers::pi, std::numbers::pi);
    constexpr double kFree = kPartCell / 2.0;  // from a disc to the middle between four
    covers.push_back({x + kFree, y + kFree, radius, u + distance * std::cos(direction) - kFree,
                      v + distance * std::sin(direction) - kFree, 0});
  }
  if (hides) bodies.insert(bodies.end(), covers.begin(), covers.end());
  return bodies;
}

std::vector<Case> match(const Options& options) {
  const int side = (options.quick ? 4 : 6) * kPartCell;
  std::vector<Case::Part> parts;
  for (int y = kPartCell / 2; y < side; y += kPartCell)
    for (int x = kPartCell / 2; x < side; x += kPartCell) parts.push_back({x, y, kPartRadius});
  // Noise of both images allows 0.012 to 0.016 px (Cramer-Rao); robust weights and gradients with noise cost
  // a fifth. 32 errors of few discs scatter by as much.
  Bounds bounds{.rmse = 0.025, .false_ok = 0, .lost = 0.01, .scatter = Bounds::Range{0.6, 1.4}};
  SynthOptions turned = speckle(options);
  turned.blob_sigma = kPartRadius / 7.5;
  turned.size = {side, side};
  turned.motion.kind = MotionKind::bodies;
  SynthOptions hidden = turned;
  turned.motion.bodies = moving_discs(options, parts, 20, false);
  hidden.motion.bodies = moving_discs(options, parts, 6, true);
  SynthOptions larger = zoomed(options, 33, 1.1);
  larger.blob_sigma = turned.blob_sigma;
  larger.size = turned.size;
  larger.motion.cx = larger.motion.cy = (side - 1) / 2.0;
  std::vector<Case> cases = {make("discs of 60 px at any angle", turned, bounds)};
  cases[0].parts = parts;
  Bounds of_hidden = bounds;
  of_hidden.rmse = 0.05;
  of_hidden.lost = 0.05;
  Bounds of_few = bounds;  // four discs, and the scale shares their information
  of_few.rmse = 0.035;
  cases.push_back(make("discs of 60 px, a fifth hidden", hidden, of_hidden));
  cases[1].parts = parts;
  cases.push_back(make("discs of 60 px, 33 degrees, scale 1.1", larger, of_few));
  // Parts that stay in the image.
  for (const Case::Part& part : parts)
    if (const int middle = side / 2; std::hypot(part.x - middle, part.y - middle) < side / 3.0)
      cases[2].parts.push_back(part);
  return cases;
}

std::vector<Suite> make_suites() {
  const std::vector<std::string> usual = {"ok", "lost", "false ok", "bias", "sd", "RMSE", "scatter"};
  const std::vector<std::string> strained = {"ok",      "lost",        "false ok", "RMSE",
                                             "scatter", "strain bias", "strain sd"};
  const std::vector<std::string> edges = {"ok",    "lost",    "false ok",   "hidden",
                                          "gross", "scatter", "beside edge"};
  const std::vector<std::string> resolution = {"p = 150", "p = 60",  "p = 30",  "resolution",
                                               "noise",   "product", "false ok"};
  return {
      {"translation", "shifts by parts of a pixel, no noise", "bias of a prefiltered spline", translation,
       usual},
      {"border", "points whose subset the border cuts, no noise", "as good as sigma says", border, usual},
      {"far", "shifts by whole pixels, far, out of the image", "what is seen in both is found", far, usual},
      {"affine", "stretch and shear in one step", "sigma goes with the deformation", affine, strained},
      {"rotation", "rotations in one step", "99 % of what is seen in both images", rotation, strained},
      {"star", "v of falling period: what a subset can resolve", "a loss is not promised against, but known",
       star, resolution},
      {"chirp", "u of falling period along x", "a loss is not promised against, but known", chirp,
       resolution},
      {"ramp", "steep steps of u", "sigma and order know of them", ramp, usual},
      {"crack", "openings and slips", "a point is measured with its own side", crack, edges},
      {"bodies", "independently moving bodies", "a point is measured with its own body", bodies, edges},
      {"occlusion", "something passes in front", "what is hidden is never ok", occlusion, edges},
      {"noise", "Gaussian noise of all strengths", "sigma is the scatter, within 10 %", noise, usual},
      {"poisson", "shot noise, even and uneven light", "noise depends on grey, and so does sigma", poisson,
       usual},
      {"blur", "defocus of the current frame", "sigma knows of other differences than noise", blur, usual},
      {"light", "lighting that changes, is uneven, saturates", "saturated pixels do not count", light, usual},
      {"weak", "weak contrast", "noise is in the gradients too", weak, usual},
      {"textures", "other speckle: printed dots, mixed sizes, coarse, fine", "we are not tuned to one",
       textures, usual},
      {"periodic", "rows and columns of dots", "the true period, or none", periodic, usual},
      {"repeats", "textures that repeat themselves, far and near", "the smallest motion, or none", repeats,
       usual},
      {"camera", "defective pixels, ceilings, offsets, noise that is not white", "cameras and files do that",
       camera, usual},
      {"textureless", "grey that rises evenly", "nothing can be measured", textureless, usual},
      {"unrelated", "images of different specimens", "nothing can be measured", unrelated, usual},
      {"strain",
       "strain that varies, and strain beside a hole",
       "sigma tells what windows flatten",
       strain,
       {"ok", "lost", "false ok", "strain sd", "strain scatter"}},
      {"sequences", "sequences, by reference strategy", "errors of steps are correlated", sequences, usual},
      {"stereo",
       "two cameras: shape, motion and strain of curved surfaces",
       "as good as the best of all programs tried, without their bias",
       stereo_cases,
       {"lost", "false ok", "Z", "UVW bias", "UVW sd", "surface strain sd", "surface scatter"}},
      {"match", "dic match at any pose: centres, and the rim by angle and scale",
       "what an eye finds is found, and sigma is the scatter", match, usual},
  };
}

}  // namespace

const std::vector<Suite>& suites() {
  static const std::vector<Suite> all = make_suites();
  return all;
}

}  // namespace dic::validation

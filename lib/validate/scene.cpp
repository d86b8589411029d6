#include "validate/scene.hpp"

#include <cstdio>
#include <dic/error.hpp>
#include <memory>
#include <optional>
#include <string_view>

#include "synth/synth.hpp"

namespace dic::validation {
namespace {

/// Collects the flags of a command whose values are not the default.
class Flags {
 public:
  explicit Flags(std::string command) : text_(std::move(command)) {}

  void number(const char* name, double value, double usual) {
    if (value == usual) return;
    char text[64];
    std::snprintf(text, sizeof text, " --%s %.10g", name, value);
    text_ += text;
  }
  void word(const char* name, std::string_view value, std::string_view usual) {
    if (value != usual) text_.append(" --").append(name).append(" ").append(value);
  }
  void flag(const char* name, bool set) {
    if (set) text_.append(" --").append(name);
  }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

void add_image_flags(Flags& flags, const SynthOptions& o) {
  const SynthOptions usual;
  flags.number("width", o.size.width, usual.size.width);
  flags.number("height", o.size.height, usual.size.height);
  flags.number("bits", o.bits, usual.bits);
  flags.word("texture", to_string(o.texture), to_string(usual.texture));
  flags.number("sigma", o.blob_sigma, usual.blob_sigma);
  flags.number("size-spread", o.size_spread, usual.size_spread);
  if (o.density) flags.number("density", *o.density, 0);
  flags.number("grey-min", o.grey_min, usual.grey_min);
  flags.number("grey-max", o.grey_max, usual.grey_max);
  flags.number("noise", o.noise, usual.noise);
  if (o.reference_noise) flags.number("reference-noise", *o.reference_noise, -1);
  flags.number("full-well", o.full_well, usual.full_well);
  flags.number("blur", o.blur, usual.blur);
  flags.number("light-min", o.light_min, usual.light_min);
  flags.number("glare", o.glare, usual.glare);
  flags.flag("unrelated", o.unrelated);
  flags.number("gain", o.gain, usual.gain);
  flags.number("offset", o.offset, usual.offset);
  flags.number("repeat", o.faults.repeat, 0);
  flags.number("fill-factor", o.faults.fill_factor, 1);
  flags.number("line-jitter", o.faults.line_jitter, 0);
  flags.flag("correlated-noise", o.faults.correlated_noise);
  flags.number("line-pattern", o.faults.line_pattern, 0);
  flags.number("defective", o.faults.defective, 0);
  flags.number("median", o.faults.median, 0);
  flags.flag("two-valued", o.faults.two_valued);
  flags.number("pedestal", o.faults.pedestal, 0);
  flags.number("seed", static_cast<double>(o.seed), static_cast<double>(usual.seed));
}

void add_motion_flags(Flags& flags, const SynthOptions& o) {
  const Motion usual;
  const Motion& m = o.motion;
  flags.word("motion", to_string(m.kind), to_string(usual.kind));
  flags.number("u", m.u, usual.u);
  flags.number("v", m.v, usual.v);
  flags.number("ux", m.ux, usual.ux);
  flags.number("uy", m.uy, usual.uy);
  flags.number("vx", m.vx, usual.vx);
  flags.number("vy", m.vy, usual.vy);
  flags.number("angle", m.angle_deg, usual.angle_deg);
  flags.number("cx", m.cx, (o.size.width - 1) / 2.0);
  flags.number("cy", m.cy, (o.size.height - 1) / 2.0);
  flags.number("amplitude", m.amplitude, usual.amplitude);
  flags.number("period-min", m.period_min, usual.period_min);
  flags.number("period-max", m.period_max, usual.period_max);
  flags.number("length", m.length, usual.length);
  flags.number("slip", m.slip, usual.slip);
  flags.flag("textured-gap", m.textured_gap);
  flags.number("radius", m.radius, usual.radius);
  flags.number("crack-y", m.crack_y, (o.size.height - 1) / 2.0);
  for (const Motion::Body& b : m.bodies) {
    char text[160];
    std::snprintf(text, sizeof text, "%.10g,%.10g,%.10g,%.10g,%.10g,%.10g", b.x, b.y, b.radius, b.u, b.v,
                  b.angle_deg);
    flags.word("body", text, "");
  }
}

}  // namespace

std::string synth_command(const SynthOptions& options) {
  Flags flags("dic synth -o DIR");
  flags.number("frames", static_cast<double>(options.amounts.size()), 2);
  add_image_flags(flags, options);
  add_motion_flags(flags, options);
  return flags.text();
}

Scene synthetic_scene(const SynthOptions& options) {
  if (const auto problems = options.validate(); !problems.empty()) throw UsageError(problems.front());
  // The synthesizer is made with the first image, so that a list of cases costs nothing.
  const auto synthesizer = std::make_shared<std::optional<synth::Synthesizer>>();
  Scene scene;
  scene.frames = static_cast<int>(options.amounts.size());
  scene.image = [synthesizer, options](int frame) {
    if (!*synthesizer) synthesizer->emplace(options);
    return (*synthesizer)->frame(frame);
  };
  scene.truth = [options](int frame, double x, double y) -> std::optional<Truth> {
    const auto [u, v] = options.motion.at(x, y, options.amounts[frame]);
    return Truth{u, v, measurable(options, frame, x, y), options.motion.body(x, y)};
  };
  scene.origin = synth_command(options);
  scene.motion = options.motion;
  scene.amounts = options.amounts;
  return scene;
}

}  // namespace dic::validation

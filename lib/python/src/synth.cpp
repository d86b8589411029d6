#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <dic/error.hpp>
#include <dic/synth.hpp>
#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "interruptible.hpp"

namespace dic::python {

namespace {

template <typename Enum>
Enum named(const std::string& what, const std::string& name) {
  if (const auto value = from_name<Enum>(name)) return *value;
  throw UsageError("There is no " + what + " \"" + name + "\".");
}

void set_texture(SynthOptions& options, const std::string& name) {
  options.texture = named<Texture>("texture", name);
}

void set_motion(SynthOptions& options, const std::string& name) {
  options.motion.kind = named<MotionKind>("motion", name);
}

void set_bodies(SynthOptions& options, const std::vector<std::vector<double>>& bodies) {
  options.motion.bodies.clear();
  for (const std::vector<double>& body : bodies) {
    if (body.size() != 6) throw UsageError("A body is x, y, radius, u, v, degrees.");
    options.motion.bodies.push_back({body[0], body[1], body[2], body[3], body[4], body[5]});
  }
}

NumpyArray frame(const SynthOptions& options, int i) {
  return numpy_of(interruptible([&](const std::stop_token&) { return synth_frame(options, i); }));
}

/// The displacement of every pixel, and whether it can be measured.
nb::tuple truth(const SynthOptions& options, int i) {
  const auto width = static_cast<std::size_t>(options.size.width);
  const auto height = static_cast<std::size_t>(options.size.height);
  std::vector<double> u(width * height), v(width * height);
  std::vector<std::uint8_t> can(width * height);
  {
    const nb::gil_scoped_release others_run;
    for (std::size_t k = 0; k < u.size(); ++k) {
      const auto x = static_cast<double>(k % width), y = static_cast<double>(k / width);
      const std::array<double, 2> moved = image_displacement(options, i, x, y);
      u[k] = moved[0];
      v[k] = moved[1];
      can[k] = static_cast<std::uint8_t>(measurable(options, i, x, y));
    }
  }
  const double *const u_data = u.data(), *const v_data = v.data();
  const std::uint8_t* const can_data = can.data();
  return nb::make_tuple(numpy_of(std::move(u), u_data, {height, width}),
                        numpy_of(std::move(v), v_data, {height, width}),
                        numpy_of(std::move(can), can_data, {height, width}));
}

void check(const SynthOptions& options) {
  const std::vector<std::string> problems = options.validate();
  if (!problems.empty()) throw UsageError(problems.front());
}

/// A member of the motion as a property of the options.
template <typename T>
void add_motion(nb::class_<SynthOptions>& options, const char* name, T Motion::*member) {
  options.def_prop_rw(
      name, [member](const SynthOptions& self) { return self.motion.*member; },
      [member](SynthOptions& self, T value) { self.motion.*member = value; });
}

/// A fault of prints, cameras or files as a property of the options.
template <typename T>
void add_fault(nb::class_<SynthOptions>& options, const char* name, T SynthFaults::*member) {
  options.def_prop_rw(
      name, [member](const SynthOptions& self) { return self.faults.*member; },
      [member](SynthOptions& self, T value) { self.faults.*member = value; });
}

}  // namespace

void add_synth(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<SynthOptions> options(module, "SynthOptions");
  options.def(nb::init<>())
      .def_prop_rw(
          "width", [](const SynthOptions& self) { return self.size.width; },
          [](SynthOptions& self, int width) { self.size.width = width; })
      .def_prop_rw(
          "height", [](const SynthOptions& self) { return self.size.height; },
          [](SynthOptions& self, int height) { self.size.height = height; })
      .def_rw("bits", &SynthOptions::bits)
      .def_prop_rw(
          "texture", [](const SynthOptions& self) { return std::string(to_string(self.texture)); },
          &set_texture)
      .def_prop_rw(
          "motion", [](const SynthOptions& self) { return std::string(to_string(self.motion.kind)); },
          &set_motion)
      .def_prop_rw(
          "bodies", [](const SynthOptions& self) { return self.motion.bodies.size(); }, &set_bodies)
      .def_rw("sigma", &SynthOptions::blob_sigma)
      .def_rw("size_spread", &SynthOptions::size_spread)
      .def_rw("density", &SynthOptions::density)
      .def_rw("grey_min", &SynthOptions::grey_min)
      .def_rw("grey_max", &SynthOptions::grey_max)
      .def_rw("noise", &SynthOptions::noise)
      .def_rw("reference_noise", &SynthOptions::reference_noise)
      .def_rw("full_well", &SynthOptions::full_well)
      .def_rw("blur", &SynthOptions::blur)
      .def_rw("light_min", &SynthOptions::light_min)
      .def_rw("glare", &SynthOptions::glare)
      .def_rw("unrelated", &SynthOptions::unrelated)
      .def_rw("gain", &SynthOptions::gain)
      .def_rw("offset", &SynthOptions::offset)
      .def_rw("seed", &SynthOptions::seed)
      .def_rw("amounts", &SynthOptions::amounts)
      .def_rw("threads", &SynthOptions::threads)
      .def_prop_rw(
          "camera", [](const SynthOptions& self) { return self.camera.has_value(); },
          [](SynthOptions& self, const std::filesystem::path& file) { self.camera = read_camera(file); })
      .def("check", &check, "Raises UsageError for options with problems.")
      .def("frame", &frame, "i"_a, "Frame i: uint8 or uint16 [y, x].")
      .def("truth", &truth, "i"_a, "u, v (px) and whether it can be measured, of every pixel [y, x].");
  add_motion(options, "u", &Motion::u);
  add_motion(options, "v", &Motion::v);
  add_motion(options, "ux", &Motion::ux);
  add_motion(options, "uy", &Motion::uy);
  add_motion(options, "vx", &Motion::vx);
  add_motion(options, "vy", &Motion::vy);
  add_motion(options, "angle", &Motion::angle_deg);
  add_motion(options, "cx", &Motion::cx);
  add_motion(options, "cy", &Motion::cy);
  add_motion(options, "amplitude", &Motion::amplitude);
  add_motion(options, "period_min", &Motion::period_min);
  add_motion(options, "period_max", &Motion::period_max);
  add_motion(options, "motion_width", &Motion::width);
  add_motion(options, "length", &Motion::length);
  add_motion(options, "slip", &Motion::slip);
  add_motion(options, "crack_y", &Motion::crack_y);
  add_motion(options, "textured_gap", &Motion::textured_gap);
  add_motion(options, "radius", &Motion::radius);
  add_fault(options, "repeat", &SynthFaults::repeat);
  add_fault(options, "fill_factor", &SynthFaults::fill_factor);
  add_fault(options, "line_jitter", &SynthFaults::line_jitter);
  add_fault(options, "correlated_noise", &SynthFaults::correlated_noise);
  add_fault(options, "line_pattern", &SynthFaults::line_pattern);
  add_fault(options, "defective", &SynthFaults::defective);
  add_fault(options, "median", &SynthFaults::median);
  add_fault(options, "two_valued", &SynthFaults::two_valued);
  add_fault(options, "pedestal", &SynthFaults::pedestal);
}

}  // namespace dic::python

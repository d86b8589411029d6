#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <dic/error.hpp>
#include <dic/match.hpp>
#include <memory>

#include "arrays.hpp"
#include "bindings.hpp"
#include "guarded.hpp"

namespace dic::python {

namespace {

std::vector<ImageView> views_of_all(const std::vector<Array>& arrays) {
  std::vector<ImageView> views;
  for (const Array& array : arrays) views.push_back(view_of(array));
  return views;
}

Criterion method_of(const std::string& name) {
  const auto method = from_name<Criterion>(name);
  if (method && *method != Criterion::cross_correlation) return *method;
  throw UsageError("The method is zncc, ncc or ssd, got \"" + name + "\".");
}

std::unique_ptr<Guarded<Matcher>> make_matcher(const std::vector<Array>& templates,
                                               const std::vector<Array>& masks, const std::string& method,
                                               int max_matches, double threshold, double max_overlap,
                                               const std::vector<double>& rotations,
                                               const std::vector<double>& scales, const std::string& device,
                                               int threads) {
  const MatchOptions options = {.method = method_of(method),
                                .max_matches = max_matches,
                                .threshold = threshold,
                                .max_overlap = max_overlap,
                                .rotations = rotations,
                                .scales = scales,
                                .device = device,
                                .threads = threads,
                                .variant = {}};
  const std::vector<ImageView> views = views_of_all(templates), mask_views = views_of_all(masks);
  return std::make_unique<Guarded<Matcher>>(interruptible(
      [&](const std::stop_token&) { return std::make_unique<Matcher>(views, options, mask_views); }));
}

std::pair<std::vector<Match>, double> find(Guarded<Matcher>& guarded, const Array& image) {
  const ImageView view = view_of(image);
  MatchResult result =
      guarded.call([&](Matcher& matcher, const std::stop_token& stop) { return matcher.find(view, stop); });
  return {std::move(result.matches), result.best_score};
}

}  // namespace

void add_match(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Match>(module, "Match", "One place where a template was found.")
      .def_ro("template_index", &Match::template_index, "Index of the template among those given, from 0.")
      .def_ro("x", &Match::x, "x in the image of the centre of the template's top left pixel, px.")
      .def_ro("y", &Match::y, "y in the image of the centre of the template's top left pixel, px.")
      .def_ro("center_x", &Match::center_x, "x in the image of the template's centre, px.")
      .def_ro("center_y", &Match::center_y, "y in the image of the template's centre, px.")
      .def_ro("score", &Match::score, "Score at this sub-pixel position, from -1 to 1; 1 = equal.")
      .def_ro("rotation", &Match::rotation_deg, "Degrees, positive from x towards y.")
      .def_ro("scale", &Match::scale, "Factor by which the template is enlarged in the image.")
      .def_ro("width", &Match::width, "Width of the template as given, px.")
      .def_ro("height", &Match::height, "Height of the template as given, px.");
  nb::class_<Guarded<Matcher>>(module, "Matcher")
      .def(nb::new_(&make_matcher), "templates"_a, "masks"_a, "method"_a, "max_matches"_a, "threshold"_a,
           "max_overlap"_a, "rotations"_a, "scales"_a, "device"_a, "threads"_a)
      .def("find", &find, "image"_a,
           "The matches in an image [y, x], the best score first, and the best score seen anywhere.");
}

}  // namespace dic::python

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <dic/error.hpp>
#include <dic/match.hpp>
#include <memory>
#include <optional>
#include <tuple>

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

using Interval = std::optional<std::pair<double, double>>;

std::optional<PoseRange> range_of(const Interval& interval) {
  if (!interval) return std::nullopt;
  return PoseRange{interval->first, interval->second};
}

std::unique_ptr<Guarded<Matcher>> make_matcher(
    const std::vector<Array>& templates, const std::vector<Array>& masks, const std::string& method,
    int max_matches, double threshold, double max_overlap, const std::vector<double>& rotations,
    const std::vector<double>& scales, const std::string& device, int threads, const Interval& rotation_range,
    const Interval& scale_range, bool affine, bool ignore_polarity, int timeout_ms) {
  const MatchOptions options = {.method = method_of(method),
                                .max_matches = max_matches,
                                .threshold = threshold,
                                .max_overlap = max_overlap,
                                .rotations = rotations,
                                .scales = scales,
                                .rotation_range = range_of(rotation_range),
                                .scale_range = range_of(scale_range),
                                .affine = affine,
                                .ignore_polarity = ignore_polarity,
                                .timeout_ms = timeout_ms,
                                .device = device,
                                .threads = threads,
                                .variant = {}};
  const std::vector<ImageView> views = views_of_all(templates), mask_views = views_of_all(masks);
  return std::make_unique<Guarded<Matcher>>(interruptible(
      [&](const std::stop_token&) { return std::make_unique<Matcher>(views, options, mask_views); }));
}

std::tuple<std::vector<Match>, double, bool> find(Guarded<Matcher>& guarded, const Array& image,
                                                  const std::optional<Array>& image_mask) {
  const ImageView view = view_of(image), mask = image_mask ? view_of(*image_mask) : ImageView{};
  MatchResult result = guarded.call(
      [&](Matcher& matcher, const std::stop_token& stop) { return matcher.find(view, stop, mask); });
  return {std::move(result.matches), result.best_score, result.timed_out};
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
      .def_ro("height", &Match::height, "Height of the template as given, px.")
      .def_ro("sigma_x", &Match::sigma_x, "Standard deviation of center_x, px; only of a searched pose.")
      .def_ro("sigma_y", &Match::sigma_y, "Standard deviation of center_y, px; only of a searched pose.")
      .def_prop_ro(
          "sigma_rotation", [](const Match& match) { return match.sigma_rotation_deg; },
          "Standard deviation of the rotation, degrees; 0 if the rotation was given.")
      .def_ro("sigma_scale", &Match::sigma_scale,
              "Standard deviation of the scale; 0 if the scale was given.")
      .def_ro("visible", &Match::visible,
              "Share of the template's pixels that lie inside the image and fit; only of a searched pose.");
  nb::class_<Guarded<Matcher>>(module, "Matcher")
      .def(nb::new_(&make_matcher), "templates"_a, "masks"_a, "method"_a, "max_matches"_a, "threshold"_a,
           "max_overlap"_a, "rotations"_a, "scales"_a, "device"_a, "threads"_a,
           "rotation_range"_a = nb::none(), "scale_range"_a = nb::none(), "affine"_a = false,
           "ignore_polarity"_a = false, "timeout_ms"_a = 0)
      .def("find", &find, "image"_a, "image_mask"_a = nb::none(),
           "The matches in an image [y, x], the best score first, the best score seen anywhere, and whether "
           "the timeout ended the search.");
}

}  // namespace dic::python

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <dic/peak_finder.hpp>
#include <dic/refine.hpp>
#include <memory>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "guarded.hpp"

namespace dic::python {

namespace {

template <typename Enum>
Enum named(const std::string& what, const std::string& name) {
  if (const auto value = from_name<Enum>(name)) return *value;
  std::string names;
  for (const std::string& known : names_of<Enum>()) names += (names.empty() ? "" : ", ") + known;
  throw UsageError("The " + what + " is one of " + names + ", got \"" + name + "\".");
}

/// A request for whole images: it views the arrays.
class Request {
 public:
  Request(const Array& reference, const Array& search, const std::optional<Array>& mask,
          const std::string& pairing, const std::string& criterion, const std::array<int, 4>& shifts,
          const std::string& variant)
      : references_(views_of(reference)), windows_(views_of(search)) {
    if (references_.empty() || windows_.empty()) throw UsageError("There is no image to correlate.");
    if (mask) masks_ = views_of(*mask);
    reference_positions_ = positions(references_.size());
    window_positions_ = positions(windows_.size());
    request_.pairing = named<Pairing>("pairing", pairing);
    request_.criterion = named<Criterion>("criterion", criterion);
    request_.reference = {references_, reference_positions_, references_.front().size()};
    request_.search = {windows_, window_positions_, windows_.front().size()};
    request_.shifts = {shifts[0], shifts[1], shifts[2], shifts[3]};
    request_.reference_mask = masks_;
    request_.variant = variant;
  }

  const CorrelateRequest& request() const { return request_; }

 private:
  static std::vector<PatchPosition> positions(std::size_t count) {
    std::vector<PatchPosition> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i].image = static_cast<int>(i);
    return all;
  }

  std::vector<ImageView> references_, windows_, masks_;
  std::vector<PatchPosition> reference_positions_, window_positions_;
  CorrelateRequest request_;
};

template <typename T>
NumpyArray array_of(Surfaces surfaces) {
  const auto pairs = static_cast<std::size_t>(surfaces.pairs);
  const auto ny = static_cast<std::size_t>(surfaces.ny), nx = static_cast<std::size_t>(surfaces.nx);
  const auto* const data = reinterpret_cast<const T*>(surfaces.bytes.data());
  return numpy_of(std::move(surfaces), data, {pairs, ny, nx});
}

NumpyArray array_of(Surfaces surfaces) {
  switch (surfaces.type) {
    case SurfaceType::u32:
      return array_of<std::uint32_t>(std::move(surfaces));
    case SurfaceType::u64:
      return array_of<std::uint64_t>(std::move(surfaces));
    case SurfaceType::i64:
      return array_of<std::int64_t>(std::move(surfaces));
    case SurfaceType::f64:
      return array_of<double>(std::move(surfaces));
    case SurfaceType::f32:
      break;
  }
  return array_of<float>(std::move(surfaces));
}

std::unique_ptr<Guarded<Correlator>> make_correlator(const std::string& device, int threads) {
  const nb::gil_scoped_release others_run;
  return std::make_unique<Guarded<Correlator>>(std::make_unique<Correlator>(device, threads));
}

NumpyArray surfaces(Guarded<Correlator>& guarded, const Array& reference, const Array& search,
                    const std::string& pairing, const std::string& criterion,
                    const std::array<int, 4>& shifts, const std::optional<Array>& mask,
                    const std::string& variant) {
  const Request request(reference, search, mask, pairing, criterion, shifts, variant);
  return array_of(guarded.call([&](Correlator& correlator, const std::stop_token&) {
    Surfaces out;
    correlator.surfaces(request.request(), out);
    return out;
  }));
}

/// To a fraction of a pixel: the peaks of ssd are minima.
std::array<double, 2> offset_of(const Peak& peak, Criterion criterion) {
  std::array<float, 9> values;
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = criterion == Criterion::ssd ? -peak.neighbourhood[k] : peak.neighbourhood[k];
  return peak_offset(values);
}

nb::dict arrays_of(const std::vector<Peak>& peaks, Criterion criterion) {
  std::vector<int> dx, dy;
  std::vector<float> score, second_score;
  std::vector<double> sub_dx, sub_dy;
  std::vector<std::uint8_t> found, at_border;
  for (const Peak& peak : peaks) {
    const auto offset = offset_of(peak, criterion);
    dx.push_back(peak.dx);
    dy.push_back(peak.dy);
    sub_dx.push_back(peak.dx + offset[0]);
    sub_dy.push_back(peak.dy + offset[1]);
    score.push_back(peak.score);
    second_score.push_back(peak.second_score);
    found.push_back(peak.found);
    at_border.push_back(peak.at_border);
  }
  nb::dict out;
  out["dx"] = numpy_of(std::move(dx));
  out["dy"] = numpy_of(std::move(dy));
  out["subpixel_dx"] = numpy_of(std::move(sub_dx));
  out["subpixel_dy"] = numpy_of(std::move(sub_dy));
  out["score"] = numpy_of(std::move(score));
  out["second_score"] = numpy_of(std::move(second_score));
  out["found"] = numpy_of(std::move(found));
  out["at_border"] = numpy_of(std::move(at_border));
  return out;
}

nb::dict peaks(Guarded<Correlator>& guarded, const Array& reference, const Array& search,
               const std::string& pairing, const std::string& criterion, const std::array<int, 4>& shifts,
               const std::optional<Array>& mask, const std::string& variant) {
  const Request request(reference, search, mask, pairing, criterion, shifts, variant);
  const std::vector<Peak> found = guarded.call([&](Correlator& correlator, const std::stop_token&) {
    std::vector<Peak> out;
    correlator.peaks(request.request(), out);
    return out;
  });
  return arrays_of(found, request.request().criterion);
}

std::unique_ptr<Guarded<PeakFinder>> make_finder(const std::string& device, int threads) {
  const nb::gil_scoped_release others_run;
  return std::make_unique<Guarded<PeakFinder>>(std::make_unique<PeakFinder>(device, threads));
}

/// One array [pair, rank] of a member of all peaks.
template <typename T, typename Of>
NumpyArray table_of(const std::vector<RankedPeak>& peaks, int count, Of of) {
  std::vector<T> values;
  for (const RankedPeak& peak : peaks) values.push_back(static_cast<T>(peak.*of));
  const auto ranks = static_cast<std::size_t>(count), pairs = values.size() / ranks;
  const T* const data = values.data();
  return numpy_of(std::move(values), data, {pairs, ranks});
}

nb::dict find(Guarded<PeakFinder>& guarded, const Array& reference, const Array& search,
              const std::string& pairing, const std::string& criterion, const std::array<int, 4>& shifts,
              const std::tuple<int, int, std::optional<float>>& options, const std::optional<Array>& mask) {
  const Request request(reference, search, mask, pairing, criterion, shifts, "");
  const PeakOptions wanted{std::get<0>(options), std::get<1>(options), std::get<2>(options)};
  const std::vector<RankedPeak> found = guarded.call([&](PeakFinder& finder, const std::stop_token& stop) {
    CorrelateRequest stoppable = request.request();
    stoppable.stop = stop;
    std::vector<RankedPeak> out;
    finder.find(stoppable, wanted, out);
    return out;
  });
  nb::dict out;
  out["found"] = table_of<std::uint8_t>(found, wanted.count, &RankedPeak::found);
  out["at_border"] = table_of<std::uint8_t>(found, wanted.count, &RankedPeak::at_border);
  out["dx"] = table_of<int>(found, wanted.count, &RankedPeak::dx);
  out["dy"] = table_of<int>(found, wanted.count, &RankedPeak::dy);
  out["subpixel_dx"] = table_of<double>(found, wanted.count, &RankedPeak::x);
  out["subpixel_dy"] = table_of<double>(found, wanted.count, &RankedPeak::y);
  out["score"] = table_of<float>(found, wanted.count, &RankedPeak::score);
  out["next_score"] = table_of<float>(found, wanted.count, &RankedPeak::next_score);
  out["sigma_dx"] = table_of<double>(found, wanted.count, &RankedPeak::sigma_x);
  out["sigma_dy"] = table_of<double>(found, wanted.count, &RankedPeak::sigma_y);
  return out;
}

}  // namespace

void add_correlate(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Guarded<Correlator>>(module, "Correlator")
      .def(nb::new_(&make_correlator), "device"_a = "cpu", "threads"_a = 0)
      .def("surfaces", &surfaces, "reference"_a, "search"_a, "pairing"_a, "criterion"_a, "shifts"_a,
           "mask"_a = nb::none(), "variant"_a = "", "Values [pair, dy, dx].")
      .def("peaks", &peaks, "reference"_a, "search"_a, "pairing"_a, "criterion"_a, "shifts"_a,
           "mask"_a = nb::none(), "variant"_a = "", "The best shift of every pair: arrays [pair] by name.")
      .def_prop_ro(
          "variant",
          [](Guarded<Correlator>& self) {
            return self.ask([](Correlator& of) { return of.last_plan().variant; });
          },
          "Implementation that the last call used.");
  nb::class_<Guarded<PeakFinder>>(module, "PeakFinder")
      .def(nb::new_(&make_finder), "device"_a = "cpu", "threads"_a = 0)
      .def(
          "find", &find, "reference"_a, "search"_a, "pairing"_a, "criterion"_a, "shifts"_a, "options"_a,
          "mask"_a = nb::none(),
          "The best peaks of every pair: arrays [pair, rank] by name. options: count, distance, least score.")
      .def_prop_ro(
          "variant",
          [](Guarded<PeakFinder>& self) { return self.ask([](PeakFinder& of) { return of.variant(); }); },
          "Implementation that the last call used.");
  module.def(
      "correlate_variants",
      [] {
        std::vector<std::string> names;
        for (const CorrelateVariant& variant : correlate_variants()) names.push_back(variant.name);
        return names;
      },
      "Names of the implementations of the correlation in this build.");
}

}  // namespace dic::python

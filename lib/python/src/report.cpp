#include "view/report.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dic/error.hpp>
#include <dic/result.hpp>
#include <map>

#include "bindings.hpp"

namespace dic::python {

namespace {

namespace nb = nanobind;
using Texts = std::vector<std::pair<std::string, std::string>>;

/// Reads the description from the names of the options of `dic report`.
app::TestDescription description_of(const Texts& texts) {
  using app::TestDescription;
  static const std::map<std::string, std::string TestDescription::*> kMembers = {
      {"title", &TestDescription::title},          {"note", &TestDescription::note},
      {"specimen", &TestDescription::specimen},    {"camera_text", &TestDescription::camera},
      {"lens_text", &TestDescription::lens},       {"light_text", &TestDescription::lighting},
      {"pattern_text", &TestDescription::pattern}, {"operator", &TestDescription::operated_by},
  };
  TestDescription description;
  for (const auto& [name, text] : texts) description.*kMembers.at(name) = text;
  return description;
}

nb::bytes report(const std::filesystem::path& path, const std::vector<std::string>& images,
                 const std::vector<int>& frames, const Texts& texts) {
  const std::string html = [&] {
    const nb::gil_scoped_release others_run;
    const app::NamedImages named = images.empty() ? app::NamedImages() : app::NamedImages(images);
    return app::report_html(Result(path), description_of(texts), named, frames);
  }();
  return nb::bytes(html.data(), html.size());
}

}  // namespace

void add_report(nb::module_& module) {
  using namespace nb::literals;
  module.def("report", &report, "result"_a, "images"_a, "frames"_a, "texts"_a,
             "The HTML file of `dic report`, as bytes. texts: by the names of its options.");
}

}  // namespace dic::python

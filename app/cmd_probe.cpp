#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "commands.hpp"
#include "figures/cairo_canvas.hpp"
#include "interruption.hpp"
#include "track_flags.hpp"
#include "track_report.hpp"

namespace dic::app {
namespace {

constexpr double kResolution = 1.5;  // of history.png, px per unit of the canvas

constexpr const char* kProbeExamples =
    "Examples:\n"
    "  dic probe dic_out --point 120,80 --extensometer 100,40,100,360     values over the frames, into "
    "dic_probe/\n"
    "  dic probe dic_out --line 40,200,360,200                            values along a line, frame by "
    "frame\n"
    "  dic probe dic_out --area \"80,60 200,60 200,180 80,180\"             means, standard deviations, "
    "counts\n"
    "  dic probe dic_out --extensometer 100,40,100,360 --loads machine.csv --section 24.5     stress and "
    "strain\n"
    "\n";

struct ProbeFlags {
  std::string result, output = "dic_probe", loads, load_column;
  ProbeRequest request;
  double section = 0;
  bool force = false, quiet = false;
};

std::vector<double> numbers(const std::string& option, const std::string& text, std::size_t count,
                            const std::string& what) {
  std::vector<double> values;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    double value = 0;
    if (!CLI::detail::lexical_cast(part, value) || !std::isfinite(value)) break;
    values.push_back(value);
  }
  if (values.size() != count || CLI::detail::split(text, ',').size() != count)
    throw CLI::ValidationError(option, "needs " + what + ", got \"" + text + "\"");
  return values;
}

/// Adds an option that may be repeated; each of its values is passed to `add`.
template <typename Add>
void add_place(CLI::App& command, const std::string& name, const std::string& type,
               const std::string& description, const Add& add) {
  const auto set = [add](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) add(text);
  };
  command.add_option_function<std::vector<std::string>>(name, set, description + "; may be repeated")
      ->type_name(type)
      ->allow_extra_args(false);
}

Roi::Polygon corners(const std::string& text) {
  Roi::Polygon polygon;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::vector<double> xy = numbers("--area", word, 2, "corners as \"x,y x,y ...\"");
    polygon.push_back({xy[0], xy[1]});
  }
  if (polygon.size() < 3)
    throw CLI::ValidationError("--area",
                               "needs at least three corners as \"x,y x,y ...\", got \"" + text + "\"");
  return polygon;
}

void add_places(CLI::App& command, ProbeRequest& request) {
  command.option_defaults()->group("Places, in px of the reference image");
  add_place(command, "--point", "x,y", "Values at a point", [&request](const std::string& text) {
    const std::vector<double> xy = numbers("--point", text, 2, "two numbers x,y");
    request.points.push_back({xy[0], xy[1]});
  });
  add_place(command, "--extensometer", "x1,y1,x2,y2",
            "Change of the distance between two points, with two cameras in space",
            [&request](const std::string& text) {
              request.extensometers.push_back(ends_of("--extensometer", text));
            });
  add_place(command, "--line", "x1,y1,x2,y2",
            "Values along a line, with two cameras also its bending and flatness",
            [&request](const std::string& text) { request.lines.push_back(ends_of("--line", text)); });
  add_place(command, "--area", "\"x,y x,y ...\"", "Means over a polygon",
            [&request](const std::string& text) { request.areas.push_back(corners(text)); });
}

/// A column of the summary.
struct Column {
  std::string name;
  std::vector<double> values;
};

/// Columns of the printed summary: loads, displacements of points, and strains.
std::vector<Column> columns(const ProbeHistory& history) {
  std::vector<Column> columns;
  if (!history.loads.empty()) columns.push_back({history.load_name, history.loads});
  if (!history.stresses().empty()) columns.push_back({"stress [MPa]", history.stresses()});
  const auto add = [&](const std::string& name, const auto& value) {
    Column& column = columns.emplace_back(Column{name, {}});
    for (const ProbeFrame& frame : history.frames) column.values.push_back(value(frame));
  };
  for (std::size_t k = 0; k < history.request.points.size(); ++k) {
    const std::string name = "P" + std::to_string(k + 1) + " ",
                      unit = " [" + history.extensometer_unit() + "]";
    for (const FieldArray& array : history.displacements())
      add(name + std::string(array.name) + unit,
          [&](const ProbeFrame& f) { return f.points[k].values[array.name]; });
    for (const FieldArray& array : kNormalStrains)
      add(name + std::string(array.name),
          [&](const ProbeFrame& f) { return f.points[k].values[array.name]; });
  }
  for (std::size_t k = 0; k < history.request.extensometers.size(); ++k) {
    const std::string name = "E" + std::to_string(k + 1) + " ";
    add(name + "strain", [k](const ProbeFrame& f) { return f.extensometers[k].strain; });
    add(name + "sigma", [k](const ProbeFrame& f) { return f.extensometers[k].sigma_strain; });
  }
  if (history.has_two_cameras)
    for (std::size_t k = 0; k < history.request.lines.size(); ++k) {
      const std::string name = "L" + std::to_string(k + 1) + " ";
      add(name + "bending [mm]", [k](const ProbeFrame& f) { return f.line_shapes[k].bending; });
      add(name + "flatness [mm]", [k](const ProbeFrame& f) { return f.line_shapes[k].flatness; });
    }
  for (std::size_t k = 0; k < history.request.areas.size(); ++k) {
    const std::string name = "A" + std::to_string(k + 1) + " mean ";
    for (const FieldArray& array : kNormalStrains)
      add(name + std::string(array.name), [&](const ProbeFrame& f) { return f.areas[k].mean[array.name]; });
  }
  return columns;
}

void print_history(const ProbeHistory& history) {
  constexpr std::size_t kMostColumns = 6;
  const std::vector<Column> all = columns(history);
  const std::size_t shown = std::min(all.size(), kMostColumns);
  if (shown == 0) return;
  std::printf("%-24s", history.time_unit == "s" ? "time [s]" : "file");
  for (std::size_t k = 0; k < shown; ++k) std::printf(" %13s", all[k].name.c_str());
  std::printf("\n");
  for (std::size_t f = 0; f < history.frames.size(); ++f) {
    if (history.time_unit == "s")
      std::printf("%-24g", history.frames[f].time);
    else
      std::printf("%-24s", printable(history.frames[f].file).c_str());
    for (std::size_t k = 0; k < shown; ++k)
      std::isnan(all[k].values[f]) ? std::printf(" %13s", "-") : std::printf(" %13.5g", all[k].values[f]);
    std::printf("\n");
  }
  if (shown < all.size()) std::printf("More columns are in history.csv.\n");
}

/// Prints why a place has no values, with the number of frames that lack them.
void warn(const std::string& place, int missing, const std::string& problem, std::size_t frames) {
  if (missing > 0)
    std::cerr << "dic: " << place << " has no values in " << missing << " of " << frames
              << " frames: " << problem << ".\n";
}

template <typename ProblemOf>
void warn_of(const ProbeHistory& history, const char* kind, std::size_t count, const ProblemOf& problem_of) {
  for (std::size_t k = 0; k < count; ++k) {
    int missing = 0;
    std::string first;
    for (const ProbeFrame& frame : history.frames) {
      const std::string& problem = problem_of(frame, k);
      if (problem.empty()) continue;
      if (missing++ == 0) first = problem;
    }
    warn(kind + std::to_string(k + 1), missing, first, history.frames.size());
  }
}

void run_probe(ProbeFlags& flags) {
  const std::filesystem::path folder = flags.output;
  if (!flags.force && std::filesystem::exists(folder / "probe.json"))
    throw FileError("There are values in " + flags.output + ": give another folder with -o, or --force.");
  if (flags.section > 0 && flags.loads.empty())
    throw UsageError("--section makes stress of loads: give their table with --loads.");
  std::optional<LoadTable> loads;
  if (!flags.loads.empty()) loads = read_loads(flags.loads, flags.load_column);
  const Interruption interruption;
  ProbeHistory history = [&] {
    ProgressLine line(!flags.quiet);
    return probe_result(
        Result(flags.result), flags.request, [&](const Progress& progress) { line.show(progress); },
        interruption.token());
  }();
  if (loads) add_loads(history, *loads, flags.section);
  if (!history.load_note.empty()) std::cerr << "dic: " << history.load_note << "\n";
  const std::vector<std::string> names =
      write_probe(folder, history, figures::canvases(figures::Format::png, kResolution));
  warn_of(
      history, "point ", flags.request.points.size(),
      [](const ProbeFrame& frame, std::size_t k) -> const std::string& { return frame.points[k].problem; });
  warn_of(history, "extensometer ", flags.request.extensometers.size(),
          [](const ProbeFrame& frame, std::size_t k) -> const std::string& {
            return frame.extensometers[k].problem;
          });
  if (flags.quiet) return;
  print_history(history);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  std::printf("\n%s %s in %s\n", list.c_str(), names.size() > 1 ? "are" : "is",
              printable(flags.output).c_str());
}

}  // namespace

std::array<Position, 2> ends_of(const std::string& option, const std::string& text) {
  const std::vector<double> n = numbers(option, text, 4, "four numbers x1,y1,x2,y2");
  return {Position{n[0], n[1]}, Position{n[2], n[3]}};
}

void add_probe(CLI::App& app) {
  auto flags = std::make_shared<ProbeFlags>();
  CLI::App* command = app.add_subcommand(
      "probe", "Extract values over time from a result: points, extensometers, lines, areas");
  command->option_defaults()->always_capture_default();
  command->add_option("RESULT", flags->result, "Folder of dic track or dic stereo, or its result.vtkhdf")
      ->required()
      ->type_name("")
      ->default_str("");
  add_places(*command, flags->request);
  command->option_defaults()->group("Loads");
  command
      ->add_option("--loads", flags->loads,
                   "Table of loads, as machines export it; rows are assigned by a column frame or time, or "
                   "follow the order of the frames")
      ->type_name("FILE");
  command
      ->add_option("--load-column", flags->load_column,
                   "Name of the column of loads; default: the only one that is a force by its name or unit")
      ->type_name("NAME");
  command
      ->add_option("--section", flags->section,
                   "Cross section, mm2, for stress in MPa; the loads must be forces")
      ->type_name("MM2")
      ->check(CLI::NonNegativeNumber);
  command->option_defaults()->group("Output");
  command->add_option("-o,--output", flags->output, "Folder of the tables")->type_name("DIR");
  command->add_flag("--force", flags->force, "Replace earlier tables in that folder");
  command->add_flag("--quiet", flags->quiet, "Print errors and warnings only");
  command->footer(kProbeExamples + guide("file-formats.md") + " has the columns of the tables.");
  command->callback([flags] { run_probe(*flags); });
}

}  // namespace dic::app

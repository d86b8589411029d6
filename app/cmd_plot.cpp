#include <cstdio>
#include <dic/error.hpp>
#include <memory>

#include "commands.hpp"
#include "figures/plot.hpp"

namespace dic::app {
namespace {

using figures::Format;
using figures::PlotJob;

constexpr const char* kPlotExamples =
    "Examples:\n"
    "  dic plot dic_out --field exx --frames 10,20            two figures, PNG, 300 dots per inch\n"
    "  dic plot dic_out --field eyy --format pdf --width 85   a column of a paper, the last frame\n"
    "  dic plot dic_out --field magnitude --vectors --range 0,5 --cmap cividis\n"
    "\n";

struct PlotFlags {
  PlotJob job;
  std::vector<double> range;
  std::vector<std::string> frames;
  bool cells = false, no_outline = false, no_scale_bar = false, no_image = false, quiet = false;
};

std::vector<int> frame_numbers(const std::vector<std::string>& words, bool& all) {
  std::vector<int> numbers;
  for (const std::string& word : words) {
    int number = 0;
    if (word == "all")
      all = true;
    else if (CLI::detail::lexical_cast(word, number) && number != 0)
      numbers.push_back(number);
    else
      throw CLI::ValidationError("--frames",
                                 "needs all, or numbers from 1 (-1 is the last), got \"" + word + "\"");
  }
  return numbers;
}

void run_plot(PlotFlags& flags) {
  PlotJob& job = flags.job;
  if (!flags.range.empty()) job.figure.range = {flags.range[0], flags.range[1]};
  job.frames = frame_numbers(flags.frames, job.all_frames);
  job.figure.smooth = !flags.cells;
  job.figure.outline = !flags.no_outline;
  job.figure.scale_bar = !flags.no_scale_bar;
  job.background = !flags.no_image;
  const figures::PlotSummary summary = figures::plot(job);
  if (summary.without_image > 0)
    std::fprintf(stderr,
                 "dic: warning: %d frames have no image under the field. %s --images names them, --no-image "
                 "leaves them out.\n",
                 summary.without_image, summary.image_problem.c_str());
  if (flags.quiet) return;
  if (summary.files.size() == 1)
    std::printf("Wrote %s.\n", summary.files.front().c_str());
  else
    std::printf("Wrote %zu figures into %s, %s to %s.\n", summary.files.size(), job.output.c_str(),
                summary.files.front().filename().c_str(), summary.files.back().filename().c_str());
}

void add_content(CLI::App& command, PlotFlags& flags) {
  PlotJob& job = flags.job;
  command.option_defaults()->group("Content");
  command
      .add_option("--field", job.fields,
                  "u, v, magnitude, exx, eyy, exy, e1, e2, von_mises, zncc, sigma_u, ...; several by commas")
      ->delimiter(',')
      ->type_name("NAME");
  command.add_option("--frames", flags.frames, "Numbers from 1, -1 is the last; or all")
      ->delimiter(',')
      ->type_name("N,...")
      ->default_str("-1");
  command
      .add_option("--range", flags.range,
                  "Of the colours, in the unit of the field; else 0.5-99.5 % of all frames")
      ->delimiter(',')
      ->expected(2)
      ->type_name("MIN,MAX");
  command.add_flag("--own-range", job.own_range, "A range for every frame, not one for the sequence");
  add_choice(command, "--cmap", job.figure.colour_map, "Colours; auto: blue-red around zero, else viridis");
  command.add_option("--opacity", job.figure.opacity, "Of the colours over the image, 0 to 1");
  command.add_flag("--cells", flags.cells, "A cell per point, not smooth between them");
  command.add_flag("--contours", job.figure.contours, "Lines of equal value at the numbers of the legend");
  command.add_flag("--vectors", job.figure.vectors, "Arrows of the displacement");
  command.add_flag("--no-outline", flags.no_outline, "No line around the region of interest");
  command.add_flag("--no-scale-bar", flags.no_scale_bar, "No scale bar");
  command
      .add_option("--heading", job.heading, "Above the image: auto (name, time or number), none, or a text")
      ->type_name("TEXT");
  command
      .add_option("--images", job.images, "The frames, where they are not found as dic track was given them")
      ->type_name("FILE ...");
  command.add_flag("--no-image", flags.no_image, "White under the field");
}

void add_page(CLI::App& command, PlotFlags& flags) {
  PlotJob& job = flags.job;
  command.option_defaults()->group("Files");
  command.add_option("-o,--output", job.output, "Folder of the figures")->type_name("DIR");
  command.add_flag("--force", job.force, "Replace figures that are there");
  add_choice(command, "--format", job.format, "Of the files");
  command.add_option("--width", job.width_mm, "Of a figure, mm")->type_name("MM");
  command.add_option("--font-size", job.font_pt, "Of the text, pt")->type_name("PT");
  command.add_option("--font", job.font, "Family of the font");
  command.add_option("--dpi", job.dots_per_inch, "Dots per inch of PNG files and of the image in the others");
  command.add_option("--threads", job.threads, "CPU threads; 0 = one per core")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--quiet", flags.quiet, "Print errors and warnings only");
}

}  // namespace

void add_plot(CLI::App& app) {
  auto flags = std::make_shared<PlotFlags>();
  CLI::App* command = app.add_subcommand("plot", "Figures of a result, for a paper");
  command->option_defaults()->always_capture_default();
  command->add_option("RESULT", flags->job.result, "result.vtkhdf, or the folder that holds it")
      ->required()
      ->type_name("");
  add_content(*command, *flags);
  add_page(*command, *flags);
  command->footer(kPlotExamples + guide("user-guide.md") + " shows what they look like.");
  command->callback([flags] { run_plot(*flags); });
}

}  // namespace dic::app

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
    "  dic plot dic_out --field exx --strain-unit % --frames 10,20    two figures, PNG, 300 dots per inch\n"
    "  dic plot dic_out --field eyy --format pdf --width 85   for one column of a paper; the last frame\n"
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
  for (const std::string& name : summary.left_out)
    std::fprintf(stderr,
                 "dic: warning: %s is left out: it has names instead of numbers; see it with dic view.\n",
                 name.c_str());
  if (summary.without_image > 0)
    std::fprintf(
        stderr,
        "dic: warning: %d frames have no image under the field. %s Name the images with --images, or "
        "leave them out with --no-image.\n",
        summary.without_image, printable(summary.image_problem).c_str());
  if (flags.quiet) return;
  if (summary.files.size() == 1)
    std::printf("Wrote %s.\n", printable(summary.files.front().string()).c_str());
  else
    std::printf("Wrote %zu figures into %s, %s to %s.\n", summary.files.size(), job.output.c_str(),
                printable(summary.files.front().filename().string()).c_str(),
                printable(summary.files.back().filename().string()).c_str());
}

void add_content(CLI::App& command, PlotFlags& flags) {
  PlotJob& job = flags.job;
  command.option_defaults()->group("Content");
  command
      .add_option("--field", job.fields,
                  "Quantities to draw, separated by commas: u, v, magnitude, exx, eyy, exy, e1, e2, "
                  "von_mises, zncc, sigma_u, ..., with two cameras X, Y, Z, U, V, W, ...")
      ->delimiter(',')
      ->type_name("NAME")
      ->default_str("u,v,exx,eyy,exy, or Z,U,V,W,exx,eyy,exy");
  command.add_option("--frames", flags.frames, "Numbers of frames from 1, -1 = the last; or all")
      ->delimiter(',')
      ->type_name("N,...")
      ->default_str("-1");
  command
      .add_option(
          "--range", flags.range,
          "Range of the colours, in the unit of the field; default: 0.5th to 99.5th percentile of all frames")
      ->delimiter(',')
      ->expected(2)
      ->type_name("MIN,MAX")
      ->default_str("");
  command.add_flag("--own-range", job.own_range,
                   "Choose a range for every frame, instead of one for the sequence");
  add_choice(command, "--strain-unit", job.strain_unit, "Unit of strains, also in --range");
  add_choice(command, "--cmap", job.figure.colour_map,
             "Colour map; auto: blue-red for values around zero, viridis otherwise");
  command.add_option("--opacity", job.figure.opacity, "Opacity of the colours over the image, 0 to 1");
  command.add_flag("--cells", flags.cells, "Draw one cell per point, without smoothing between points");
  command.add_flag("--contours", job.figure.contours,
                   "Draw lines of equal value at the numbers of the legend");
  command.add_flag("--vectors", job.figure.vectors, "Draw arrows of the displacement");
  command.add_flag("--no-outline", flags.no_outline, "Draw no line around the region of interest");
  command.add_flag("--no-scale-bar", flags.no_scale_bar, "Draw no scale bar");
  command
      .add_option("--heading", job.heading,
                  "Heading above the image: auto (name, time or number), none, or a text")
      ->type_name("TEXT");
  command.add_option("--images", job.images, "Frames, if they are no longer where dic track read them")
      ->type_name("FILE ...")
      ->default_str("");
  command.add_flag("--no-image", flags.no_image, "Draw the field on white, without the image");
}

void add_page(CLI::App& command, PlotFlags& flags) {
  PlotJob& job = flags.job;
  command.option_defaults()->group("Files");
  command.add_option("-o,--output", job.output, "Folder of the figures")->type_name("DIR");
  command.add_flag("--force", job.force, "Replace existing figures");
  add_choice(command, "--format", job.format, "Format of the files");
  command.add_option("--width", job.width_mm, "Width of a figure, mm")->type_name("MM");
  command.add_option("--font-size", job.font_pt, "Size of the text, pt")->type_name("PT");
  command.add_option("--font", job.font, "Font family");
  command.add_option("--dpi", job.dots_per_inch, "Dots per inch of PNG files and of the image in the others");
  command.add_option("--threads", job.threads, "CPU threads; 0 = one per core")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--quiet", flags.quiet, "Print errors and warnings only");
}

}  // namespace

void add_plot(CLI::App& app) {
  auto flags = std::make_shared<PlotFlags>();
  CLI::App* command = app.add_subcommand("plot", "Draw figures of a result for a paper");
  command->option_defaults()->always_capture_default();
  command->add_option("RESULT", flags->job.result, "Folder of dic track, or its result.vtkhdf")
      ->required()
      ->type_name("");
  add_content(*command, *flags);
  add_page(*command, *flags);
  command->footer(kPlotExamples + guide("user-guide.md") + " shows what they look like.");
  command->callback([flags] { run_plot(*flags); });
}

}  // namespace dic::app

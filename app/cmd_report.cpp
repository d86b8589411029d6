#include <cstdio>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "view/report.hpp"
#include "view/session.hpp"

namespace dic::app {
namespace {

constexpr const char* kReportExamples =
    "Examples:\n"
    "  dic report dic_out                                            report.html\n"
    "  dic report dic_out -o test7.html --frames 1,10,20 --specimen \"Al 2024, 3 mm\" --camera-text \"5 MP, "
    "12 bit\"\n"
    "\n";

struct ReportFlags {
  std::string result, output = "report.html";
  std::vector<std::string> images;
  std::vector<int> frames;
  TestDescription description;
  bool no_image = false, force = false, quiet = false;
};

void run_report(const ReportFlags& flags) {
  const Result result(flags.result);
  if (!flags.force && std::filesystem::exists(flags.output))
    throw FileError(flags.output + " already exists: give another name with -o, or --force.");
  const std::vector<std::string> arguments = flags.images.empty() ? images_of(result) : flags.images;
  const NamedImages images = flags.no_image || arguments.empty() ? NamedImages() : NamedImages(arguments);
  const std::string html = report_html(result, flags.description, images, flags.frames);
  write_text_file(flags.output, html);
  if (flags.quiet) return;
  if (images.empty() && !flags.no_image)
    std::fprintf(stderr,
                 "dic: the images were not found: name them after the result to show the reference.\n");
  std::printf("%s: %.1f MB; any browser opens it, also without a network\n", printable(flags.output).c_str(),
              static_cast<double>(html.size()) * 1e-6);
}

}  // namespace

void add_report(CLI::App& app) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand(
      "report", "Write a result as one HTML file: fields, curves, settings, table of frames");
  command->option_defaults()->always_capture_default();
  command->add_option("RESULT", flags->result, "Folder of dic track, or its result.vtkhdf")
      ->required()
      ->type_name("");
  command
      ->add_option("IMAGES", flags->images,
                   "Images of the test, if they are no longer where dic track read them")
      ->type_name("")
      ->default_str("");
  command->add_option("-o,--output", flags->output, "HTML file to write")->type_name("FILE");
  command->add_flag("--force", flags->force, "Replace an existing file");
  command->add_option("--frames", flags->frames, "Numbers of the frames, from 1; default: all")
      ->delimiter(',')
      ->type_name("N,N,...")
      ->default_str("");
  command->add_flag("--no-image", flags->no_image, "Leave the reference image out");
  command->add_flag("--quiet", flags->quiet, "Print errors only");
  command->option_defaults()->group("Description of the test");
  TestDescription& say = flags->description;
  const auto add_text = [&](const char* name, std::string& target, const char* description) {
    command->add_option(name, target, description)->type_name("TEXT");
  };
  add_text("--title", say.title, "Title");
  add_text("--note", say.note, "Text below the title");
  add_text("--specimen", say.specimen, "Material, size, load");
  add_text("--operator", say.operated_by, "Who made the test");
  add_text("--camera-text", say.camera, "Camera: model, pixels, bits, exposure");
  add_text("--lens-text", say.lens, "Lens: model, focal length, aperture, distance");
  add_text("--light-text", say.lighting, "Lighting");
  add_text("--pattern-text", say.pattern, "How the pattern was made");
  command->footer(std::string(kReportExamples) + guide("user-guide.md") + " describes its contents.");
  command->callback([flags] { run_report(*flags); });
}

}  // namespace dic::app

#include <cstdio>
#include <dic/error.hpp>
#include <dic/result.hpp>
#include <dic/result_strain.hpp>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "interruption.hpp"
#include "track_report.hpp"

namespace dic::app {
namespace {

constexpr const char* kStrainExamples =
    "Examples:\n"
    "  dic strain dic_out --strain-window 9 -o wider            a second result, with a larger strain gauge\n"
    "  dic strain dic_out --strain-measure hencky --in-place    true strain, in the result itself\n"
    "\n";

struct StrainFlags {
  ResultStrainJob job;
  bool in_place = false, quiet = false;
};

void print_written(const ResultStrainJob& job, const std::filesystem::path& written) {
  const Result result(written);
  const int gauge = (job.strain.window - 1) * result.grid().step + result.info().subset;
  std::printf("Strain (%s, window %d points, virtual strain gauge %d px) of %d frames is in %s\n",
              std::string(to_string(job.strain.measure)).c_str(), job.strain.window, gauge,
              result.frame_count(), printable(written.string()).c_str());
}

void run_strain(const CLI::App& command, StrainFlags& flags) {
  ResultStrainJob& job = flags.job;
  if (flags.in_place == !job.output.empty())
    throw UsageError("Say where the strain goes: a folder with -o, or --in-place.");
  const ResultStrain basis = strain_basis(Result(job.result));
  const StrainOptions before = Result(job.result).info().strain;
  if (command.count("--strain-window") == 0) job.strain.window = before.window;
  if (command.count("--strain-measure") == 0) job.strain.measure = before.measure;
  job.command = command_line();
  const Interruption interruption;
  const std::filesystem::path written = [&] {
    ProgressLine line(!flags.quiet);
    return write_result_strain(
        job, [&](const Progress& progress) { line.show(progress); }, interruption.token());
  }();
  if (!basis.no_sigma_reason.empty()) std::cerr << "dic: " << basis.no_sigma_reason << '\n';
  if (!flags.quiet) print_written(job, written);
}

}  // namespace

void add_strain(CLI::App& app) {
  auto flags = std::make_shared<StrainFlags>();
  CLI::App* command = app.add_subcommand(
      "strain", "Compute another strain from the displacements of a result: window, measure");
  command->option_defaults()->always_capture_default();
  ResultStrainJob& job = flags->job;
  command->add_option("RESULT", job.result, "Folder of dic track, or its result.vtkhdf")
      ->required()
      ->type_name("")
      ->default_str("");
  command->add_option("--strain-window", job.strain.window, "Side of the strain window, points, odd")
      ->default_str("as in the result");
  add_choice(*command, "--strain-measure", job.strain.measure, "Measure of strain")
      ->default_str("as in the result");
  command->add_option("-o,--output", job.output, "Folder of a second result")
      ->type_name("DIR")
      ->default_str("");
  command->add_flag("--in-place", flags->in_place, "Replace the strain in RESULT itself");
  command->add_flag("--force", job.force, "Replace an earlier result in the folder of -o");
  command->add_option("--threads", job.threads, "CPU threads; 0 = one per core")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--quiet", flags->quiet, "Print errors and warnings only");
  command->footer(kStrainExamples + guide("user-guide.md") + " says how to choose the strain window.");
  command->callback([command, flags] { run_strain(*command, *flags); });
}

}  // namespace dic::app

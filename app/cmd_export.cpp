#include <cstdio>
#include <dic/error.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "export/export.hpp"
#include "interruption.hpp"
#include "track_report.hpp"

namespace dic::app {
namespace {

using exporting::ExportJob;
using exporting::Format;

constexpr const char* kExportExamples =
    "Examples:\n"
    "  dic export dic_out --to csv --frames 10 --arrays u,v,exx,eyy      a table for a spreadsheet: "
    "table.csv\n"
    "  dic export dic_out --to mat -o test.mat                           for MATLAB, Octave and SciPy\n"
    "  dic export dic_out --to npz                                       for NumPy\n"
    "\n";

struct ExportFlags {
  ExportJob job;
  bool force = false, quiet = false;
};

void run_export(ExportFlags& flags) {
  ExportJob& job = flags.job;
  if (job.output.empty()) job.output = "table." + std::string(ending_of(job.format));
  refuse_input("-o", job.output, {Result(job.result).path()});
  if (!flags.force && std::filesystem::exists(job.output))
    throw FileError(job.output.string() + " already exists: give another name with -o, or --force.");
  const Interruption interruption;
  {
    ProgressLine line(!flags.quiet);
    export_result(
        job, [&](const Progress& progress) { line.show(progress); }, interruption.token());
  }
  if (!flags.quiet) std::printf("%s was written.\n", printable(job.output.string()).c_str());
}

}  // namespace

void add_export(CLI::App& app) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = app.add_subcommand("export", "Convert a result to CSV, NumPy, MATLAB or netCDF files");
  command->option_defaults()->always_capture_default();
  ExportJob& job = flags->job;
  command->add_option("RESULT", job.result, "Folder of dic track, or its result.vtkhdf")
      ->required()
      ->type_name("")
      ->default_str("");
  add_choice(*command, "--to", job.format, "Format of the file");
  command
      ->add_option("--frames", job.frames,
                   "Numbers of frames, where 1 is the first after the reference; default: all")
      ->delimiter(',')
      ->default_str("");
  command->add_option("--arrays", job.arrays, "Names of arrays: u, v, exx, status, ...; default: all")
      ->delimiter(',')
      ->default_str("");
  command
      ->add_option("-o,--output", job.output,
                   "File to write; default: table.csv, table.npz, table.mat or table.nc")
      ->type_name("FILE")
      ->default_str("");
  command->add_flag("--force", flags->force, "Replace a file of that name");
  command->add_flag("--quiet", flags->quiet, "Print errors and warnings only");
  command->footer(kExportExamples + guide("file-formats.md") + " says what the files hold.");
  command->callback([flags] { run_export(*flags); });
}

}  // namespace dic::app

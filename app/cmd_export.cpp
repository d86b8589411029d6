#include <cstdio>
#include <dic/error.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <iostream>
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
    "  dic export dic_out --to vtu -o test.pvd                           for ParaView and meshio, a file per "
    "frame\n"
    "  dic export dic_out --to nodemap                                   for CrackPy\n"
    "  dic export dic_out --to ply                                       the surface of two cameras, a file "
    "per "
    "frame\n"
    "\n";

struct ExportFlags {
  ExportJob job;
  bool force = false, quiet = false;
};

/// An empty folder for a folder is free.
bool is_taken(const ExportJob& job) {
  std::error_code error;
  const bool is_free_folder = exporting::is_folder(job.format) && std::filesystem::is_directory(job.output) &&
                              std::filesystem::is_empty(job.output, error);
  return std::filesystem::exists(job.output) && !is_free_folder;
}

void run_export(ExportFlags& flags) {
  ExportJob& job = flags.job;
  if (job.output.empty()) job.output = exporting::default_name(job.format);
  refuse_input("-o", job.output, {Result(job.result).path()});
  if (!flags.force && is_taken(job))
    throw FileError(job.output.string() + " already exists: give another name with -o, or --force.");
  const Interruption interruption;
  std::vector<std::string> notes;
  {
    ProgressLine line(!flags.quiet);
    notes = export_result(
        job, [&](const Progress& progress) { line.show(progress); }, interruption.token());
  }
  for (const std::string& note : notes) std::cerr << "dic: " << printable(note) << "\n";
  if (!flags.quiet) std::printf("%s was written.\n", printable(job.output.string()).c_str());
}

}  // namespace

void add_export(CLI::App& app) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = app.add_subcommand(
      "export", "Convert a result to files of other programs: CSV, NumPy, MATLAB, netCDF, ...");
  command->option_defaults()->always_capture_default();
  ExportJob& job = flags->job;
  command->add_option("RESULT", job.result, "Folder of dic track or dic stereo, or its result.vtkhdf")
      ->required()
      ->type_name("")
      ->default_str("");
  add_choice(*command, "--to", job.format,
             "Format of the file; ply: surfaces of two cameras; nodemap: CrackPy");
  command
      ->add_option("--frames", job.frames,
                   "Numbers of frames, where 1 is the first after the reference; default: all")
      ->delimiter(',')
      ->default_str("");
  command->add_option("--arrays", job.arrays, "Names of arrays: u, v, exx, status, ...; default: all")
      ->delimiter(',')
      ->default_str("");
  command
      ->add_option(
          "-o,--output", job.output,
          "File to write, for ply, nodemap and matchid a folder; default: table.csv, table.npz, table.mat, "
          "table.nc, table.pvd, surface, nodemaps, matchid or ncorr.mat")
      ->type_name("PATH")
      ->default_str("");
  command->add_flag("--force", flags->force, "Replace a file of that name");
  command->add_flag("--quiet", flags->quiet, "Print errors and warnings only");
  command->footer(kExportExamples + guide("file-formats.md") + " says what the files hold.");
  command->callback([flags] { run_export(*flags); });
}

}  // namespace dic::app

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "interruption.hpp"
#include "validate/validate.hpp"

namespace dic::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kValidateExamples =
    "Exit code 1: an error exceeds its stated bound. A DIR holds frames and truth.h5, as dic synth writes "
    "them,\n"
    "or the collections of real images that docs/accuracy.md names (default: $DIC_REAL_DATA).\n"
    "Examples:\n"
    "  dic validate --quick                                  every suite, small, in a minute\n"
    "  dic validate rotation crack --order 2 --json new.json some suites, with other options\n"
    "  dic synth -o mine --motion star && dic validate mine  images of your own\n"
    "\n";

struct ValidateCommand {
  std::vector<std::string> names;
  bool list = false;
  std::string json, csv, plots, document;
  validation::Options options;
};

const validation::Suite* suite_named(const std::string& name) {
  for (const validation::Suite& suite : validation::suites())
    if (suite.name == name) return &suite;
  return nullptr;
}

/// Folder of real images that the environment names; empty if there is none.
fs::path real_data() {
  const char* folder = std::getenv("DIC_REAL_DATA");
  return folder != nullptr && fs::is_directory(folder) ? folder : "";
}

std::vector<validation::Suite> chosen_suites(const std::vector<std::string>& names) {
  std::vector<validation::Suite> chosen;
  for (const std::string& name : names) {
    if (const validation::Suite* suite = suite_named(name))
      chosen.push_back(*suite);
    else if (name == "real" && real_data().empty())
      throw UsageError("The suite real needs DIC_REAL_DATA: set it to the folder of the images.");
    else if (name == "real")
      chosen.push_back(validation::folder_suite(real_data()));
    else if (fs::is_directory(name))
      chosen.push_back(validation::folder_suite(name));
    else
      throw UsageError("\"" + name + "\" is neither a suite nor a folder: see dic validate --list.");
  }
  if (!names.empty()) return chosen;
  chosen = validation::suites();
  if (!real_data().empty()) chosen.push_back(validation::folder_suite(real_data()));
  return chosen;
}

void print_list(const validation::Options& options) {
  for (const validation::Suite& suite : validation::suites()) {
    const auto cases = suite.cases(options);
    std::printf("%-12s %s: %zu cases\n", suite.name.c_str(), suite.about.c_str(), cases.size());
    std::printf("%-12s   %s (%s)\n", "", cases.front().bounds_text().c_str(), suite.reason.c_str());
  }
  std::printf(
      "%-12s real images of known motion, in the folder that DIC_REAL_DATA names\n%-12s   their bounds "
      "are stated with them: bias, RMSE, false ok <= 0.01 %%, lost <= 0.1 %%\n",
      "real", "");
}

/// Prints the rows of a table one by one, with columns of even width.
class Table {
 public:
  void print(const validation::Suite& suite, const validation::CaseResult& result) {
    const auto rows = validation::table_of(suite, {result});
    if (suite.name != suite_) print_row(rows[0]);
    suite_ = suite.name;
    print_row(rows[1]);
    for (const std::string& sentence : result.broken) std::printf("    BROKEN %s\n", sentence.c_str());
    if (!result.failure.empty()) std::printf("    FAILED %s\n", result.failure.c_str());
    std::fflush(stdout);
  }

 private:
  void print_row(const std::vector<std::string>& cells) {
    std::printf("%-40s", cells[0].c_str());
    for (std::size_t k = 1; k < cells.size(); ++k) std::printf(" %17s", cells[k].c_str());
    std::printf("\n");
  }

  std::string suite_;
};

void print_end(const validation::Report& report) {
  double seconds = 0;
  for (const validation::CaseResult& one : report.cases) seconds += one.seconds;
  std::printf("\n%lld of %zu cases break a bound. Seed %llu; %.1f s of measuring on %s.\n",
              static_cast<long long>(report.broken()), report.cases.size(),
              static_cast<unsigned long long>(report.seed), seconds,
              report.cases.empty() ? "-" : report.cases.front().device.c_str());
}

void run_validate(ValidateCommand& command) {
  if (command.list) return print_list(command.options);
  if (const auto problems = command.options.track.validate(); !problems.empty())
    throw UsageError(problems.front());
  const std::vector<validation::Suite> suites = chosen_suites(command.names);
  const std::string document = command.document.empty() ? "" : read_text(command.document);
  if (!command.document.empty()) insert_tables(document, suites, {});  // fails before the work, not after it
  const Interruption interruption;
  Table table;
  const validation::Report report = validation::run(
      suites, command.options, command_line(),
      [&](const validation::Suite& suite, const validation::CaseResult& result) {
        table.print(suite, result);
      },
      interruption.token());
  if (!command.json.empty()) write_text_file(command.json, to_json(report, suites));
  if (!command.csv.empty()) write_text_file(command.csv, to_csv(report));
  if (!command.plots.empty()) write_plots(command.plots, report);
  if (!command.document.empty()) write_text_file(command.document, insert_tables(document, suites, report));
  print_end(report);
  if (report.broken() > 0) throw CLI::RuntimeError(failed);
}

}  // namespace

void add_validate(CLI::App& app) {
  auto command = std::make_shared<ValidateCommand>();
  CLI::App& validate =
      *app.add_subcommand("validate", "Measure images with known motion, and report the errors");
  validate.option_defaults()->always_capture_default();
  validate
      .add_option("SUITE|DIR", command->names, "Suites, or folders with images and truth; none = all suites")
      ->type_name("")
      ->default_str("");
  validate.add_flag("--list", command->list, "Print the suites and their bounds");
  validate.add_flag("--quick", command->options.quick, "Use fewer and smaller images, for a minute");
  validate.add_option("--seed", command->options.seed, "Seed of the images");
  validate.add_option("--json", command->json, "Write all results to this file")->type_name("FILE");
  validate.add_option("--csv", command->csv, "Write a table with a row per case to this file")
      ->type_name("FILE");
  validate.add_option("--plots", command->plots, "Draw curves into this folder")->type_name("DIR");
  validate
      .add_option("--into", command->document,
                  "Write the table of each SUITE between the lines <!-- report: SUITE --> and <!-- end of "
                  "report --> of this Markdown file")
      ->type_name("FILE");
  const std::function<TrackOptions()> track = add_track_options(validate);
  validate.footer(kValidateExamples + guide("validate.md") + " says what is measured.");
  validate.callback([command, track, &validate] {
    command->options.track = track();
    const auto typed = [&](const char* name) { return validate.count(name) > 0; };
    command->options.asked = {typed("--subset"),
                              typed("--order"),
                              typed("--step"),
                              typed("--interpolation"),
                              typed("--reference-strategy"),
                              typed("--strain-window")};
    run_validate(*command);
  });
}

}  // namespace dic::app

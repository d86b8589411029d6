#include "bench_regress.hpp"

#include <cstdio>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <filesystem>
#include <memory>

#include "bench/regress.hpp"
#include "commands.hpp"
#include "interruption.hpp"

namespace dic::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBenchRegressExamples =
    "Examples:\n"
    "  dic bench regress --against ../main/build/release/dic    compare with another build, by turns\n"
    "  dic bench regress --json before.json                     save the times of this build\n"
    "  dic bench regress --against before.json                  compare with saved times of the same "
    "machine\n"
    "Exit code 1: something became slower.\n"
    "\n";

struct RegressFlags {
  std::string against, json;
  bench::RegressOptions options;
};

bool is_report(const fs::path& path) { return path.extension() == ".json"; }

/// Report with which `own` is compared. Throws UsageError if it comes from another machine.
bench::SpeedReport earlier_report(const std::string& file, const bench::SpeedReport& own) {
  bench::SpeedReport earlier = bench::speed_report_from_json(read_text(file));
  if (earlier.machine.model != own.machine.model || earlier.machine.threads != own.machine.threads)
    throw UsageError(file + " comes from another machine (" + earlier.machine.model + ", " +
                     std::to_string(earlier.machine.threads) +
                     " threads): times of two machines say nothing about a change.");
  return earlier;
}

void print_times(const bench::SpeedReport& report) {
  std::printf("%-18s %-8s %12s\n", "command", "measure", "median [ms]");
  for (const bench::Comparison& row : bench::compare(report, report, true))
    std::printf("%-18s %-8s %12.1f\n", row.command.c_str(), row.measure.c_str(), 1e3 * row.now);
}

/// Returns how many rows are slower.
int print_comparison(const std::vector<bench::Comparison>& rows) {
  std::printf("%-18s %-8s %12s %12s %8s %17s\n", "command", "measure", "before [ms]", "now [ms]", "ratio",
              "99 % interval");
  int slower = 0;
  for (const bench::Comparison& row : rows) {
    slower += row.change == bench::Change::slower;
    const std::string change =
        row.change == bench::Change::same ? "" : "  " + std::string(to_string(row.change));
    std::printf("%-18s %-8s %12.1f %12.1f %8.3f %8.3f - %.3f%s\n", row.command.c_str(), row.measure.c_str(),
                1e3 * row.before, 1e3 * row.now, row.ratio, row.low, row.high, change.c_str());
  }
  std::printf("%d of %zu slower.\n", slower, rows.size());
  return slower;
}

void run_regress(const RegressFlags& flags) {
  const Interruption interruption;
  const bool by_turns = !flags.against.empty() && !is_report(flags.against);
  const fs::path other = by_turns ? fs::absolute(flags.against) : fs::path();
  const auto on_turn = [&](int turn) {
    std::fprintf(stderr, "\rturn %d of %d%s", turn, flags.options.turns,
                 turn == flags.options.turns ? "\n" : "");
  };
  const bench::BothReports reports =
      bench::run_by_turns(fs::read_symlink("/proc/self/exe"), other, flags.options, command_line(), on_turn,
                          interruption.token());
  if (!flags.json.empty()) write_text_file(flags.json, to_json(reports.own));
  if (flags.against.empty()) return print_times(reports.own);
  const bench::SpeedReport before = by_turns ? reports.other : earlier_report(flags.against, reports.own);
  if (print_comparison(bench::compare(before, reports.own, by_turns)) > 0) throw CLI::RuntimeError(failed);
}

}  // namespace

void add_bench_regress(CLI::App& bench_command) {
  auto flags = std::make_shared<RegressFlags>();
  CLI::App& command = *bench_command.add_subcommand(
      "regress", "Find commands that are slower than in another build or in an earlier report");
  command.option_defaults()->always_capture_default();
  command.add_option("--against", flags->against, "Another dic, or the report (.json) of an earlier run")
      ->type_name("FILE");
  command.add_option("--json", flags->json, "Write the times of this build")->type_name("FILE");
  command.add_option("--turns", flags->options.turns, "Number of runs of each command");
  command.add_option("--only", flags->options.only, "Names of commands, as the table has them")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->default_str("all");
  command.add_option("--device", flags->options.device, "auto (CPU, and GPU where there is one) or cpu");
  command.add_option("--threads", flags->options.threads, "CPU threads; 0 = one per core");
  const char* images = std::getenv("DIC_REAL_DATA");
  command
      .add_option("--images", flags->options.images,
                  "Folder of the real images that docs/accuracy.md names, which are tracked too")
      ->type_name("DIR")
      ->default_str("$DIC_REAL_DATA");
  if (images) flags->options.images = images;
  command.footer(kBenchRegressExamples + guide("performance.md") + " says how to read the table.");
  command.callback([flags] { run_regress(*flags); });
}

}  // namespace dic::app

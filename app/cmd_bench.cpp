#include <cstdio>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "bench/bench.hpp"
#include "bench_pipelines.hpp"
#include "bench_regress.hpp"
#include "commands.hpp"
#include "interruption.hpp"

namespace dic::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCorrelateExamples =
    "Without FILE the built-in groups are run: all pairings, sizes and types of interest.\n"
    "Examples:\n"
    "  dic bench correlate --list                          the variants of this build\n"
    "  dic bench correlate --json bench.json --plots .     measure, keep the figures, draw them\n"
    "  dic bench correlate my.toml --json my.json --resume continue after an interruption\n"
    "\n";

/// Limits with which a quick run takes less than a minute in all.
const bench::Options kQuick{.device = "auto", .min_seconds = 0.1, .repeats = 3, .max_seconds = 1};

template <typename T>
std::string listed(const std::vector<T>& values) {
  std::string text;
  for (const T value : values) text.append(text.empty() ? "" : ",").append(to_string(value));
  return text;
}

void print_variants() {
  for (const CorrelateVariant& v : correlate_variants())
    std::printf("%-36s %-6s %-43s %s\n", v.name.c_str(), v.backend.c_str(), listed(v.pairings).c_str(),
                listed(v.types).c_str());
}

void add_timing(CLI::App& command, bench::Options& options) {
  command.add_option("--device", options.device, "auto, cpu, cuda, cuda:N, opencl or opencl:N")
      ->default_str("auto");
  command.add_option("--threads", options.threads, "CPU threads; 0 = one per core");
  command.add_option("--repeats", options.repeats, "Number of repeats; the median is printed");
}

// --- correlate ---

struct CorrelateCommand {
  std::string groups, json, csv, plots;
  bool list = false, resume = false;
  bench::Options options{.device = "auto"};
};

void print_header() {
  std::printf("%-28s %10s %10s %7s %9s %8s %9s  %s\n", "variant", "cold [ms]", "warm [ms]", "spread", "Gop/s",
              "GB/s", "max diff", "");
}

void print_row(const bench::Row& row) {
  const bench::Timing& t = row.seconds;
  const bench::Case& shape = row.task.shape;
  std::string name = row.task.variant;
  if (name == "planner" && !row.ran.empty()) name = row.ran + " (planned)";
  if (row.task.level != bench::Level::call) name.append(", ").append(to_string(row.task.level));
  if (row.outcome != bench::Outcome::ok) {
    std::printf("%-28s %s: %s\n", name.c_str(), std::string(to_string(row.outcome)).c_str(),
                row.problem.c_str());
    return;
  }
  std::printf("%-28s %10.4g %10.4g %6.0f%% %9.4g %8.3g %9.1e\n", name.c_str(), 1e3 * t.first, 1e3 * t.median,
              100 * (t.most - t.least) / t.median, 1e-9 * shape.operations() / t.median,
              1e-9 * shape.bytes() / t.median, row.max_difference);
}

/// Prints the last row; before the first row of a case, prints the name of the case.
void print_last(const bench::Report& report) {
  const bench::Row& row = report.rows.back();
  const bool is_new =
      report.rows.size() == 1 || !(report.rows[report.rows.size() - 2].task.shape == row.task.shape);
  if (is_new) std::printf("%s: %s\n", row.task.shape.group.c_str(), describe(row.task.shape).c_str());
  print_row(row);
  std::fflush(stdout);
}

void print_end_of_bench(const bench::Report& report) {
  std::size_t counts[3] = {};
  for (const bench::Row& row : report.rows) ++counts[static_cast<int>(row.outcome)];
  std::printf("\n%zu right, %zu wrong, %zu failed, of %zu. Seed %llu.\n", counts[0], counts[1], counts[2],
              report.rows.size(), static_cast<unsigned long long>(report.machine.seed));
}

void run_correlate(CorrelateCommand& command) {
  if (command.list) return print_variants();
  if (command.resume && command.json.empty())
    throw UsageError("--resume continues the report of an earlier run: name it with --json.");
  bench::Options& options = command.options;
  options.device = resolve_device(options.device);
  const std::vector<bench::Task> tasks = command.groups.empty()
                                             ? bench::default_tasks(options.device)
                                             : bench::read_tasks(command.groups, options.device);
  bench::Report earlier;
  if (command.resume && fs::exists(command.json)) earlier = bench::from_json(read_text(command.json));

  const Interruption interruption;
  print_header();
  const auto on_row = [&](const bench::Report& report) {
    print_last(report);
    if (!command.json.empty()) write_text_file(command.json, to_json(report));
  };
  bench::Report report =
      bench::correlate(tasks, options, command_line(), earlier, on_row, interruption.token());
  const bool stopped = interruption.token().stop_requested();
  if (!stopped && (!command.json.empty() || !command.plots.empty()))
    report.ceilings = bench::ceilings(options);
  if (!command.json.empty()) write_text_file(command.json, to_json(report));
  if (!command.csv.empty()) write_text_file(command.csv, to_csv(report));
  if (!command.plots.empty()) write_plots(command.plots, report);
  print_end_of_bench(report);
  if (stopped) throw CLI::RuntimeError(interrupted);
}

void add_correlate(CLI::App& bench_command) {
  auto command = std::make_shared<CorrelateCommand>();
  CLI::App& correlate =
      *bench_command.add_subcommand("correlate", "Time and check the variants of the correlation");
  correlate.option_defaults()->always_capture_default();
  correlate.add_option("FILE", command->groups, "TOML file with groups of cases")
      ->type_name("")
      ->default_str("");
  correlate.add_flag("--list", command->list, "Print every variant: name, backend, pairings, types");
  add_timing(correlate, command->options);
  correlate.add_option("--seed", command->options.seed, "Seed of the inputs");
  correlate.add_option("--min-time", command->options.min_seconds,
                       "Shortest time of a repeat, s; kernels are timed by the GPU's clock");
  correlate.add_option("--max-time", command->options.max_seconds,
                       "Time after which no repeat of a case starts, s");
  correlate.add_option("--json", command->json, "Write the report to this file after every row")
      ->type_name("FILE");
  correlate.add_option("--csv", command->csv, "Write a CSV table to this file")->type_name("FILE");
  correlate.add_option("--plots", command->plots, "Draw speed-ups against size into this folder")
      ->type_name("DIR");
  correlate.add_flag("--resume", command->resume, "Skip rows that the report of --json already has");
  correlate.footer(kCorrelateExamples + guide("performance-tables.md") +
                   " describes FILE and what is measured.");
  correlate.callback([command] { run_correlate(*command); });
}

struct ReportCommand {
  std::vector<std::string> files;
  std::string document;
};

void run_bench_report(const ReportCommand& command) {
  std::string document = command.document.empty() ? "" : read_text(command.document);
  for (const std::string& file : command.files) {
    const std::string text = to_markdown(bench::from_json(read_text(file)));
    if (command.document.empty())
      std::cout << text;
    else
      document = bench::insert_report(document, fs::path(file).stem().string(), text);
  }
  if (!command.document.empty()) write_text_file(command.document, document);
}

void add_bench_report(CLI::App& bench_command) {
  auto command = std::make_shared<ReportCommand>();
  CLI::App& report = *bench_command.add_subcommand("report", "Print reports as Markdown tables");
  report.add_option("FILE", command->files, "Reports that `dic bench correlate --json FILE` wrote")
      ->type_name("")
      ->required();
  report
      .add_option(
          "--into", command->document,
          "Write NAME.json between the lines <!-- report: NAME --> and <!-- end of report --> of this file")
      ->type_name("FILE");
  report.callback([command] { run_bench_report(*command); });
}

void add_ceilings(CLI::App& bench_command) {
  auto options = std::make_shared<bench::Options>(bench::Options{.device = "auto"});
  CLI::App& ceilings = *bench_command.add_subcommand(
      "ceilings", "Measure the highest arithmetic rate and memory bandwidth of this machine");
  ceilings.option_defaults()->always_capture_default();
  add_timing(ceilings, *options);
  ceilings.callback([options] {
    options->device = resolve_device(options->device);
    const std::vector<bench::Ceiling> found = bench::ceilings(*options);
    if (found.empty()) throw UsageError("Ceilings are not measured with OpenCL: use --device cpu or cuda.");
    for (const bench::Ceiling& ceiling : found)
      std::printf("%-26s %10.1f G%s\n", ceiling.name.c_str(), 1e-9 * ceiling.value, ceiling.unit.c_str());
  });
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("bench", "Measure the speed of dic on this machine, checking every result");
  auto options = std::make_shared<bench::Options>(kQuick);
  auto is_quick = std::make_shared<bool>(false);
  CLI::Option* quick = command.add_flag("--quick", *is_quick,
                                        "Correlation, template matching and tracking in less than a minute");
  command.add_option("--device", options->device, "auto, cpu, cuda, cuda:N, opencl or opencl:N")
      ->default_str("auto")
      ->needs(quick);
  command.add_option("--threads", options->threads, "CPU threads; 0 = one per core")->needs(quick);
  add_correlate(command);
  add_bench_track(command);
  add_bench_match(command);
  add_bench_stereo(command);
  add_ceilings(command);
  add_bench_report(command);
  add_bench_regress(command);
  command.callback([&command, is_quick, options] {
    if (*is_quick) return run_quick(*options);
    if (command.get_subcommands().empty())
      throw UsageError("Name what to time: dic bench --quick, or a command of dic bench --help.");
  });
}

}  // namespace dic::app

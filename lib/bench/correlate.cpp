#include <algorithm>
#include <cstring>
#include <ctime>
#include <dic/error.hpp>
#include <dic/info.hpp>
#include <memory>
#include <new>
#include <optional>

#include "bench/bench.hpp"
#include "bench/inputs.hpp"
#include "bench/machine_json.hpp"
#include "bench/timing.hpp"
#include "bench/truth.hpp"

namespace dic::bench {
namespace {

constexpr int kPoison = 0xff;  ///< makes NaN or the largest number, which no variant writes

/// The results of a call.
struct Result {
  Surfaces surfaces;
  std::vector<Peak> peaks;

  void compute(Correlator& correlator, const CorrelateRequest& request, Output output) {
    output == Output::peaks ? correlator.peaks(request, peaks) : correlator.surfaces(request, surfaces);
  }
  void poison() {
    std::fill(surfaces.bytes.begin(), surfaces.bytes.end(), std::byte{kPoison});
    std::fill(peaks.begin(), peaks.end(), Peak{.score = -2, .second_score = -2});
  }
  Check check(const Truth& truth, Output output) const {
    return output == Output::peaks ? truth.check(peaks) : truth.check(surfaces);
  }
};

bool is_step(Level level) { return level != Level::whole && level != Level::call; }

/// Seconds of a step in the last call.
double step_seconds(const Correlator& correlator, Level step) {
  const DeviceSeconds seconds = correlator.device_seconds();
  if (step == Level::upload) return seconds.upload;
  return step == Level::kernel ? seconds.kernels : seconds.download;
}

/// Runs tasks one after the other; keeps the data of a case for the tasks that share it.
class Runner {
 public:
  Runner(const Options& options, std::stop_token stop) : options_(options), stop_(std::move(stop)) {}

  Row run(const Task& task) {
    Row row;
    row.task = task;
    try {
      measure(row);
    } catch (const Error& error) {
      fail(row, error.what());
    } catch (const std::bad_alloc&) {
      fail(row, "Not enough memory: use fewer or smaller matrices.");
    }
    return row;
  }

 private:
  static void fail(Row& row, const std::string& problem) {
    row.outcome = Outcome::failed;
    row.problem = problem;
  }

  void measure(Row& row) {
    const Case& shape = row.task.shape;
    prepare(shape);
    CorrelateRequest request = inputs_->request();
    if (row.task.variant != "planner") request.variant = row.task.variant;

    std::optional<Correlator> correlator;
    Result result;
    const double first = time_of([&] {
      correlator.emplace(options_.device, options_.threads);
      result.compute(*correlator, request, shape.output);
    });
    row.ran = correlator->last_plan().variant;
    check(row, *correlator, request, result);
    if (row.outcome != Outcome::ok) return;

    if (is_step(row.task.level) && step_seconds(*correlator, row.task.level) <= 0)
      throw UsageError("Steps are timed by CUDA and OpenCL only: use the level \"call\" on " +
                       options_.device + ".");

    if (row.task.level == Level::whole) {
      correlator.reset();
      result = {};
    }
    result.poison();  // ensures that the result compared afterwards is the timed one
    row.seconds = time(row.task, correlator, request, result);
    row.seconds.first = first;
    if (correlator) compare(row, result);
  }

  Timing time(const Task& task, std::optional<Correlator>& kept, const CorrelateRequest& request,
              Result& result) {
    const auto calls = one_by_one([&] { return time_once(task, kept, request, result); });
    const auto kernels = [&](std::int64_t times) {
      return time_kernels(times, *kept, request, task.shape.output, result);
    };
    return task.level == Level::kernel ? time_repeats(kernels, options_, stop_)
                                       : time_repeats(calls, options_, stop_);
  }

  /// Time of the kernels, without transfers, of one call that runs them `times` times.
  static Elapsed time_kernels(std::int64_t times, Correlator& correlator, const CorrelateRequest& request,
                              Output output, Result& result) {
    correlator.repeat_kernels(times);
    result.compute(correlator, request, output);
    const double seconds = static_cast<double>(times) * correlator.device_seconds().kernels;
    return {.counted = seconds, .lasted = seconds};
  }

  /// Seconds of one call, or of the part of it that the level names.
  double time_once(const Task& task, std::optional<Correlator>& kept, const CorrelateRequest& request,
                   Result& result) {
    const Output output = task.shape.output;
    const double seconds = time_of([&] {
      if (task.level != Level::whole) return result.compute(*kept, request, output);
      Correlator fresh(options_.device, options_.threads);
      Result().compute(fresh, request, output);
    });
    return is_step(task.level) ? step_seconds(*kept, task.level) : seconds;
  }

  /// Makes the data of a case unless they exist.
  void prepare(const Case& shape) {
    if (inputs_ && prepared_ == shape) return;
    inputs_.reset();  // freed first, because two sets of data may not fit into memory
    truth_.reset();
    inputs_ = std::make_unique<Inputs>(shape, options_.seed);
    prepared_ = shape;
  }

  /// Computes once more into poisoned memory and compares.
  void check(Row& row, Correlator& correlator, const CorrelateRequest& request, Result& result) {
    if (!truth_) truth_.emplace(inputs_->request(), options_.seed);
    result.poison();
    result.compute(correlator, request, row.task.shape.output);
    compare(row, result);
  }

  /// Compares a result with the truth and discards the time if it is wrong.
  void compare(Row& row, const Result& result) {
    const Check check = result.check(*truth_, row.task.shape.output);
    row.max_difference = check.max_difference;
    row.compared = check.compared;
    row.outcome = check.ok ? Outcome::ok : Outcome::wrong;
    if (check.ok) return;
    row.problem = "The result differs from the float64 reference: please report this.";
    row.seconds = {};
  }

  Options options_;
  std::stop_token stop_;
  Case prepared_;
  std::unique_ptr<Inputs> inputs_;
  std::optional<Truth> truth_;
};

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// "NVIDIA H100 80GB HBM3" for "cuda:0" and "cuda"; the processor for "cpu".
std::string model_of(const std::string& device, const BuildInfo& info) {
  const bool is_opencl = device.starts_with("opencl");
  for (const DeviceInfo& known : is_opencl ? opencl_info().devices : info.devices)
    if (known.name == device || known.name == device + ":0") return known.model;
  return info.cpu;
}

void require_same_machine(const Machine& now, const Machine& then) {
  const auto facts = [](const Machine& m) {
    return m.version + ", " + m.model + " as " + m.device + ", " + std::to_string(m.threads) +
           " threads, seed " + std::to_string(m.seed);
  };
  if (facts(now) != facts(then))
    throw UsageError("The earlier report comes from " + facts(then) + ", this run is " + facts(now) +
                     ": figures of both do not belong in one report; choose another --json.");
}

bool has_failed(const Row& row) { return row.outcome == Outcome::failed; }

}  // namespace

Machine describe_machine(const Options& options, const std::string& command) {
  const BuildInfo info = build_info();
  return {.version = info.version,
          .date = utc_now(),
          .command = command,
          .device = options.device,
          .model = model_of(options.device, info),
          .simd = info.simd_target,
          .compiler = info.compiler + ", " + info.build_type,
          .threads = Correlator(options.device, options.threads).device().threads,
          .seed = options.seed};
}

std::vector<std::string> Options::validate() const {
  std::vector<std::string> out;
  if (threads < 0) out.emplace_back("The number of threads must be at least 0.");
  if (!(min_seconds >= 0)) out.emplace_back("The shortest time of a repeat must be at least 0 s.");
  if (!(max_seconds >= 0)) out.emplace_back("The longest time of a task must be at least 0 s.");
  if (repeats < 1) out.emplace_back("There must be at least one repeat.");
  return out;
}

Report correlate(const std::vector<Task>& tasks, const Options& options, const std::string& command,
                 const Report& earlier, const std::function<void(const Report&)>& on_row,
                 std::stop_token stop) {
  if (const auto problems = options.validate(); !problems.empty()) throw UsageError(problems.front());
  Report report{.machine = describe_machine(options, command), .ceilings = {}, .rows = earlier.rows};
  if (!earlier.rows.empty()) require_same_machine(report.machine, earlier.machine);
  std::erase_if(report.rows, has_failed);
  const std::vector<Row> done = report.rows;
  const auto is_done = [&](const Task& task) {
    return std::any_of(done.begin(), done.end(), [&](const Row& row) { return row.task == task; });
  };
  Runner runner(options, stop);
  for (const Task& task : tasks) {
    if (is_done(task)) continue;
    if (stop.stop_requested()) break;
    report.rows.push_back(runner.run(task));
    if (on_row) on_row(report);
  }
  return report;
}

}  // namespace dic::bench

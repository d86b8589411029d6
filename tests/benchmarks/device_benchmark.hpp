#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/kernels/device.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Google Benchmark for work that is queued on a GPU.
namespace dic::bench_gpu {

/// What is timed: `launch` queues it on `stream`. Its functions own the memory that they use.
struct Measurement {
  std::string name = {};
  const kernels::Stream* stream = nullptr;  ///< null: `launch` waits for its result by itself
  std::function<void()> launch = {};
  double bytes = 0;                                    ///< that must be read and written; 0: not reported
  std::function<void()> prepare = {};                  ///< runs before; may be empty
  std::function<void(benchmark::State&)> report = {};  ///< adds counters afterwards; may be empty
};
using Measurements = std::vector<Measurement>;
using Make = std::function<Measurements()>;

inline double seconds_of(const Measurement& m, std::int64_t launches) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < launches; ++i) m.launch();
  if (m.stream) m.stream->synchronize("timing");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Times one launch, warm. Launches are queued in batches of about 2 ms, so that waiting for the GPU does not
/// count.
inline void run(benchmark::State& state, const Measurement& m) {
  if (m.prepare) m.prepare();
  seconds_of(m, 1);
  const auto batch = std::clamp<std::int64_t>(static_cast<std::int64_t>(2e-3 / seconds_of(m, 1)), 1, 1000);
  while (state.KeepRunningBatch(batch)) state.SetIterationTime(seconds_of(m, batch));
  if (m.bytes > 0)
    state.SetBytesProcessed(static_cast<std::int64_t>(m.bytes * static_cast<double>(state.iterations())));
  if (m.report) m.report(state);
}

/// Registers what `make` returns. It is made once for its names, and again when the first of it runs: the
/// data of one group at a time are in the GPU's memory.
inline void add(const Make& make) {
  static std::weak_ptr<const Make> current;
  static Measurements made;
  const auto group = std::make_shared<const Make>(make);
  const Measurements named = make();
  for (std::size_t k = 0; k < named.size(); ++k)
    benchmark::RegisterBenchmark(named[k].name.c_str(),
                                 [group, k](benchmark::State& state) {
                                   if (current.lock() != group) {
                                     made.clear();
                                     made = (*group)();
                                     current = group;
                                   }
                                   run(state, made[k]);
                                 })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
}

/// The main function: `add_all` registers.
inline int run_all(int argc, char** argv, const std::function<void()>& add_all) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    benchmark::AddCustomContext("gpu", kernels::find_device(0).model);
    add_all();
    benchmark::RunSpecifiedBenchmarks();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace dic::bench_gpu

#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "bench/bench.hpp"

/// The parts of `dic bench` that time whole pipelines.
namespace dic::app {

/// The device itself, or for "auto" the best device of this machine.
std::string resolve_device(const std::string& device);

void add_bench_track(CLI::App& bench);
void add_bench_match(CLI::App& bench);
void add_bench_stereo(CLI::App& bench);

/// `dic bench --quick`: correlation, template matching and tracking in less than a minute. The device "auto"
/// means the CPU and, if the machine has one, the GPU.
void run_quick(const bench::Options& options);

}  // namespace dic::app

#pragma once

#include <CLI/CLI.hpp>

namespace dic::app {

/// `dic bench regress`: is this build slower than another one?
void add_bench_regress(CLI::App& bench);

}  // namespace dic::app

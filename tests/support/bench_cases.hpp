#pragma once

#include <dic/image_io.hpp>

#include "bench/bench.hpp"
#include "bench/inputs.hpp"
#include "bench/timing.hpp"
#include "bench/truth.hpp"

namespace dic::bench {

inline std::vector<Task> parse(const std::string& text) {
  return parse_tasks("[[group]]\nname = \"g\"\n" + text, "t.toml", "cpu");
}

inline Case small_case(Pairing pairing, ScalarType type, Criterion criterion, Output output) {
  Case c;
  c.group = "test";
  c.pairing = pairing, c.type = type, c.criterion = criterion, c.output = output;
  c.ref_h = 5, c.ref_w = 7, c.search_h = 11, c.search_w = 15;
  c.shifts = Shifts::valid({7, 5}, {15, 11});
  c.references = pairing == Pairing::one_to_many ? 1 : 3;
  c.windows = pairing == Pairing::n_to_mn ? 6 : 3;
  return c;
}

inline Options quick_options() {
  Options options;
  options.threads = 1;
  options.min_seconds = 0;
  options.repeats = 3;
  return options;
}

inline const char* const kGroups =
    "reference = [5, 8]\nshifts = 2\nn = 2\nlevel = [\"call\", \"whole\"]\nvariant = [\"planner\", "
    "\"cpu-naive\", "
    "\"cpu-none\"]\n";

}  // namespace dic::bench

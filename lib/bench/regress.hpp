#pragma once

#include <dic/shared/enum_names.hpp>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench.hpp"

/// Compares the times of whole commands of this build with those of another build, to find what became
/// slower.
namespace dic::bench {

/// Times of one command, one per turn, s.
struct CommandTimes {
  std::string command;  ///< name in the fixed set, for example "cpu pair"
  std::string measure;  ///< "wall", "cpu" (user and system, all threads), or a stage of run.json
  std::vector<double> values;
};

struct SpeedReport {
  Machine machine;
  std::vector<CommandTimes> times;
};

std::string to_json(const SpeedReport& report);
/// Parses a speed report. Throws UsageError if the text is not one.
SpeedReport speed_report_from_json(const std::string& text);

struct RegressOptions {
  std::string device = "auto";    ///< "cpu": without GPU commands; otherwise with them, if there is a GPU
  int threads = 0;                ///< CPU threads of each command; 0 = one per core
  int turns = 12;                 ///< at least 8: fewer cannot tell a change from chance
  std::filesystem::path images;   ///< folder of the real images (DIC_REAL_DATA); empty: none are tracked
  std::vector<std::string> only;  ///< names of commands; empty = all
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// Runs the fixed set of commands with this program and `other` in turns, once each before the timed turns.
/// Runs this program by turns with `other`, or alone without it. `on_turn` is called after each turn. Throws
/// UsageError (options, a command that fails), FileError, Cancelled.
struct BothReports {
  SpeedReport other, own;
};
BothReports run_by_turns(const std::filesystem::path& own, const std::filesystem::path& other,
                         const RegressOptions& options, const std::string& command,
                         const std::function<void(int)>& on_turn = {}, const std::stop_token& stop = {});

enum class Change { same, slower, faster };
}  // namespace dic::bench

namespace dic {

template <>
struct EnumNames<bench::Change> {
  static constexpr EnumName<bench::Change> table[] = {
      {bench::Change::same, "same"}, {bench::Change::slower, "slower"}, {bench::Change::faster, "faster"}};
};

}  // namespace dic

namespace dic::bench {

/// A command and measure of both reports.
struct Comparison {
  std::string command, measure;
  double before = 0, now = 0;  ///< medians, s
  /// Median of now / before, and its 99 % confidence interval.
  double ratio = 1, low = 1, high = 1;
  Change change = Change::same;
};

/// Compares the rows that both reports have and that take long enough to be timed. by_turns: value k of both
/// was measured in the same turn, so the ratios of turns are compared; otherwise the medians of both reports.
/// The interval is that of the sign test (order statistics, without assumptions about the distribution of
/// times). slower: the whole interval is above 1 and the ratio above 1.01; faster: likewise below.
std::vector<Comparison> compare(const SpeedReport& before, const SpeedReport& now, bool by_turns);

}  // namespace dic::bench

#pragma once

#include <dic/match.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dic::app {

/// One row that `dic match` prints: a match, or a template that was not found in an image.
struct MatchRow {
  std::size_t frame = 0;  ///< index of the image
  std::string image{}, template_name{};
  std::optional<Match> match{};
  double score = 0;                     ///< score of the match or, without a match, the best score seen
  std::optional<TrackedMatch> track{};  ///< set with --track
};

enum class MatchFormat { table, csv, json };

/// Prints rows to stdout in one of the formats: tables as they come, JSON at the end.
class MatchReport {
 public:
  /// poses: rows have the standard deviations of a refined pose.
  MatchReport(MatchFormat format, bool tracks, bool poses)
      : format_(format), tracks_(tracks), poses_(poses) {}

  void add(const MatchRow& row);
  /// Prints what is left. `threshold` appears in the sentence that says that nothing was found.
  void finish(double threshold);

 private:
  void print_table_row(const MatchRow& row) const;
  void print_csv_row(const MatchRow& row) const;
  void add_json(const MatchRow& row);

  MatchFormat format_;
  bool tracks_, poses_;
  bool begun_ = false;  ///< true if the header of the table was printed
  bool found_ = false;
  double best_score_ = -1;
  std::vector<nlohmann::ordered_json> list_;
};

}  // namespace dic::app

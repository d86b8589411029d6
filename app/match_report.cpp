#include "match_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>

#include "commands.hpp"

namespace dic::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Names of what is known of a refined pose.
constexpr std::array kPoseNames = {"sigma_x", "sigma_y", "sigma_rotation_deg", "sigma_scale", "visible"};

std::array<double, kPoseNames.size()> pose_numbers_of(const MatchRow& row) {
  if (!row.match || !row.match->refined) return {kNone, kNone, kNone, kNone, kNone};
  const Match& m = *row.match;
  return {m.sigma_x, m.sigma_y, m.sigma_rotation_deg, m.sigma_scale, m.visible};
}

/// Numbers of a row: x, y, center_x, center_y, score, rotation_deg, scale, and dx, dy of a track.
std::array<double, 9> numbers_of(const MatchRow& row) {
  if (!row.match) return {kNone, kNone, kNone, kNone, row.score, kNone, kNone, kNone, kNone};
  const Match& m = *row.match;
  const TrackedMatch track = row.track.value_or(TrackedMatch{});
  return {m.x, m.y, m.center_x, m.center_y, row.score, m.rotation_deg, m.scale, track.dx, track.dy};
}

/// A cell of a CSV file, quoted (RFC 4180) where the text needs it.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

void print_number(int width, int digits, double value) {
  if (std::isnan(value))
    std::printf("%*s ", width, "-");
  else
    std::printf("%*.*f ", width, digits, value);
}

}  // namespace

void MatchReport::add(const MatchRow& row) {
  found_ |= row.match.has_value();
  best_score_ = std::max(best_score_, row.score);
  if (format_ == MatchFormat::json)
    add_json(row);
  else
    format_ == MatchFormat::csv ? print_csv_row(row) : print_table_row(row);
  begun_ = true;
}

void MatchReport::print_table_row(const MatchRow& row) const {
  if (!begun_) {
    std::printf("%10s %10s %10s %10s %8s %9s %7s ", "x", "y", "center_x", "center_y", "score", "rotation",
                "scale");
    if (poses_) std::printf("%8s %8s %8s %8s %7s ", "sigma_x", "sigma_y", "sigma_r", "sigma_s", "visible");
    if (tracks_) std::printf("%10s %10s %6s ", "dx", "dy", "track");
    std::printf(" template in image\n");
  }
  const auto numbers = numbers_of(row);
  constexpr int kWidths[] = {10, 10, 10, 10, 8, 9, 7, 10, 10}, kDigits[] = {3, 3, 3, 3, 4, 3, 3, 3, 3};
  for (std::size_t k = 0; k < 7; ++k) print_number(kWidths[k], kDigits[k], numbers[k]);
  constexpr int kPoseWidths[] = {8, 8, 8, 8, 7}, kPoseDigits[] = {4, 4, 4, 5, 3};
  for (std::size_t k = 0; poses_ && k < kPoseNames.size(); ++k)
    print_number(kPoseWidths[k], kPoseDigits[k], pose_numbers_of(row)[k]);
  for (std::size_t k = 7; tracks_ && k < 9; ++k) print_number(kWidths[k], kDigits[k], numbers[k]);
  if (tracks_) print_number(6, 0, row.track->track < 0 ? kNone : row.track->track);
  std::printf(" %s%s in %s\n", row.match ? "" : "no match of ", printable(row.template_name).c_str(),
              printable(row.image).c_str());
}

void MatchReport::print_csv_row(const MatchRow& row) const {
  if (!begun_)
    std::printf("frame,image,template,x,y,center_x,center_y,score,rotation_deg,scale%s%s\n",
                poses_ ? ",sigma_x,sigma_y,sigma_rotation_deg,sigma_scale,visible" : "",
                tracks_ ? ",dx,dy,track" : "");
  std::printf("%zu,%s,%s", row.frame, cell(row.image).c_str(), cell(row.template_name).c_str());
  const auto numbers = numbers_of(row);
  const auto print = [](double value) {
    std::isnan(value) ? std::printf(",nan") : std::printf(",%.10g", value);
  };
  for (std::size_t k = 0; k < 7; ++k) print(numbers[k]);
  if (poses_)
    for (const double value : pose_numbers_of(row)) print(value);
  for (std::size_t k = 7; tracks_ && k < 9; ++k) print(numbers[k]);
  if (tracks_) std::printf(",%d", row.track->track);
  std::printf("\n");
}

void MatchReport::add_json(const MatchRow& row) {
  if (!row.match && !tracks_) return;
  constexpr const char* kNames[] = {"x",     "y",  "center_x", "center_y", "score", "rotation_deg",
                                    "scale", "dx", "dy"};
  const auto numbers = numbers_of(row);
  Json entry = {{"image", row.image}, {"template", row.template_name}};
  for (std::size_t k = 0; k < (tracks_ ? 9 : 7); ++k)
    entry[kNames[k]] = std::isnan(numbers[k]) ? Json() : Json(numbers[k]);
  for (std::size_t k = 0; poses_ && k < kPoseNames.size(); ++k) {
    const double value = pose_numbers_of(row)[k];
    entry[kPoseNames[k]] = std::isnan(value) ? Json() : Json(value);
  }
  if (tracks_) {
    entry["track"] = row.track->track;
    entry["frame"] = row.frame;
  }
  list_.push_back(std::move(entry));
}

void MatchReport::finish(double threshold) {
  if (format_ == MatchFormat::json) {
    if (!tracks_)
      std::ranges::stable_sort(list_,
                               [](const Json& a, const Json& b) { return a.at("score") > b.at("score"); });
    constexpr auto kReplace = Json::error_handler_t::replace;  // file names may not be UTF-8
    std::cout << Json(list_).dump(2, ' ', false, kReplace) << '\n';
  } else if (format_ == MatchFormat::table && !found_) {
    std::printf("No match scores %g or more; the best score found is %.4f. A lower --threshold shows it.\n",
                threshold, best_score_);
  }
}

}  // namespace dic::app

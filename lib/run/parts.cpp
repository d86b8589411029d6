#include "run/parts.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "run/own_files.hpp"

namespace dic::run {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

fs::path plan_file(const fs::path& output) { return parts_folder(output) / "plan.json"; }

}  // namespace

std::string part_name(std::size_t part) {
  const std::string number = std::to_string(part);
  return std::string(number.size() < 4 ? 4 - number.size() : 0, '0') + number;
}

bool is_complete(const fs::path& folder) {
  std::ifstream stream(folder / "run.json");
  const Json run = Json::parse(stream, nullptr, false);
  return run.is_object() && run.value("state", "") == "complete";
}

std::vector<std::size_t> divide_frames(std::size_t frames, int processes) {
  constexpr std::size_t kFramesOfPart = 16, kPartsOfProcess = 4;
  const std::size_t least = std::max(processes, 1);
  const std::size_t parts =
      std::min(std::clamp(frames / kFramesOfPart, least, kPartsOfProcess * least), frames);
  std::vector<std::size_t> first;
  for (std::size_t k = 0; k < parts; ++k) first.push_back(k * frames / parts);
  return first;
}

bool is_planned(const fs::path& output) {
  std::error_code ignored;
  return fs::exists(plan_file(output), ignored);
}

void write_plan(const fs::path& output, std::size_t frames, const Plan& plan) {
  std::error_code error;
  fs::create_directories(parts_folder(output), error);
  if (error) throw FileError("Cannot write " + parts_folder(output).string() + ": " + error.message() + ".");
  const Json json = {{"frames", frames}, {"first", plan.first}, {"rows", plan.rows}};
  write_text_file(plan_file(output), json.dump() + "\n");
}

Plan read_plan(const fs::path& output, std::size_t frames) {
  std::ifstream stream(plan_file(output));
  const Json json = Json::parse(stream, nullptr, false);
  if (!json.is_object() || !json.contains("frames") || !json.contains("first") || !json.contains("rows"))
    throw FileError(plan_file(output).string() + " is damaged: measure into another folder with -o.");
  if (json["frames"] != frames)
    throw UsageError("Cannot continue the parts in " + parts_folder(output).string() + ": they are of " +
                     json["frames"].dump() + " frames, now there are " + std::to_string(frames) +
                     "; measure into another folder with -o.");
  return {json["first"], json["rows"]};
}

std::vector<std::string> files_to_share(const std::vector<std::string>& frames) {
  const std::unique_ptr<FrameSource> source = open_frames(frames);
  if (!source->reads_in_parallel())
    throw UsageError(
        "A video is decoded in order: several processes cannot share it; extract its frames first.");
  std::vector<std::string> files;
  for (const fs::path& file : expand_frames(frames)) files.push_back(file);
  if (source->count() != std::ssize(files))
    throw UsageError(
        "A file holds several frames: several processes cannot share it; save each frame as a file of its "
        "own.");
  return files;
}

void check_can_be_divided(const TrackJob& job) {
  if (job.options.reference_strategy != ReferenceStrategy::first)
    throw UsageError(
        "Several processes share a sequence only with the reference strategy first: with the others a frame "
        "needs "
        "those before.");
  if (job.noise_floor) throw UsageError("A noise floor is measured by one process.");
  if (job.force)
    throw UsageError("Several processes do not replace a result: choose another folder with -o.");
}

void add_seconds(const Json& run, StageSeconds& sum) {
  const Json& seconds = run.at("seconds");
  for (const auto& [name, value] :
       {std::pair("load", &sum.load), std::pair("prepare", &sum.prepare), std::pair("search", &sum.search),
        std::pair("refine", &sum.refine), std::pair("strain", &sum.strain), std::pair("write", &sum.write),
        std::pair("total", &sum.total)})
    *value += seconds.at(name).get<double>();
}

void add_origin(const Json& run, std::string& hosts, std::string& date) {
  const std::string host = run.at("host"), begun = run.at("date");
  if (hosts.find(host) == std::string::npos) hosts += (hosts.empty() ? "" : ", ") + host;
  date = date.empty() ? begun : std::min(date, begun);
}

}  // namespace dic::run

#include "bench/regress.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/info.hpp>
#include <dic/synth.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/machine_json.hpp"
#include "bench/temporary_folder.hpp"
#include "bench/whole_process.hpp"

namespace dic::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kLeastTurns = 8;

/// The input files of the commands, made on demand, and their output folder.
class CommandFiles {
 public:
  explicit CommandFiles(int threads) : threads_(threads) {}

  /// Frames of speckle that moves by several px and stretches by 0.5 % in all.
  std::vector<std::string> frames(int side, int count) const {
    SynthOptions synth;
    synth.size = {side, side};
    synth.noise = 2;
    synth.threads = threads_;
    synth.motion = {.kind = MotionKind::affine, .u = 5.3, .v = -3.6, .ux = 0.005, .vy = -0.002};
    synth.motion.cx = synth.motion.cy = (side - 1) / 2.0;
    synth.amounts.clear();
    for (int i = 0; i < count; ++i) synth.amounts.push_back(static_cast<double>(i) / (count - 1));
    std::vector<std::string> files;
    for (int i = 0; i < count; ++i) {
      files.push_back(folder_.path / (std::to_string(side) + "_" + std::to_string(100 + i) + ".png"));
      if (!fs::exists(files.back())) write_image(files.back(), synth_frame(synth, i));
    }
    return files;
  }
  /// File of a 64x64 px cut from an image.
  std::string cut_from(const std::string& file) const {
    const Image image = read_image(file);
    ImageView cut = image.view();
    cut.data = image.row<std::uint8_t>(cut.height / 4) + cut.width / 3;
    cut.width = cut.height = 64;
    const fs::path path = folder_.path / "template.png";
    write_image(path, cut);
    return path;
  }
  fs::path output() const { return folder_.path / "out"; }

 private:
  int threads_;
  TemporaryFolder folder_;
};

using Words = std::vector<std::string>;

Words joined(Words first, const Words& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

/// A command of the fixed set.
struct FixedCommand {
  std::string name;
  Words arguments;
  bool tracks = false;  ///< tracks, and so leaves a run.json in the output folder
};

/// A command of the fixed set before its files exist.
struct PlannedCommand {
  std::string name;
  bool tracks;
  std::function<Words(const CommandFiles&)> arguments;
};

PlannedCommand track(const std::string& name, int side, int frames, const Words& options) {
  return {name, true, [=](const CommandFiles& files) {
            const Words output{"--output", files.output(), "--force"};
            return joined(joined(joined({"track"}, files.frames(side, frames)), output), options);
          }};
}

/// Tracks real images.
PlannedCommand track_real(const std::string& name, const Words& images, const Words& options) {
  return {name, true, [=](const CommandFiles& files) {
            const Words output{"--output", files.output(), "--force", "--pictures", "none"};
            return joined(joined(joined({"track"}, images), output), options);
          }};
}

/// The real images: whole, and the first also in a region.
void add_real(std::vector<PlannedCommand>& set, const std::string& device, const fs::path& folder,
              const Words& options) {
  const auto add = [&](const std::string& name, const Words& images, const Words& more) {
    set.push_back(track_real(device + " " + name, images, joined(options, more)));
  };
  const Words oht{folder / "oht_sequence"};
  add("oht", oht, {});
  add("oht region", oht, {"--roi-rect", "80,30,240,980"});
  const fs::path gt4 = folder / "stereo" / "gt4";
  add("gt4", {gt4 / "GT4-0000_0.png", gt4 / "GT4-0003_0.png"}, {"--step", "8"});
  const fs::path frac16 = folder / "frac16";
  add("frac16", {frac16 / "img_0000 .png", frac16 / "img_0015 .png"}, {"--step", "8"});
  add("utn", {folder / "utn"}, {"--step", "8"});
}

PlannedCommand match(const std::string& name, int side, const Words& options) {
  return {name, false, [=](const CommandFiles& files) {
            const Words images = files.frames(side, 2);
            return joined({"match", files.cut_from(images[0]), images[1]}, options);
          }};
}

std::vector<PlannedCommand> fixed_set(const RegressOptions& options, bool gpu) {
  const Words threads{"--threads", std::to_string(options.threads)};
  const Words cpu = joined({"--device", "cpu"}, threads), cuda = joined({"--device", "cuda"}, threads);
  std::vector<PlannedCommand> set{
      {"start", false, [](const CommandFiles&) { return Words{"--version"}; }},
      track("cpu pair", 1024, 2, cpu),
      track("cpu pair order 2", 1024, 2, joined(cpu, {"--order", "2"})),
      track("cpu sequence", 512, 11, cpu),
      match("cpu match", 1024, cpu),
  };
  if (!options.images.empty()) add_real(set, "cpu", options.images, cpu);
  if (!gpu) return set;
  set.push_back(track("gpu pair", 2048, 2, cuda));
  set.push_back(track("gpu sequence", 512, 11, cuda));
  set.push_back(match("gpu match", 2048, cuda));
  if (!options.images.empty()) add_real(set, "gpu", options.images, cuda);
  return set;
}

/// The commands of the set named in `only`. Throws UsageError for an unknown name.
std::vector<FixedCommand> chosen(const std::vector<PlannedCommand>& set, const Words& only,
                                 const CommandFiles& files) {
  std::string names;
  for (const PlannedCommand& command : set) names += (names.empty() ? "" : ", ") + command.name;
  for (const std::string& name : only)
    if (std::ranges::find(set, name, &PlannedCommand::name) == set.end())
      throw UsageError("There is no command \"" + name + "\" in the set: " + names + ".");
  std::vector<FixedCommand> out;
  for (const PlannedCommand& command : set)
    if (only.empty() || std::ranges::find(only, command.name) != only.end())
      out.push_back({command.name, command.arguments(files), command.tracks});
  return out;
}

std::map<std::string, double> stages_of(const fs::path& run_json) {
  std::ifstream stream(run_json);
  const auto json = nlohmann::ordered_json::parse(stream, nullptr, false);
  std::map<std::string, double> stages;
  if (!json.is_object() || !json.contains("seconds")) return stages;
  for (const auto& [stage, seconds] : json["seconds"].items())
    if (seconds.is_number() && stage != "total") stages[stage] = seconds;
  return stages;
}

void add(SpeedReport& report, const std::string& command, const std::string& measure, double seconds) {
  for (CommandTimes& times : report.times)
    if (times.command == command && times.measure == measure) return times.values.push_back(seconds);
  report.times.push_back({command, measure, {seconds}});
}

void run_once(const fs::path& program, const FixedCommand& command, const CommandFiles& files,
              SpeedReport& report) {
  const ProcessTime time = time_process(program, command.arguments);
  add(report, command.name, "wall", time.wall);
  add(report, command.name, "cpu", time.cpu);
  if (!command.tracks) return;
  for (const auto& [stage, seconds] : stages_of(files.output() / "run.json"))
    add(report, command.name, stage, seconds);
}

/// Runs both programs, the other one first in every second turn, so that neither always profits from the
/// caches that the other filled.
void run_turn(int turn, const fs::path& own, const fs::path& other, const FixedCommand& command,
              const CommandFiles& files, BothReports& reports) {
  const bool other_first = turn % 2 == 0;
  if (!other.empty() && other_first) run_once(other, command, files, reports.other);
  run_once(own, command, files, reports.own);
  if (!other.empty() && !other_first) run_once(other, command, files, reports.other);
}

bool uses_gpu(const RegressOptions& options) {
  return options.device != "cpu" && !build_info().devices.empty();
}

}  // namespace

std::vector<std::string> RegressOptions::validate() const {
  std::vector<std::string> out;
  if (device != "auto" && device != "cpu") out.emplace_back("The device must be auto or cpu.");
  if (threads < 0) out.emplace_back("The number of threads must be at least 0.");
  if (turns < kLeastTurns)
    out.emplace_back("There must be at least 8 turns: fewer cannot tell a change from chance.");
  return out;
}

BothReports run_by_turns(const fs::path& own, const fs::path& other, const RegressOptions& options,
                         const std::string& command, const std::function<void(int)>& on_turn,
                         const std::stop_token& stop) {
  if (const auto problems = options.validate(); !problems.empty()) throw UsageError(problems.front());
  const CommandFiles files(options.threads);
  const bool gpu = uses_gpu(options);
  const std::vector<FixedCommand> set = chosen(fixed_set(options, gpu), options.only, files);
  BothReports warm_up;
  for (const FixedCommand& each : set) run_turn(0, own, other, each, files, warm_up);
  Options machine;
  machine.device = gpu ? "cuda" : "cpu";
  machine.threads = options.threads;
  BothReports reports;
  reports.own.machine = reports.other.machine = describe_machine(machine, command);
  for (int turn = 0; turn < options.turns; ++turn) {
    for (const FixedCommand& each : set) {
      if (stop.stop_requested()) throw Cancelled("The benchmark was cancelled.");
      run_turn(turn, own, other, each, files, reports);
    }
    if (on_turn) on_turn(turn + 1);
  }
  return reports;
}

}  // namespace dic::bench

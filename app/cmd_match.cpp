#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/match.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "interruption.hpp"

namespace dic::app {
namespace {

constexpr int kMaxPoses = 100000;  ///< rotations or scales: more is a typing error

constexpr const char* kExamples =
    "Examples:\n"
    "  dic match bolt.png photo.png                             the best place, as a table\n"
    "  dic match bolt.png photo.png --max-matches 20 --draw found.png\n"
    "  dic match bolt.png photo.png --rotation -180:175:5       at any angle\n"
    "  dic match --templates a.png b.png --images *.jpg --json  every template in every image\n"
    "\n";

struct MatchCommand {
  std::vector<std::string> files;  ///< TEMPLATE... IMAGE
  std::vector<std::string> templates, images, masks;
  std::string rotation, scales, draw;
  bool json = false;
  MatchOptions options;
};

/// "VALUE" or "MIN:MAX:STEP" as a list that includes both ends where the step meets MAX.
std::vector<double> parse_range(const std::string& name, const std::string& text) {
  double min = 0, max = 0, step = 0;
  int used = 0;
  const auto is_whole = [&] { return used == static_cast<int>(text.size()); };
  if (std::sscanf(text.c_str(), "%lf%n", &min, &used) == 1 && is_whole()) return {min};
  used = 0;
  if (std::sscanf(text.c_str(), "%lf:%lf:%lf%n", &min, &max, &step, &used) != 3 || !is_whole() ||
      !(step > 0) || !(max >= min) || !((max - min) / step < kMaxPoses))
    throw UsageError(name + " takes MIN:MAX:STEP with MIN <= MAX and STEP > 0, or one value; \"" + text +
                     "\" is neither.");
  constexpr double kRounding = 1e-9;
  const int steps = static_cast<int>(std::floor((max - min) / step + kRounding));
  std::vector<double> values;
  for (int k = 0; k <= steps; ++k) values.push_back(min + k * step);
  return values;
}

void sort_files(MatchCommand& command) {
  const bool listed = !command.templates.empty() || !command.images.empty();
  if (listed && (!command.files.empty() || command.templates.empty() || command.images.empty()))
    throw UsageError("Give TEMPLATE... IMAGE, or --templates and --images together, not a mixture.");
  if (listed) return;
  if (command.files.size() < 2)
    throw UsageError("Give at least one template and the image: TEMPLATE... IMAGE.");
  command.images = {command.files.back()};
  command.templates.assign(command.files.begin(), command.files.end() - 1);
}

std::vector<Image> read_all(const std::vector<std::string>& files) {
  std::vector<Image> images;
  for (const std::string& file : files) images.push_back(read_image(file));
  return images;
}

/// OUT.png for the only image; OUT_1.png, OUT_2.png, ... for several.
std::filesystem::path drawing_path(const MatchCommand& command, std::size_t image) {
  std::filesystem::path path = command.draw;
  if (command.images.size() == 1) return path;
  return path.replace_filename(path.stem().string() + "_" + std::to_string(image + 1) +
                               path.extension().string());
}

/// One image in memory at a time, however many there are.
MatchResult find_in_images(const MatchCommand& command, Matcher& matcher, std::stop_token stop) {
  MatchResult all;
  for (std::size_t k = 0; k < command.images.size(); ++k) {
    const Image image = read_image(command.images[k]);
    MatchResult result = matcher.find(image, stop);
    for (Match& match : result.matches) match.image = static_cast<int>(k);
    if (!command.draw.empty()) write_match_picture(drawing_path(command, k), image, result.matches);
    all.add(std::move(result));
  }
  return all;
}

void print_json(const MatchCommand& command, const MatchResult& result) {
  auto list = nlohmann::ordered_json::array();
  for (const Match& match : result.matches)
    list.push_back({{"image", command.images[match.image]},
                    {"template", command.templates[match.template_index]},
                    {"x", match.x},
                    {"y", match.y},
                    {"center_x", match.center_x},
                    {"center_y", match.center_y},
                    {"score", match.score},
                    {"rotation_deg", match.rotation_deg},
                    {"scale", match.scale}});
  constexpr auto kReplace =
      nlohmann::ordered_json::error_handler_t::replace;  // file names that are not UTF-8
  std::cout << list.dump(2, ' ', false, kReplace) << '\n';
}

void print_table(const MatchCommand& command, const MatchResult& result) {
  std::printf("%10s %10s %10s %10s %8s %9s %7s  %s\n", "x", "y", "center_x", "center_y", "score", "rotation",
              "scale", "template in image");
  for (const Match& match : result.matches)
    std::printf("%10.3f %10.3f %10.3f %10.3f %8.4f %9.3f %7.3f  %s in %s\n", match.x, match.y, match.center_x,
                match.center_y, match.score, match.rotation_deg, match.scale,
                command.templates[match.template_index].c_str(), command.images[match.image].c_str());
  if (result.matches.empty())
    std::printf("No match scores %g or more; the best score found is %.4f. A lower --threshold shows it.\n",
                command.options.threshold, result.best_score);
}

void run_match(MatchCommand& command) {
  sort_files(command);
  if (!command.rotation.empty()) command.options.rotations = parse_range("--rotation", command.rotation);
  if (!command.scales.empty()) command.options.scales = parse_range("--scales", command.scales);
  const Interruption interruption;
  const std::vector<Image> templates = read_all(command.templates), masks = read_all(command.masks);
  Matcher matcher(std::vector<ImageView>(templates.begin(), templates.end()), command.options,
                  std::vector<ImageView>(masks.begin(), masks.end()));
  const MatchResult result = find_in_images(command, matcher, interruption.token());
  command.json ? print_json(command, result) : print_table(command, result);
}

}  // namespace

void add_match(CLI::App& app) {
  auto command = std::make_shared<MatchCommand>();
  MatchOptions& options = command->options;
  CLI::App& match = *app.add_subcommand("match", "Finds templates in images, to a fraction of a pixel");
  match.footer(kExamples + guide("template-matching.md") + " says what the scores mean.");
  match.add_option("files", command->files, "One or more templates, then the image")
      ->type_name("TEMPLATE... IMAGE");
  match
      .add_option("--templates", command->templates, "Templates, with --images instead of TEMPLATE... IMAGE")
      ->type_name("FILE");
  match.add_option("--images", command->images, "Images, each searched for every template")
      ->type_name("FILE");
  match.add_option("--mask", command->masks, "Pixels that are zero do not count; repeat for each template")
      ->allow_extra_args(false)
      ->type_name("FILE");
  match.add_option("--max-matches", options.max_matches, "Most matches per template and image")
      ->capture_default_str();
  match.add_option("--threshold", options.threshold, "Lowest score of a match, -1 to 1")
      ->capture_default_str();
  add_choice(match, "--method", options.method, {Criterion::zncc, Criterion::ncc, Criterion::ssd},
             "zncc ignores brightness and contrast, ncc contrast; ssd takes grey levels as they are");
  match
      .add_option("--rotation", command->rotation,
                  "Degrees, positive from x towards y (clockwise on the screen)")
      ->type_name("MIN:MAX:STEP");
  match.add_option("--scales", command->scales, "Sizes of the template in the image")
      ->type_name("MIN:MAX:STEP");
  match.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  match.add_option("--threads", options.threads, "0 = one per core")->capture_default_str();
  match
      .add_option("--draw", command->draw, "Writes the image with boxes and scores (several: OUT_1.png, ...)")
      ->type_name("OUT.png");
  match.add_flag("--json", command->json, "Prints JSON, best score first, instead of a table");
  match.callback([command] { run_match(*command); });
}

}  // namespace dic::app

#include "view/template_search.hpp"

#include <array>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <filesystem>
#include <span>

#include "match_images.hpp"

namespace dic::app {
namespace {

constexpr int kMostMilliseconds = 20'000;  ///< of a search of poses in one frame
constexpr int kMostMatches = 10'000;       ///< more than anybody looks at

/// A member that has to be a whole number.
int whole_in(const Json& json, const char* name) {
  if (!json.contains(name) || !json[name].is_number_integer())
    throw UsageError(std::string("The page asked without a whole number \"") + name + "\".");
  return json[name].get<int>();
}

std::array<int, 4> rect_in(const Json& named) { return named.at("rect").get<std::array<int, 4>>(); }

/// An image on which a template was drawn, and where.
std::string name_of(const Json& named, const NamedImages& frames) {
  if (named.contains("path")) return named["path"].get<std::string>();
  const auto [x, y, width, height] = rect_in(named);
  std::string name = frames.name(whole_in(named, "frame")) + " at ";
  for (const int value : {x, y, width}) name += std::to_string(value) + ",";
  return name + std::to_string(height);
}

std::optional<PoseRange> range_in(const Json& asked, const char* name) {
  if (!asked.contains(name) || asked[name].is_null()) return std::nullopt;
  const auto [min, max] = asked[name].get<std::array<double, 2>>();
  return PoseRange{min, max};
}

MatchOptions options_in(const Json& asked) {
  MatchOptions options;
  options.threshold = asked.value("threshold", options.threshold);
  options.max_matches = whole_in(asked, "max_matches");
  if (options.max_matches > kMostMatches)
    throw UsageError("The page shows at most 10000 matches in an image.");
  options.rotation_range = range_in(asked, "rotations");
  options.scale_range = range_in(asked, "scales");
  options.timeout_ms = options.rotation_range || options.scale_range ? kMostMilliseconds : 0;
  options.device = "cpu";  // a GPU takes longer to be ready than one search takes
  for (const std::string& problem : options.validate()) throw UsageError(problem);
  return options;
}

/// Pixels of the template that count; empty for all.
Image mask_of(const Json& named) {
  return named.contains("path") ? read_opacity(named["path"].get<std::string>()) : Image();
}

Json match_json(const Match& match) {
  Json json = {{"x", match.x},
               {"y", match.y},
               {"center_x", match.center_x},
               {"center_y", match.center_y},
               {"score", match.score},
               {"rotation_deg", match.rotation_deg},
               {"scale", match.scale},
               {"corners", box_corners(match)}};
  if (!match.refined) return json;
  json["sigma_x"] = match.sigma_x;
  json["sigma_y"] = match.sigma_y;
  json["sigma_rotation_deg"] = match.sigma_rotation_deg;
  json["sigma_scale"] = match.sigma_scale;
  json["visible"] = match.visible;
  return json;
}

}  // namespace

Image template_image(const Json& named, const NamedImages& frames, const AllowedFolders& folders) {
  if (!named.is_object()) throw UsageError("The page asked without a template.");
  if (!named.contains("path"))
    return part_of(frames.read(whole_in(named, "frame")), rect_in(named), "The template");
  const auto path = named["path"].get<std::string>();
  folders.check(path, "The template");
  return read_image(path);
}

Matcher& TemplateSearch::matcher_for(Json asked, const NamedImages& frames, const AllowedFolders& folders) {
  asked.erase("frame");
  const std::string key = dump(asked);
  if (matcher_ && key == made_for_) return *matcher_;
  matcher_ = nullptr;
  const Json named = asked.value("template", Json());
  const Image image = template_image(named, frames, folders);
  const Image mask = mask_of(named);
  const ImageView templates[] = {image}, masks[] = {mask};
  matcher_ = std::make_unique<Matcher>(templates, options_in(asked),
                                       std::span<const ImageView>(masks, mask.empty() ? 0 : 1));
  made_for_ = key;
  return *matcher_;
}

Json TemplateSearch::find(const Json& asked, const NamedImages& frames, const AllowedFolders& folders) {
  const std::lock_guard alone(mutex_);
  const int frame = whole_in(asked, "frame");
  Matcher& matcher = matcher_for(asked, frames, folders);
  const MatchResult found = matcher.find(frames.read(frame));
  Json matches = Json::array();
  for (const Match& match : found.matches) matches.push_back(match_json(match));
  return {{"template", name_of(asked["template"], frames)},
          {"image", frames.name(frame)},
          {"best_score", found.best_score},
          {"timed_out", found.timed_out},
          {"matches", matches}};
}

void TemplateSearch::forget() {
  const std::lock_guard alone(mutex_);
  matcher_ = nullptr;
  made_for_.clear();
}

}  // namespace dic::app

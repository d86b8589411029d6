#include "view/folder_list.hpp"

#include <algorithm>
#include <cctype>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <vector>

#include "commands.hpp"

namespace dic::app {
namespace {

constexpr std::size_t kMostEntries = 2000;  ///< more names help nobody to choose

bool is_allowed(const std::filesystem::path& path, const AllowedFolders& allowed) {
  try {
    allowed.check(path, "This");
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

std::vector<std::filesystem::path> images_in(const std::filesystem::path& folder) {
  try {
    return expand_frames({folder.string()});
  } catch (const Error&) {
    return {};  // it has none
  }
}

/// True for names of calibrations of two cameras: those of dic, OpenCV, and other programs.
bool may_be_calibration(const std::filesystem::path& path) {
  constexpr std::string_view kEndings[] = {".json", ".xml", ".yaml", ".yml", ".txt", ".caldat", ".csv"};
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

/// "folder", "result", "video", "image" or "calibration"; empty for anything else. images: sorted.
std::string kind_of(const std::filesystem::path& path, const std::vector<std::filesystem::path>& images) {
  std::error_code unknown;
  if (is_result(path)) return "result";
  if (std::filesystem::is_directory(path, unknown)) return "folder";
  if (std::ranges::binary_search(images, path)) return "image";
  if (!std::filesystem::is_regular_file(path, unknown)) return "";
  return is_video(path) ? "video" : may_be_calibration(path) ? "calibration" : "";
}

}  // namespace

Json folder_list(const std::string& folder, const AllowedFolders& allowed) {
  allowed.check(folder, "The folder");
  std::error_code failure;
  const std::filesystem::path place = std::filesystem::canonical(folder.empty() ? "." : folder, failure);
  if (failure) throw FileError("The folder " + folder + " cannot be read: " + failure.message() + ".");
  std::vector<std::filesystem::path> paths;
  std::filesystem::directory_iterator entry(place, failure);
  if (failure)
    throw FileError("The folder " + place.string() + " cannot be read: " + failure.message() + ".");
  for (; entry != std::filesystem::directory_iterator() && paths.size() < kMostEntries;
       entry.increment(failure)) {
    if (failure) break;
    const std::filesystem::path& path = entry->path();
    if (!path.filename().string().starts_with('.') && is_allowed(path, allowed)) paths.push_back(path);
  }
  std::ranges::sort(paths, [](const auto& a, const auto& b) {
    return natural_less(a.filename().string(), b.filename().string());
  });
  std::vector<std::filesystem::path> images = images_in(place);
  std::ranges::sort(images);
  Json entries = Json::array();
  for (const std::filesystem::path& path : paths)
    if (const std::string kind = kind_of(path, images); !kind.empty())
      entries.push_back({{"name", path.filename().string()}, {"path", path.string()}, {"kind", kind}});
  const std::filesystem::path parent = place.parent_path();
  return {{"folder", place.string()},
          {"parent", is_allowed(parent, allowed) ? parent.string() : std::string()},
          {"is_result", is_result(place)},
          {"images", images.size()},
          {"entries", entries}};
}

void check_frames(const std::string& frames, const AllowedFolders& allowed) {
  allowed.check(frames, "What was chosen");
  if (is_video(frames)) return;
  for (const std::filesystem::path& file : expand_frames({frames})) allowed.check(file, "The frame");
}

}  // namespace dic::app

#include "view/track_settings.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <dic/error.hpp>
#include <dic/track_options.hpp>

#include "config_file.hpp"

namespace dic::app {
namespace {

/// Options of the command line that say how it talks; --save-config writes them too.
constexpr const char* kOfCommandLine[] = {"quiet", "verbose"};

/// An item of a file as its option takes it.
std::string value_of(const CLI::ConfigItem& item, const TrackOption& option) {
  if (option.kind == OptionKind::flag) return CLI::ConfigTOML().to_flag(item);
  std::string all;
  for (const std::string& input : item.inputs) all += (all.empty() ? "" : ";") + input;
  return all;
}

template <typename Use>
void for_each_item(const std::string& toml, const Use& use) {
  for (const CLI::ConfigItem& item : config_items(toml, "the settings")) {
    if (std::ranges::find(kOfCommandLine, item.name) != std::end(kOfCommandLine)) continue;
    try {
      use(item, track_option(item.name));
    } catch (const UsageError& e) {  // the library's sentence goes on on a command line
      const std::string sentence = e.what();
      throw UsageError(sentence.ends_with('.') ? sentence : sentence + ".");
    } catch (const CLI::Error& e) {  // a list where a flag belongs
      throw UsageError("Key \"" + item.name + "\" in the settings: " + e.what() + ".");
    }
  }
}

}  // namespace

Json option_list() {
  Json list = Json::array();
  const TrackJob defaults;
  for (const TrackOption& option : track_options())
    list.push_back(
        {{"name", option.name},
         {"group", option.level == OptionLevel::advanced ? "Advanced" : option.group},
         {"shown", option.level != OptionLevel::hidden},
         {"flag", option.kind == OptionKind::flag},
         {"type", option.placeholder},
         {"choices", option.kind == OptionKind::choice ? option.choices : std::vector<std::string>()},
         {"words", option.choices},
         {"description", option.help},
         {"default", option.get(defaults)}});
  return list;
}

Json settings_of(const std::string& toml) {
  Json values = Json::object();
  for_each_item(toml, [&](const CLI::ConfigItem& item, const TrackOption& option) {
    const std::string value = value_of(item, option);
    TrackJob unused;
    if (value.empty() || value == option.get(unused)) return;
    if (option.kind == OptionKind::flag)
      values[option.name] = value == "true";
    else if (option.kind == OptionKind::polygons)
      values[option.name] = item.inputs;
    else
      values[option.name] = value;
  });
  return values;
}

std::filesystem::path AllowedFolders::real(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const fs::path without_dots = fs::weakly_canonical(fs::absolute(path.empty() ? "." : path));
  return fs::weakly_canonical(
      without_dots);  // ".." behind a folder that does not exist may have led to a link
}

void AllowedFolders::add(const std::filesystem::path& folder) { folders_.push_back(real(folder)); }

void AllowedFolders::check(const std::filesystem::path& path, const std::string& what) const {
  if (path.native().find('\0') != std::string::npos)
    throw UsageError(what + " has a name with a null character.");
  const std::filesystem::path place = real(path);
  for (const std::filesystem::path& folder : folders_) {
    const auto [end, unused] = std::ranges::mismatch(folder, place);
    if (end == folder.end()) return;
  }
  throw UsageError(
      what +
      " has to lie in the folder where dic view was started, in that of the frames or in that of "
      "the results: " +
      path.string() + " does not.");
}

TrackJob job_from(const std::string& toml, const AllowedFolders& folders) {
  TrackJob job;
  for_each_item(toml, [&](const CLI::ConfigItem& item, const TrackOption& option) {
    const std::string value = value_of(item, option);
    if (value.empty()) return;
    if (option.kind == OptionKind::file) folders.check(value, "The file of \"" + option.name + "\"");
    option.set(job, value);
  });
  folders.check(job.output, "The output");
  return job;
}

}  // namespace dic::app

#include "view/session.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/info.hpp>
#include <dic/preview.hpp>
#include <random>
#include <sstream>
#include <utility>

#include "view/probe_answer.hpp"
#include "view/web_files.hpp"

namespace dic::app {
namespace {

namespace fs = std::filesystem;

PageAnswer json_answer(const Json& json) { return {.body = dump(json)}; }

PageAnswer error_answer(int status, const std::string& sentence) {
  return {.status = status, .body = dump({{"error", sentence}})};
}

PageAnswer bytes_answer(std::string bytes) {
  return {.type = "application/octet-stream", .body = std::move(bytes)};
}

PageAnswer image_answer(PageImage image) {
  PageAnswer answer = bytes_answer(std::move(image.bytes));
  answer.headers = {{"X-Width", std::to_string(image.width)},
                    {"X-Height", std::to_string(image.height)},
                    {"X-Reduced", std::to_string(image.reduced)},
                    {"X-Type", std::string(to_string(image.type))}};
  return answer;
}

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> words;
  std::istringstream stream(path);
  for (std::string word; std::getline(stream, word, '/');) words.push_back(word);
  return words;
}

/// A whole number, or nothing.
std::optional<int> whole(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Folders of files, globs and folders.
std::vector<fs::path> folders_of(const std::vector<std::string>& arguments) {
  std::vector<fs::path> folders;
  for (const std::string& argument : arguments)
    folders.push_back(fs::is_directory(argument) ? fs::path(argument) : fs::path(argument).parent_path());
  return folders;
}

/// All frames of a result, by number.
std::vector<int> all_frames(const Result& result) {
  std::vector<int> numbers(result.frame_count());
  for (int k = 0; k < result.frame_count(); ++k) numbers[k] = k;
  return numbers;
}

Json preview_json(const Preview& found) {
  Json values = Json::array();
  for (const float sigma : found.sigma) values.push_back(std::isfinite(sigma) ? Json(sigma) : Json());
  const Grid& grid = found.grid;
  return {
      {"speckle_size", found.speckle_size},
      {"mean", found.mean},
      {"contrast", found.contrast},
      {"relative_contrast", found.relative_contrast},
      {"saturated", found.saturated},
      {"noise", found.noise},
      {"prefilter", found.prefilter},
      {"points", found.points},
      {"subset", found.subset},
      {"step", found.step},
      {"reason", found.reason},
      {"sigma",
       {{"grid", {{"x0", grid.x0}, {"y0", grid.y0}, {"step", grid.step}, {"nx", grid.nx}, {"ny", grid.ny}}},
        {"values", values},
        {"median", found.median_sigma},
        {"ninety_percent", found.ninety_percent_sigma}}}};
}

/// A member that has to be text.
std::string text_in(const Json& json, const char* name) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_string())
    throw UsageError(std::string("The page asked without \"") + name + "\".");
  return json[name].get<std::string>();
}

/// The arguments of a command as `command_line` writes it: a backslash takes the next character as it is,
/// outside of the quotes.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool is_quoted = false, begun = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\'') {
      is_quoted = !is_quoted;
      begun = true;
    } else if (c == ' ' && !is_quoted) {
      if (begun) words.push_back(std::exchange(word, {}));
      begun = false;
    } else {
      if (c == '\\' && !is_quoted && i + 1 < command.size()) ++i;
      word += command[i];
      begun = true;
    }
  }
  if (begun) words.push_back(word);
  return words;
}

/// A word for one answer of the page's own, which no other site can know.
std::string nonce() {
  std::random_device system;
  return std::to_string(system()) + std::to_string(system());
}

}  // namespace

namespace {

/// True if a frame of this name may be the first of a file with several, as FrameSource names them.
bool may_begin_with(const fs::path& file, const std::string& frame) {
  std::string first = file.stem().string() + "_000000";
  std::ranges::replace(first, '.', '_');
  return first == frame;
}

}  // namespace

std::vector<std::string> images_of(const Result& result) {
  const std::vector<std::string> words = words_of(result.info().command);
  const std::string reference = fs::path(result.info().reference).filename().string();
  std::vector<std::string> files;  // files that the command names one by one
  for (const std::string& word : words) {
    try {
      const auto found = expand_frames({word});
      const bool is_one = found.size() == 1 && found.front() == word;
      if (std::ranges::any_of(found, [&](const fs::path& file) { return may_begin_with(file, reference); }))
        return {word};
      if (is_one && fs::path(word).extension() == fs::path(reference).extension()) files.push_back(word);
      const auto is_reference = [&](const fs::path& file) { return file.filename() == reference; };
      if (!is_one && std::ranges::any_of(found, is_reference)) return {word};
    } catch (const Error&) {
      continue;  // an option, or files that are not there
    }
  }
  const auto is_reference = [&](const std::string& file) { return fs::path(file).filename() == reference; };
  return std::ranges::any_of(files, is_reference) ? files : std::vector<std::string>();
}

Session::Session(ViewInput input) : input_(std::move(input)) {
  if (input_.result) {
    result_ = std::make_shared<const Result>(*input_.result);
    if (input_.frames.empty()) {
      const std::vector<std::string> found = images_of(*result_);
      if (!found.empty()) images_ = NamedImages(found);
    }
  }
  if (!input_.frames.empty()) images_ = NamedImages(input_.frames);
  folders_.add(".");
  folders_.add(input_.output);
  for (const fs::path& folder : folders_of(input_.frames)) folders_.add(folder);
  if (!input_.settings.empty()) settings_of(input_.settings);  // an error now, not in the page
}

PageAnswer Session::answer(const PageRequest& request) {
  try {
    const std::vector<std::string> words = split(request.path);
    if (request.method == "GET") return words.empty() ? page() : get(words);
    if (words.size() == 2 && words[0] == "api") {
      const Json asked = Json::parse(request.body, nullptr, false);
      if (asked.is_object()) return post(words[1], asked);
    }
    return error_answer(404, "There is nothing here.");
  } catch (const Error& e) {
    return error_answer(400, e.what());
  } catch (const Json::exception&) {
    return error_answer(400, "The page asked for something that makes no sense.");
  } catch (const std::exception& e) {
    return error_answer(500, e.what());
  }
}

PageAnswer Session::page() const {
  const std::string word = nonce();
  const std::string head =
      "<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"web/style.css\">\n<script "
      "type=\"importmap\" "
      "nonce=\"" +
      word + "\">{\"imports\": {\"dic/\": \"./web/\"}}</script>";
  PageAnswer answer{.type = media_type("index.html"),
                    .body = page_with(head,
                                      "<script src=\"web/chart.js\"></script>\n"
                                      "<script type=\"module\" src=\"web/main.js\"></script>")};
  answer.headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self' 'nonce-" + word +
           "'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
           "form-action 'none'; frame-ancestors 'none'"},
      {"X-Frame-Options", "DENY"}};
  return answer;
}

PageAnswer Session::get(const Words& words) {
  const std::size_t n = words.size();
  if (n == 2 && words[0] == "web") {
    const auto files = web_files();
    const auto file = std::ranges::find(files, words[1], &WebFile::name);
    if (file == files.end()) return error_answer(404, "There is nothing here.");
    return {.type = media_type(words[1]), .body = std::string(file->content)};
  }
  if (n < 2 || words[0] != "api") return error_answer(404, "There is nothing here.");
  if (n == 2 && words[1] == "state") return json_answer(state());
  if (n == 2 && words[1] == "run") return json_answer(measurement_.progress());
  if (n == 3 && words[1] == "image") return image(words[2]);
  if (n == 3 && words[1] == "frame") return input_frame(words[2]);
  if (n == 2 && words[1] == "result") {
    const auto shown = result();
    Json json = result_json(*shown, input_.description, all_frames(*shown));
    json["has_images"] = !images_.empty();
    return json_answer(json);
  }
  if (n == 3 && words[1] == "grown") {
    const std::optional<int> from = whole(words[2]);
    if (!from || *from < 0) return error_answer(404, "There is no frame " + words[2] + ".");
    return json_answer(grown(*from));
  }
  if (n == 4 && words[1] == "field") {
    const std::optional<int> frame = whole(words[3]);
    if (!frame) return error_answer(404, "There is no frame " + words[3] + ".");
    return bytes_answer(field_bytes(*result(), words[2], *frame));
  }
  if (words[1] == "live") {
    const auto live = measurement_.live();
    if (!live) return error_answer(404, "There is no field yet.");
    if (n == 2) return json_answer(live_json(*live, reference().size()));
    if (n == 3) return bytes_answer(live_bytes(*live, words[2]));
  }
  return error_answer(404, "There is nothing here.");
}

PageAnswer Session::post(const std::string& what, const Json& asked) {
  if (what == "settings") return json_answer({{"values", settings_of(text_in(asked, "toml"))}});
  if (what == "preview") return preview_of(text_in(asked, "toml"));
  if (what == "mask") return mask_of(text_in(asked, "toml"));
  if (what == "probe") return json_answer(probe_answer(*result(), asked));
  if (what == "run") return json_answer(start(text_in(asked, "toml"), asked.value("force", false)));
  if (what == "cancel") {
    measurement_.cancel();
    return json_answer(Json::object());
  }
  return error_answer(404, "There is nothing here.");
}

Json Session::state() {
  Json json;
  json["version"] = version();
  json["result"] = has_result();
  json["running"] = measurement_.running();
  json["options"] = option_list();
  Json values = settings_of(input_.settings);
  if (!values.contains("output") && input_.output != TrackJob{}.output)
    values["output"] = input_.output.string();
  json["values"] = values;
  json["frames"] = {{"typed", input_.frames}, {"names", Json::array()}};
  for (int k = 0; k < images_.count() && !input_.frames.empty(); ++k)
    json["frames"]["names"].push_back(images_.name(k));
  json["reference"] = nullptr;
  if (!input_.frames.empty()) {
    const Image& image = reference();
    json["reference"] = {
        {"width", image.width()}, {"height", image.height()}, {"type", to_string(image.type())}};
  }
  json["title"] = !input_.description.title.empty() ? input_.description.title
                  : input_.frames.empty()           ? result_->path().parent_path().filename().string()
                                                    : images_.name(0);
  return json;
}

const Image& Session::reference() {
  const std::lock_guard lock(mutex_);
  if (reference_) return *reference_;
  if (images_.empty()) throw FileError("The images are not known: name them behind the result.");
  int index = 0;
  if (result_ && input_.frames.empty())
    index = images_.find(fs::path(result_->info().reference).filename().string()).value_or(0);
  reference_ = images_.read(index);
  return *reference_;
}

bool Session::has_result() {
  const std::lock_guard lock(mutex_);
  return !measurement_.running() && (result_ || !reopens_.empty() || measurement_.finished());
}

std::shared_ptr<const Result> Session::result() {
  // Libraries of HDF5 may be without thread safety.
  if (measurement_.running()) throw UsageError("A measurement is under way.");
  const std::lock_guard lock(mutex_);
  if (const auto folder = measurement_.finished();
      folder && (!result_ || result_->path().parent_path() != *folder))
    result_ = std::make_shared<const Result>(*folder);
  if (!result_ && !reopens_.empty()) result_ = std::make_shared<const Result>(reopens_);
  if (!result_) throw UsageError("There is no result yet.");
  return result_;
}

Json Session::grown(int from) {
  std::shared_ptr<const Result> shown = result();
  const std::filesystem::path path = shown->path();
  const std::string stamp = file_stamp(path);
  // run.json is read first, so that frames that come after it are found the next time.
  Json json = {{"growing", is_growing(*shown)}};
  shown.reset();
  {
    const std::lock_guard lock(mutex_);
    // HDF5 sees a file as it was as long as anybody here has it open; who reads now delays it to the next
    // time.
    if (stamp != stamp_ && result_ && result_->path() == path && result_.use_count() == 1) {
      result_.reset();
      reopens_ = path;
      result_ = std::make_shared<const Result>(path);
      stamp_ = stamp;
    }
  }
  shown = result();
  std::vector<int> numbers;
  for (int k = from; k < shown->frame_count(); ++k) numbers.push_back(k);
  json["frames"] = frames_json(*shown, numbers);
  return json;
}

PageAnswer Session::image(const std::string& which) {
  if (which == "reference") return image_answer(page_image(reference()));
  const std::optional<int> frame = whole(which);
  const auto shown = result();
  if (!frame || *frame < 0 || *frame >= shown->frame_count() || images_.empty())
    return error_answer(404, "There is no image of frame " + which + ".");
  const std::optional<int> index = images_.find(fs::path(shown->frame_names()[*frame]).filename().string());
  if (!index) return error_answer(404, "The image " + shown->frame_names()[*frame] + " is not there.");
  return image_answer(page_image(images_.read(*index)));
}

PageAnswer Session::input_frame(const std::string& which) const {
  const std::optional<int> index = whole(which);
  if (!index || input_.frames.empty() || *index < 0 || *index >= images_.count())
    return error_answer(404, "There is no frame " + which + ".");
  return image_answer(page_image(images_.read(*index)));
}

TrackJob Session::job_of(const std::string& toml) const {
  TrackJob job = job_from(toml, folders_);
  job.frames = input_.frames;
  return job;
}

PageAnswer Session::preview_of(const std::string& toml) {
  const TrackJob job = job_of(toml);
  return json_answer(preview_json(preview(job.options, reference(), job.roi)));
}

PageAnswer Session::mask_of(const std::string& toml) {
  const Image mask = rasterize(job_of(toml).roi, reference().size());
  return bytes_answer({reinterpret_cast<const char*>(mask.row<std::uint8_t>(0)),
                       static_cast<std::size_t>(mask.width()) * mask.height()});
}

Json Session::start(const std::string& toml, bool force) {
  if (input_.frames.empty()) throw UsageError("There are no frames to measure: name them to dic view.");
  TrackJob job = job_of(toml);
  job.force = force;
  job.command = input_.command;
  {
    const std::lock_guard lock(mutex_);
    if (const auto folder = measurement_.finished())
      reopens_ = *folder;
    else if (result_)
      reopens_ = result_->path();
    result_ = nullptr;  // the run may replace the file, so nobody may read it meanwhile
  }
  measurement_.start(std::move(job));
  return Json::object();
}

}  // namespace dic::app

#include "view/session.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/info.hpp>
#include <dic/preview.hpp>
#include <dic/result_strain.hpp>
#include <random>
#include <sstream>
#include <utility>

#include "commands.hpp"
#include "view/folder_list.hpp"
#include "view/loads_answer.hpp"
#include "view/probe_answer.hpp"
#include "view/report.hpp"
#include "view/strain_preview.hpp"
#include "view/web_files.hpp"

namespace dic::app {
namespace {

namespace fs = std::filesystem;

constexpr int kLongestCameraImage = 1600;      ///< side of an image that is shown while a camera runs, px
constexpr double kDemandedStrainSigma = 2e-4;  ///< unless the page asks for another
/// Bytes of a request without a table of loads: settings with a region of thousands of corners.
constexpr std::size_t kLargestWithoutTable = 4 << 20;

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

/// A word of a command for `words_of`, as a shell takes it.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

StrainOptions strain_in(const Json& asked) {
  StrainOptions strain;
  if (!asked.contains("window") || !asked["window"].is_number_integer())
    throw UsageError("The strain window has to be a whole number of points.");
  strain.window = asked["window"].get<int>();
  const auto measure = from_name<StrainMeasure>(text_in(asked, "measure"));
  if (!measure) throw UsageError("There is no such strain measure.");
  strain.measure = *measure;
  for (const std::string& problem : strain.validate()) throw UsageError(problem);
  return strain;
}

TestDescription description_in(const Json& asked) {
  const Json texts = asked.value("description", Json::object());
  const auto text = [&](const char* name) {
    return texts.is_object() && texts.contains(name) ? text_in(texts, name) : std::string();
  };
  return {.title = text("title"),
          .camera = text("camera"),
          .lens = text("lens"),
          .lighting = text("lighting"),
          .pattern = text("pattern"),
          .specimen = text("specimen"),
          .operated_by = text("operator"),
          .note = text("note")};
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

/// The images of the left camera as the run named them; empty with one camera. Those of the right one may
/// have the same names.
std::vector<std::string> left_images_of(const Result& result) {
  const Json settings = Json::parse(result.info().settings_json, nullptr, false);
  if (!settings.is_object() || !settings.contains("left") || !settings["left"].is_array()) return {};
  const auto folder = settings.find("folder");
  const fs::path base = folder != settings.end() && folder->is_string() ? folder->get<std::string>() : "";
  std::vector<std::string> names;
  for (const Json& name : settings["left"])
    if (name.is_string()) names.push_back((base / name.get<std::string>()).string());
  return names;
}

}  // namespace

std::vector<std::string> images_of(const Result& result) {
  const std::vector<std::string> left = left_images_of(result);
  const std::vector<std::string> words = left.empty() ? words_of(result.info().command) : left;
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
  if (request.path == "api/open") {
    const std::unique_lock alone(opening_);
    return answer_of(request);
  }
  const std::shared_lock among_others(opening_);
  return answer_of(request);
}

PageAnswer Session::answer_of(const PageRequest& request) {
  try {
    const std::vector<std::string> words = split(request.path);
    if (request.method == "GET") return words.empty() ? page() : get(words);
    if (words.size() == 2 && words[0] == "api") {
      const bool may_have_table = words[1] == "loads" || words[1] == "report";
      if (request.body.size() > kLargestWithoutTable && !may_have_table)
        return error_answer(413, "The page sent more than 4 MiB, too much for settings.");
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
  if (n == 2 && words[1] == "result") return json_answer(shown_result());
  if (n == 3 && words[1] == "grown") {
    const std::optional<int> from = whole(words[2]);
    if (!from || *from < 0) return error_answer(404, "There is no frame " + words[2] + ".");
    return json_answer(grown(*from));
  }
  if (n == 4 && words[1] == "field") {
    const std::optional<int> frame = whole(words[3]);
    if (!frame) return error_answer(404, "There is no frame " + words[3] + ".");
    const auto shown = result();
    const std::lock_guard alone(reading_);
    return bytes_answer(field_bytes(*shown, words[2], *frame));
  }
  if (n == 4 && words[1] == "other") {
    const std::optional<int> frame = whole(words[3]);
    const std::lock_guard alone(reading_);
    if (!frame || !other_) return error_answer(404, "There is no such frame to compare with.");
    return bytes_answer(field_bytes(*other_, words[2], *frame));
  }
  if (words[1] == "target" && n == 3) {
    const std::optional<int> index = whole(words[2]);
    if (!index) return error_answer(404, "There is no image " + words[2] + " of a target.");
    return image_answer(page_image(calibration_.image(*index)));
  }
  if (words[1] == "cameras" && n == 2) return json_answer(camera_list());
  if (words[1] == "camera") return camera(words);
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
  if (what == "preview")
    return preview_of(text_in(asked, "toml"), asked.value("strain_sigma", kDemandedStrainSigma));
  if (what == "mask") return mask_of(text_in(asked, "toml"));
  if (what == "probe") {
    const auto shown = result();
    const std::lock_guard alone(reading_);
    return json_answer(probe_answer(*shown, asked));
  }
  if (what == "loads") {
    const auto shown = result();
    const std::lock_guard alone(reading_);
    return json_answer(loads_answer(*shown, asked));
  }
  if (what == "folder") return json_answer(folder_list(text_in(asked, "folder"), folders_));
  if (what == "open") return json_answer(open(text_in(asked, "path")));
  if (what == "strain") return json_answer(change_strain(asked));
  if (what == "keep-strain") return json_answer(keep_strain());
  if (what == "other") return json_answer(open_other(text_in(asked, "path")));
  if (what == "report") return report_of(asked);
  if (what == "run") return json_answer(start(text_in(asked, "toml"), asked.value("force", false)));
  if (what == "match") return json_answer(search_.find(asked, images_, folders_));
  if (what == "template") return image_answer(page_image(template_image(asked, images_, folders_)));
  if (what == "targets") return json_answer(calibration_.choose(asked, folders_));
  if (what == "calibrate") return json_answer(calibration_.calibrate(asked));
  if (what == "keep-camera")
    return json_answer({{"path", calibration_.save(text_in(asked, "path"), asked.value("force", false),
                                                   folders_, input_.command)}});
  if (what == "camera-look") {
    if (camera_.measuring()) throw UsageError("A camera is being measured: stop it first.");
    camera_.look(camera_request(asked, folders_, CameraUse::look).options);
    return json_answer(Json::object());
  }
  if (what == "camera-measure") return json_answer(measure_camera(asked));
  if (what == "camera-stop") {
    camera_.stop();
    return json_answer(Json::object());
  }
  if (what == "cancel") {
    measurement_.cancel();
    return json_answer(Json::object());
  }
  return error_answer(404, "There is nothing here.");
}

PageAnswer Session::camera(const Words& words) {
  const std::size_t n = words.size();
  if (n == 3 && (words[2] == "image" || words[2] == "right")) {
    const auto image = words[2] == "right" ? camera_.right_image() : camera_.image();
    if (!image) return error_answer(404, "There is no image of the camera yet.");
    return image_answer(page_image(image->view(), kLongestCameraImage));
  }
  if (n == 4 && words[2] == "field") return bytes_answer(live_bytes(camera_.field(), words[3]));
  const auto image = camera_.image();
  if (n == 3 && words[2] == "field" && image) return json_answer(live_json(camera_.field(), image->size()));
  const std::optional<int> from = n == 3 ? whole(words[2]) : std::nullopt;
  if (!from) return error_answer(404, "There is nothing here.");
  return json_answer(camera_.progress(*from));
}

Json Session::measure_camera(const Json& asked) {
  if (measurement_.running()) throw UsageError("A measurement is under way: cancel it first.");
  CameraRequest request = camera_request(asked, folders_, CameraUse::measure);
  request.job.command = input_.command;
  request.job.force = asked.value("force", false);
  {
    const std::lock_guard alone(reading_);
    const std::lock_guard lock(mutex_);
    if (result_) reopens_ = result_->path();
    result_ = strained_ = other_ = nullptr;  // the camera's result may replace the files
  }
  camera_.measure(std::move(request));
  return Json::object();
}

void Session::require_idle() const {
  if (measurement_.running()) throw UsageError("A measurement is under way: cancel it first.");
  if (camera_.measuring()) throw UsageError("A camera is being measured: stop it first.");
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
                  : !input_.frames.empty()          ? images_.name(0)
                  : result_                         ? result_->path().parent_path().filename().string()
                                                    : std::string();
  return json;
}

Json Session::shown_result() {
  const auto shown = result();
  const auto original = original_and_strained().first;
  const bool is_kept = !original || shown == original;
  TestDescription description = input_.description;
  if (!is_kept && description.title.empty())
    description.title = original->path().parent_path().filename().string();
  const auto strain_of = [](const Result& of) -> Json {
    return {{"window", of.info().strain.window}, {"measure", to_string(of.info().strain.measure)}};
  };
  const std::lock_guard alone(reading_);
  Json json = result_json(*shown, description, all_frames(*shown));
  json["has_images"] = !images_.empty();
  json["strain"] = strain_of(*shown);
  json["strain"]["subset"] = shown->info().subset;
  json["strain"]["stored"] = strain_of(is_kept ? *shown : *original);
  return json;
}

const Image& Session::reference() {
  const std::lock_guard lock(mutex_);
  if (reference_) return *reference_;
  if (images_.empty()) throw FileError("The images of this result were not found.");
  int index = 0;
  if (result_ && input_.frames.empty())
    index = images_.find(fs::path(result_->info().reference).filename().string()).value_or(0);
  reference_ = images_.read(index);
  return *reference_;
}

bool Session::has_result() {
  const std::lock_guard lock(mutex_);
  return !measurement_.running() && !camera_.measuring() &&
         (result_ || !reopens_.empty() || measurement_.finished());
}

std::shared_ptr<const Result> Session::result() {
  // Libraries of HDF5 may be without thread safety.
  require_idle();
  const std::lock_guard lock(mutex_);
  if (const auto folder = measurement_.finished();
      folder && (!result_ || result_->path().parent_path() != *folder)) {
    result_ = std::make_shared<const Result>(*folder);
    strained_ = nullptr;
  }
  if (!result_ && !reopens_.empty()) result_ = std::make_shared<const Result>(reopens_);
  if (!result_) throw UsageError("There is no result yet.");
  return strained_ ? strained_ : result_;
}

Json Session::grown(int from) {
  const std::lock_guard alone(reading_);
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

PageAnswer Session::preview_of(const std::string& toml, double demanded) {
  const TrackJob job = job_of(toml);
  const Preview found = preview(job.options, reference(), job.roi);
  TrackOptions better = job.options;
  better.refine.subset = found.subset;
  better.step = found.step;
  Json json = preview_json(found);
  json["strain"] =
      strain_preview(found, job.options, preview(better, reference(), job.roi), better, demanded);
  return json_answer(json);
}

PageAnswer Session::mask_of(const std::string& toml) {
  const Image mask = rasterize(job_of(toml).roi, reference().size());
  return bytes_answer({reinterpret_cast<const char*>(mask.row<std::uint8_t>(0)),
                       static_cast<std::size_t>(mask.width()) * mask.height()});
}

Json Session::start(const std::string& toml, bool force) {
  if (input_.frames.empty()) throw UsageError("There are no frames to measure: open some first.");
  if (camera_.measuring()) throw UsageError("A camera is being measured: stop it first.");
  TrackJob job = job_of(toml);
  job.force = force;
  job.command = input_.command;
  {
    const std::lock_guard alone(reading_);
    const std::lock_guard lock(mutex_);
    if (const auto folder = measurement_.finished())
      reopens_ = *folder;
    else if (result_)
      reopens_ = result_->path();
    result_ = strained_ = other_ =
        nullptr;  // the run may replace the files, so nobody may read them meanwhile
  }
  measurement_.start(std::move(job));
  return Json::object();
}

Json Session::open(const std::string& path) {
  require_idle();
  ViewInput input;
  input.command = input_.command + " " + quoted(path);
  input.output = input_.output;
  if (input_.frames.empty() && !input_.result) input.settings = input_.settings;  // those of the start
  NamedImages images;
  std::shared_ptr<const Result> opened;
  if (is_result(path)) {
    folders_.check(path, "The result");
    opened = std::make_shared<const Result>(path);
    folders_.check(opened->path(), "The result");
    input.result = path;
    images = allowed_images_of(*opened);
  } else {
    check_frames(path, folders_);
    input.frames = {path};
    images = NamedImages(input.frames);
  }
  input_ = std::move(input);
  images_ = std::move(images);
  search_.forget();
  reference_.reset();
  result_ = opened;
  strained_ = other_ = nullptr;
  reopens_.clear();
  measurement_.forget();
  return Json::object();
}

NamedImages Session::allowed_images_of(const Result& of) const {
  const std::vector<std::string> found = images_of(of);
  try {
    for (const std::string& images : found) check_frames(images, folders_);
  } catch (const Error&) {
    return {};  // the file says where they are, and may say anything
  }
  return found.empty() ? NamedImages() : NamedImages(found);
}

Json Session::change_strain(const Json& asked) {
  const StrainOptions strain = strain_in(asked);
  result();  // opens the result of a run that has just ended
  {
    const std::lock_guard alone(reading_);
    const auto [original, before] = original_and_strained();
    if (!original) throw UsageError("A measurement is under way: cancel it first.");
    if (is_growing(*original))
      throw UsageError("This result is still being written: its strain can be changed when it is complete.");
    const StrainOptions& stored = original->info().strain;
    const bool is_stored = strain.window == stored.window && strain.measure == stored.measure;
    show_strain(original, is_stored ? nullptr : with_strain(*original, strain));
    std::error_code ignored;
    if (before) fs::remove_all(before->path().parent_path(), ignored);
  }
  return shown_result();
}

std::pair<std::shared_ptr<const Result>, std::shared_ptr<const Result>> Session::original_and_strained() {
  const std::lock_guard lock(mutex_);
  return {result_, strained_};
}

void Session::show_strain(std::shared_ptr<const Result> original, std::shared_ptr<const Result> strained) {
  const std::lock_guard lock(mutex_);
  result_ = std::move(original);
  strained_ = std::move(strained);
}

std::shared_ptr<const Result> Session::with_strain(const Result& original, const StrainOptions& strain) {
  if (!scratch_) scratch_.emplace();
  const fs::path folder = scratch_->path() / std::to_string(++strains_);
  write_result_strain({.result = original.path(),
                       .output = folder,
                       .force = false,
                       .strain = strain,
                       .threads = 0,
                       .command = input_.command});
  return std::make_shared<const Result>(folder);
}

Json Session::keep_strain() {
  {
    const std::lock_guard alone(reading_);
    const auto [original, strained] = original_and_strained();
    if (strained) {
      write_result_strain({.result = original->path(),
                           .output = {},
                           .force = false,
                           .strain = strained->info().strain,
                           .threads = 0,
                           .command = input_.command});
      show_strain(std::make_shared<const Result>(original->path()), nullptr);
    }
  }
  return shown_result();
}

Json Session::open_other(const std::string& path) {
  require_idle();
  folders_.check(path, "The result");
  if (!is_result(path)) throw UsageError(path + " is not a result.");
  const std::lock_guard alone(reading_);
  const auto opened = std::make_shared<const Result>(path);
  folders_.check(opened->path(), "The result");
  other_ = opened;
  return result_json(*opened, {}, all_frames(*opened));
}

PageAnswer Session::report_of(const Json& asked) {
  const auto shown = result();
  const std::lock_guard alone(reading_);
  return bytes_answer(
      report_html(*shown, description_in(asked), images_, {}, asked.value("project", Json())));
}

}  // namespace dic::app

#include "view/report.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <dic/error.hpp>
#include <filesystem>
#include <limits>
#include <string_view>

#include "view/web_files.hpp"

namespace dic::app {
namespace {

constexpr int kLongestImage = 2048;  ///< px; of the reference in a report
constexpr double kMostCodes = 65534;
/// Quantities whose predicted standard deviation says how fine they are worth keeping.
constexpr double kStepsPerSigma = 20;
/// Quantities that are only looked at: so many steps over their range are enough.
constexpr double kCoarseSteps = 1000;

std::string base64(std::string_view bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    for (int k = 3; k >= 0; --k) text += kDigits[word >> (6 * k) & 63];
  }
  for (std::size_t k = 0; k < (3 - bytes.size() % 3) % 3; ++k) text[text.size() - 1 - k] = '=';
  return text;
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                bytes.size(), 6) != Z_OK)
    throw Error("Not enough memory to compress a field.");
  out.resize(size);
  return out;
}

/// An element that the page reads by its id.
std::string data_element(const std::string& id, const std::string& bytes) {
  return "<script type=\"application/octet-stream\" id=\"" + id + "\">" + base64(deflated(bytes)) +
         "</script>\n";
}

/// Differences along rows: small numbers that compress well. The page sums them up again.
template <typename T>
void to_differences(std::vector<T>& values, int width) {
  for (std::size_t row = 0; row + width <= values.size(); row += width)
    for (int i = width - 1; i > 0; --i)
      values[row + i] = static_cast<T>(values[row + i] - values[row + i - 1]);
}

struct Encoded {
  double offset = 0, quantum = 1;  ///< value = offset + quantum * code, code 0: missing
  std::string bytes;               ///< low bytes of the differences of all codes, then the high bytes
};

/// sigma: differences below it need not be kept; 0 if unknown.
Encoded encode(const std::vector<float>& values, double sigma, int width) {
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const float value : values)
    if (std::isfinite(value)) least = std::min<double>(least, value), most = std::max<double>(most, value);
  Encoded encoded;
  if (most > least) encoded.quantum = std::max((most - least) / kMostCodes, sigma / kStepsPerSigma);
  encoded.offset = std::isfinite(least) ? least - encoded.quantum : 0;
  std::vector<std::uint16_t> codes;
  for (const float value : values)
    codes.push_back(std::isfinite(value)
                        ? static_cast<std::uint16_t>(std::lround((value - encoded.offset) / encoded.quantum))
                        : 0);
  to_differences(codes, width);
  for (const std::uint16_t code : codes) encoded.bytes += static_cast<char>(code & 0xff);
  for (const std::uint16_t code : codes) encoded.bytes += static_cast<char>(code >> 8);
  return encoded;
}

/// The precision that a quantity of one frame is worth, in its unit.
double worth(const Result& result, const std::string& array, const std::vector<float>& values, int frame) {
  const auto median = [](std::vector<float> of) {
    std::erase_if(of, [](float value) { return !std::isfinite(value); });
    if (of.empty()) return 0.0;
    std::ranges::nth_element(of, of.begin() + of.size() / 2);
    return static_cast<double>(of[of.size() / 2]);
  };
  if (result.has("sigma_" + array)) return median(result.values<float>("sigma_" + array, frame));
  float least = HUGE_VALF, most = -HUGE_VALF;
  for (const float value : values)
    if (std::isfinite(value)) least = std::min(least, value), most = std::max(most, value);
  return most > least ? (most - least) / kCoarseSteps * kStepsPerSigma : 0;
}

std::string status_bytes(const Result& result, int frame) {
  std::vector<std::uint8_t> status = result.values<std::uint8_t>("status", frame);
  to_differences(status, result.grid().nx);
  return {status.begin(), status.end()};
}

/// Elements of all fields; their encoding goes into the description.
std::string field_elements(const Result& result, const std::vector<int>& frames, Json& encoding) {
  std::string elements;
  for (const std::string& array : page_arrays(result)) {
    for (std::size_t k = 0; k < frames.size(); ++k) {
      const std::string id = "field-" + array + "-" + std::to_string(k);
      if (array == "status") {
        elements += data_element(id, status_bytes(result, frames[k]));
        continue;
      }
      const std::vector<float> values = result.values<float>(array, frames[k]);
      const Encoded encoded = encode(values, worth(result, array, values, frames[k]), result.grid().nx);
      encoding[array].push_back({{"offset", encoded.offset}, {"quantum", encoded.quantum}});
      elements += data_element(id, encoded.bytes);
    }
  }
  return elements;
}

/// Shift of every node along an axis from its place in the image to that in corrected coordinates, px.
std::string shift_element(const Result& result, bool along_x, Json& encoding) {
  const Grid& grid = result.grid();
  const NodePositions& on_specimen = *result.positions();
  std::vector<float> shift;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::size_t node = static_cast<std::size_t>(j) * grid.nx + i;
      shift.push_back(
          static_cast<float>(along_x ? on_specimen.x[node] - grid.x(i) : on_specimen.y[node] - grid.y(j)));
    }
  const std::string name = along_x ? "shift_x" : "shift_y";
  const Encoded encoded = encode(shift, 0, grid.nx);
  encoding[name].push_back({{"offset", encoded.offset}, {"quantum", encoded.quantum}});
  return data_element("field-" + name + "-0", encoded.bytes);
}

std::string image_element(const Result& result, const NamedImages& images, Json& description) {
  const std::string name = std::filesystem::path(result.info().reference).filename().string();
  const Image reference = images.read(images.find(name).value_or(0));
  if (reference.size() != result.info().image)
    throw UsageError("The image " + images.name(images.find(name).value_or(0)) +
                     " is not the reference of this result: it has another size. Name the right images, or "
                     "none.");
  const PageImage page = page_image_8bit(reference, kLongestImage);
  std::vector<std::uint8_t> greys(page.bytes.begin(), page.bytes.end());
  to_differences(greys, page.width);
  description = {{"width", page.width}, {"height", page.height}, {"reduced", page.reduced}};
  return data_element("image-reference", {greys.begin(), greys.end()});
}

/// Text inside an element <script>, which "</script" or "<!--" would end: in the strings of a program a
/// backslash in between changes nothing.
std::string inside_script(std::string text) {
  for (const std::string_view mark : {"</script", "<!--"})
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += mark.size())
      text.insert(at + 1, "\\");
  return text;
}

/// JSON has the same letters as numbers.
std::string json_inside_script(const Json& json) {
  std::string text = dump(json);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
  return text;
}

std::string head() {
  Json imports = Json::object();
  for (const WebFile& file : web_files())
    if (file.name.ends_with(".js") && file.name != "chart.js")
      imports["dic/" + std::string(file.name)] = "data:text/javascript;base64," + base64(file.content);
  return "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
         "'unsafe-inline' data:; "
         "style-src 'unsafe-inline'; img-src data: blob:\">\n<link rel=\"icon\" href=\"data:,\">\n<style>\n" +
         std::string(web_file("style.css")) + "</style>\n<script type=\"importmap\">" +
         json_inside_script({{"imports", imports}}) + "</script>";
}

std::vector<int> chosen_frames(const Result& result, const std::vector<int>& frames) {
  std::vector<int> numbers;
  if (frames.empty())
    for (int k = 0; k < result.frame_count(); ++k) numbers.push_back(k);
  for (const int number : frames) {
    const std::vector<std::int64_t>& known = result.frame_numbers();
    const auto found = std::ranges::find(known, number);
    if (found == known.end())
      throw UsageError("There is no frame " + std::to_string(number) + ": the result has " +
                       std::to_string(known.size()) + " frames, from " +
                       std::to_string(known.empty() ? 0 : known.front()) + " to " +
                       std::to_string(known.empty() ? 0 : known.back()) + ".");
    numbers.push_back(static_cast<int>(found - known.begin()));
  }
  return numbers;
}

}  // namespace

std::string report_html(const Result& result, const TestDescription& description, const NamedImages& images,
                        const std::vector<int>& frames, const Json& project) {
  const std::vector<int> numbers = chosen_frames(result, frames);
  Json data, encoding = Json::object(), image = nullptr;
  std::string fields = field_elements(result, numbers, encoding);
  if (result.positions())
    for (const bool along_x : {true, false}) fields += shift_element(result, along_x, encoding);
  const std::string picture = images.empty() ? "" : image_element(result, images, image);
  data["result"] = result_json(result, description, numbers);
  data["result"]["has_images"] = false;
  data["state"] = {{"title", data["result"]["title"]}};
  data["encoding"] = encoding;
  data["project"] = project;
  data["image"] = image;
  const std::string scripts = "<script>" + inside_script(std::string(web_file("chart.js"))) + "</script>\n" +
                              "<script type=\"application/json\" id=\"report-data\">" +
                              json_inside_script(data) + "</script>\n" + picture + fields +
                              "<script type=\"module\">import \"dic/main.js\";</script>";
  return page_with(head(), scripts);
}

}  // namespace dic::app

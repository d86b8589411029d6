#include "camera/import_fields.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "camera/camera_json.hpp"
#include "core/number_text.hpp"

namespace dic::camera {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\f\v";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

/// A number as programs print it, also "+1." and "1e+003".
std::optional<double> number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return core::parse_number<double>(text);
}

/// Removes the unit in brackets or after an underscore, spaces and underscores, and capitals.
std::string plain_name(std::string_view name) {
  name = trimmed(name.substr(0, name.find_first_of("[(")));
  for (const std::string_view unit : {"_px", "_mm", "_deg"})
    if (name.ends_with(unit)) name.remove_suffix(unit.size());
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '"')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

/// Calls line(text) for each line, without its end.
template <typename Body>
void each_line(std::string_view text, const Body& line) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Cells of a line, separated by commas, semicolons or tabs.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t end = line.find_first_of(",;\t");
    cells.push_back(trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

/// The text of the key `name` in a block of YAML, up to the end of its line, or to the ']' of its list.
std::string_view yaml_value(std::string_view block, std::string_view name) {
  const std::size_t at = block.find(std::string(name) + ':');
  if (at == std::string_view::npos) return {};
  const std::string_view rest = block.substr(at + name.size() + 1);
  const std::string_view line = rest.substr(0, rest.find('\n'));
  if (!trimmed(line).starts_with('[')) return line;
  const std::size_t end = rest.find(']');
  if (end == std::string_view::npos) refuse("it ends within the list \"" + std::string(name) + "\"");
  return rest.substr(0, end + 1);
}

/// The numbers of one entry at the top level, which may continue on lines that are indented.
std::vector<double> yaml_numbers(const std::string& name, std::string_view value) {
  if (value.find("!!opencv-matrix") == std::string_view::npos) {
    if (trimmed(value).starts_with('[')) return numbers_in(value, name);
    const auto number = number_of(trimmed(value));
    return number ? std::vector{*number} : std::vector<double>{};
  }
  const auto data = numbers_in(yaml_value(value, "data"), name);
  const auto rows = numbers_in(yaml_value(value, "rows"), name);
  const auto columns = numbers_in(yaml_value(value, "cols"), name);
  const bool has_size =
      rows.size() == 1 && columns.size() == 1 && rows[0] * columns[0] == static_cast<double>(data.size());
  if (!has_size) refuse("the matrix \"" + name + "\" has not as many numbers as its rows and columns say");
  return data;
}

/// Reads XML from the front of a text.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : rest_(text) {}

  /// Reads the content of an element, and its end if it has a name.
  void read(XmlElement& element, int depth) {
    constexpr int kMostDepth = 32;
    if (depth > kMostDepth) refuse("its elements are nested too deeply");
    while (true) {
      element.text += take_until("<", element.name.empty());
      if (rest_.empty()) return;
      if (rest_.starts_with("!--")) {
        take_until("-->", false);
      } else if (rest_.starts_with('!') || rest_.starts_with('?')) {
        take_until(">", false);
      } else if (rest_.starts_with('/')) {
        rest_.remove_prefix(1);
        const std::string_view name = trimmed(take_until(">", false));
        if (name != element.name) refuse("its element <" + element.name + "> does not end");
        return;
      } else {
        element.children.push_back(begin(take_tag()));
        if (!is_closed_) read(element.children.back(), depth + 1);
      }
    }
  }

 private:
  std::string_view take_until(std::string_view mark, bool may_end) {
    const std::size_t end = rest_.find(mark);
    if (end == std::string_view::npos && !may_end) refuse("it ends in the middle of its XML");
    const std::string_view taken = rest_.substr(0, end);
    rest_.remove_prefix(std::min(rest_.size(), taken.size() + mark.size()));
    return taken;
  }

  /// The rest of a tag, up to a '>' that is in no value.
  std::string_view take_tag() {
    char quote = 0;
    for (std::size_t k = 0; k < rest_.size(); ++k) {
      const char c = rest_[k];
      if (quote == 0 && c == '>') {
        const std::string_view taken = rest_.substr(0, k);
        rest_.remove_prefix(k + 1);
        return taken;
      }
      if (quote == 0 && (c == '"' || c == '\''))
        quote = c;
      else if (c == quote)
        quote = 0;
    }
    refuse("it ends in the middle of its XML");
  }

  /// The element whose tag has this content; is_closed_ becomes true if it has no content of its own.
  XmlElement begin(std::string_view tag) {
    is_closed_ = tag.ends_with('/');
    if (is_closed_) tag.remove_suffix(1);
    XmlElement element;
    const std::size_t end = std::min(tag.find_first_of(kSpaces), tag.size());
    element.name = tag.substr(0, end);
    tag.remove_prefix(end);
    while (!(tag = trimmed(tag)).empty()) {
      const std::size_t equals = tag.find('=');
      if (equals == std::string_view::npos) return element;
      const std::string key(trimmed(tag.substr(0, equals)));
      tag = trimmed(tag.substr(equals + 1));
      const std::size_t close = tag.empty() ? std::string_view::npos : tag.find(tag[0], 1);
      if (close == std::string_view::npos || (tag[0] != '"' && tag[0] != '\''))
        refuse("the attribute \"" + key + "\" has no value in quotes");
      element.attributes[key] = tag.substr(1, close - 1);
      tag.remove_prefix(close + 1);
    }
    return element;
  }

  std::string_view rest_;
  bool is_closed_ = false;
};

}  // namespace

std::vector<double> numbers_in(std::string_view text, std::string_view where) {
  constexpr std::string_view kSeparators = " \t\r\n\f\v,;[]{}()";
  std::vector<double> numbers;
  for (std::size_t at = 0; (at = text.find_first_not_of(kSeparators, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const auto number = number_of(text.substr(at, end - at));
    if (!number)
      refuse("\"" + std::string(text.substr(at, std::min<std::size_t>(end - at, 40))) + "\" in " +
             std::string(where) + " is no finite number");
    numbers.push_back(*number);
    at = end;
  }
  return numbers;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  each_line(text, [&](std::string_view line) {
    line = trimmed(line.substr(0, line.find('#')));
    if (!line.empty()) lines.emplace_back(line);
  });
  return lines;
}

Fields fields_of_table(std::string_view text) {
  Fields fields;
  each_line(text, [&](std::string_view line) {
    const auto cells = cells_of(line);
    const std::string name = plain_name(cells[0]);
    if (cells.size() < 2 || name.empty() || name == "name") return;
    std::vector<double> numbers;
    for (std::size_t k = 1; k < cells.size() && !cells[k].empty(); ++k) {
      const auto number = number_of(cells[k]);
      if (!number) {
        numbers.clear();
        break;
      }
      numbers.push_back(*number);
    }
    if (!fields.emplace(name, std::move(numbers)).second)
      refuse(std::string(cells[0].substr(0, 40)) + " is given twice");
  });
  return fields;
}

Fields fields_of_yaml(std::string_view text) {
  Fields fields;
  std::string name, value;
  const auto store = [&] {
    if (!name.empty() && !fields.emplace(name, yaml_numbers(name, value)).second)
      refuse("\"" + name + "\" is given twice");
  };
  each_line(text, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    const bool is_key = !line.empty() && kSpaces.find(line[0]) == std::string_view::npos && line[0] != '%' &&
                        line[0] != '#' && line[0] != '-' && colon != std::string_view::npos;
    if (!is_key) {
      value.append(line).append("\n");
      return;
    }
    store();
    name = plain_name(line.substr(0, colon));
    value = std::string(line.substr(colon + 1)) + "\n";
  });
  store();
  return fields;
}

std::string XmlElement::attribute(const std::string& key) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? std::string() : found->second;
}

std::vector<const XmlElement*> XmlElement::find(std::string_view wanted) const {
  std::vector<const XmlElement*> found;
  for (const XmlElement& child : children) {
    if (child.name == wanted) found.push_back(&child);
    const auto below = child.find(wanted);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

XmlElement parse_xml(std::string_view text) {
  XmlElement root;
  XmlReader(text).read(root, 0);
  return root;
}

}  // namespace dic::camera

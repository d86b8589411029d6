#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <dic/error.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "bench/bench.hpp"
#include "bench/builtin_groups.hpp"
#include "bench/toml_keys.hpp"

namespace dic::bench {
namespace {

using Choice = std::map<std::string, std::string>;  ///< one value per key of a group

/// The keys whose lists expand to all combinations, and their defaults. Later keys vary faster.
struct Key {
  const char* name;
  const char* fallback;  ///< default; null: the key is required
};
constexpr Key kKeys[] = {{"pairing", "one_to_one"},
                         {"type", "u8"},
                         {"reference", nullptr},
                         {"shifts", nullptr},
                         {"window", "reference"},
                         {"n", "1"},
                         {"m", "1"},
                         {"criterion", "zncc"},
                         {"output", "auto"},
                         {"image", "0"},
                         {"masks", "false"},
                         {"level", "call"},
                         {"variant", "planner"}};

/// Throws an error about an invalid value; the caller adds the group's position in the file.
[[noreturn]] void refuse(const std::string& value, const std::string& what) {
  throw UsageError("\"" + value + "\" is not " + what);
}

constexpr int kMost = 10'000'000;  ///< largest number in a group, so that sums of a few fit into an int

int whole_number(std::string_view text, int least, const std::string& what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > kMost)
    refuse(std::string(text), what);
  return value;
}

/// Parses two numbers with a separator between them.
std::pair<int, int> two_numbers(std::string_view text, char separator, int least, const std::string& what) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) refuse(std::string(text), what);
  return {whole_number(text.substr(0, at), least, what), whole_number(text.substr(at + 1), least, what)};
}

/// Parses a size: "31", or "31x33" (height x width).
std::pair<int, int> parse_size(const std::string& text) {
  const std::string what = "a size: give px, or \"31x33\" for height x width";
  if (text.find('x') != std::string::npos) return two_numbers(text, 'x', 1, what);
  const int side = whole_number(text, 1, what);
  return {side, side};
}

template <typename Enum>
Enum parse_name(const std::string& text, const std::string& what) {
  if (const auto value = from_name<Enum>(text)) return *value;
  std::string names;
  for (const std::string& known : names_of<Enum>()) names += (names.empty() ? "" : ", ") + known;
  refuse(text, what + ": use one of " + names);
}

bool parse_flag(const std::string& text) {
  if (text != "true" && text != "false") refuse(text, "true or false");
  return text == "true";
}

void set_type(Case& c, const std::string& text) {
  const std::size_t colon = text.find(':');
  c.type = parse_name<ScalarType>(text.substr(0, colon), "an element type");
  if (colon == std::string::npos) return;
  c.bit_depth = whole_number(text.substr(colon + 1), 1, "a number of bits");
  if (c.type != ScalarType::u16 || c.bit_depth > 16)
    refuse(text, "an element type: bits are for u16, as in \"u16:12\"");
}

void set_shifts(Case& c, const std::string& shifts, const std::string& window) {
  const bool is_radius = shifts.find_first_not_of("0123456789") == std::string::npos;
  std::tie(c.search_h, c.search_w) = window == "reference" ? std::pair{c.ref_h, c.ref_w} : parse_size(window);
  if (is_radius && window == "reference") {
    const int more = 2 * whole_number(shifts, 0, "a radius");
    c.search_h += more, c.search_w += more;
  }
  if (shifts == "full") {
    c.shifts = Shifts::full({c.ref_w, c.ref_h}, {c.search_w, c.search_h});
  } else if (shifts == "valid" || (is_radius && window == "reference")) {
    c.shifts = Shifts::valid({c.ref_w, c.ref_h}, {c.search_w, c.search_h});
  } else {
    const std::string what =
        "a set of shifts: use a radius (without window), \"full\", \"valid\" or \"-3:4,-2:5\"";
    const std::size_t comma = shifts.find(',');
    if (comma == std::string::npos) refuse(shifts, what);
    constexpr int kLeast = -1000000;
    std::tie(c.shifts.dx_min, c.shifts.dx_max) = two_numbers(shifts.substr(0, comma), ':', kLeast, what);
    std::tie(c.shifts.dy_min, c.shifts.dy_max) = two_numbers(shifts.substr(comma + 1), ':', kLeast, what);
  }
}

/// Sets the numbers of matrices; n and m only matter for pairings that use them.
void set_counts(Case& c, const std::string& n_text, const std::string& m_text) {
  const std::int64_t n = whole_number(n_text, 1, "a number of references (n)");
  const std::int64_t m = whole_number(m_text, 1, "a number of windows (m)");
  c.references = c.pairing == Pairing::one_to_many ? 1 : n;
  c.windows = c.pairing == Pairing::one_to_one ? n : m;
  if (c.pairing == Pairing::n_to_mn) c.windows = n * m;
}

Case make_case(const std::string& group, const Choice& choice) {
  Case c;
  c.group = group;
  c.pairing = parse_name<Pairing>(choice.at("pairing"), "a pairing");
  set_type(c, choice.at("type"));
  std::tie(c.ref_h, c.ref_w) = parse_size(choice.at("reference"));
  set_shifts(c, choice.at("shifts"), choice.at("window"));
  set_counts(c, choice.at("n"), choice.at("m"));
  c.criterion = parse_name<Criterion>(choice.at("criterion"), "a criterion");
  const std::string& output = choice.at("output");
  c.output = c.criterion == Criterion::cross_correlation ? Output::surfaces : Output::peaks;
  if (output != "auto") c.output = parse_name<Output>(output, "an output");
  c.image = whole_number(choice.at("image"), 0, "the side of an image in px");
  c.masks = parse_flag(choice.at("masks"));
  return c;
}

constexpr std::string_view kBackends[] = {"cpu", "cuda", "opencl"};

std::string backend_of(const std::string& device) { return device.substr(0, device.find(':')); }

template <typename T>
bool holds(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// True if "all" includes the variant. With CUDA, variants for masks are only used with masks.
bool is_for(const CorrelateVariant& v, const Case& c, const std::string& backend) {
  const bool masks_fit = c.masks ? v.masks : !v.masks || backend != "cuda";
  return v.backend == backend && masks_fit && holds(v.pairings, c.pairing) && holds(v.types, c.type) &&
         holds(v.criteria, c.criterion);
}

/// The variants that `choice` stands for on a backend: "naive" is the simplest one, "all" all that support
/// the case; names of another backend are skipped.
std::vector<std::string> variants_of(const std::string& choice, const Case& c, const std::string& backend) {
  if (choice == "naive") return {backend == "cpu" ? "cpu-naive" : backend + "-basic"};
  const bool names_a_backend = std::ranges::any_of(
      kBackends, [&](std::string_view name) { return choice.starts_with(std::string(name) + "-"); });
  if (names_a_backend && !choice.starts_with(backend + "-")) return {};
  if (choice != "all") return {choice};
  std::vector<std::string> names;
  for (const CorrelateVariant& v : correlate_variants())
    if (is_for(v, c, backend)) names.push_back(v.name);
  return names;
}

/// A number, string or boolean as text.
std::string text_of(const toml::node& node, std::string_view key) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  throw UsageError("the key \"" + std::string(key) +
                   "\" takes a string, a whole number, true, false, or a list of them");
}

std::vector<std::string> values_of(const toml::table& group, const Key& key) {
  const toml::node* node = group.get(key.name);
  if (!node && !key.fallback) throw UsageError("the key \"" + std::string(key.name) + "\" is missing");
  if (!node) return {key.fallback};
  const toml::array* list = node->as_array();
  if (!list) return {text_of(*node, key.name)};
  std::vector<std::string> values;
  for (const toml::node& element : *list) values.push_back(text_of(element, key.name));
  return values;
}

void require_known_keys(const toml::table& group) {
  for (const auto& [name, value] : group) {
    const bool known =
        std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return name.str() == k.name; });
    if (!known && name.str() != "name")
      throw UsageError("there is no key \"" + std::string(name.str()) + "\"");
  }
}

/// Calls `visit` with every combination of the lists' values, the last key varying fastest.
template <typename Visit>
void for_each_choice(const toml::table& group, std::size_t key, Choice& choice, const Visit& visit) {
  if (key == std::size(kKeys)) return visit(choice);
  for (const std::string& value : values_of(group, kKeys[key])) {
    choice[kKeys[key].name] = value;
    for_each_choice(group, key + 1, choice, visit);
  }
}

void add_group(const toml::table& group, const std::string& backend, std::vector<Task>& tasks) {
  require_known_keys(group);
  const std::string name = group["name"].value_or<std::string>("");
  if (name.empty()) throw UsageError("every group needs a \"name\"");
  Choice choice;
  for_each_choice(group, 0, choice, [&](const Choice& one) {
    const Case c = make_case(name, one);
    const Level level = parse_name<Level>(one.at("level"), "a level");
    for (const std::string& variant : variants_of(one.at("variant"), c, backend)) {
      const Task task{c, variant, level};
      if (!holds(tasks, task)) tasks.push_back(task);
    }
  });
}

std::string place(const std::string& name, const toml::source_region& source) {
  return name + ", line " + std::to_string(source.begin.line);
}

}  // namespace

std::vector<Task> parse_tasks(const std::string& text, const std::string& name, const std::string& device) {
  refuse_deep_keys(text, name);
  toml::table file;
  try {
    file = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw UsageError(place(name, error.source()) + " is not TOML: " + std::string(error.description()) + ".");
  }
  const toml::array* groups = file["group"].as_array();
  if (!groups || file.size() != 1 || !groups->is_homogeneous<toml::table>())
    throw UsageError(name + " must hold groups, each under a line [[group]], and nothing else.");
  std::vector<Task> tasks;
  for (const toml::node& group : *groups) try {
      add_group(*group.as_table(), backend_of(device), tasks);
    } catch (const UsageError& error) {
      throw UsageError("In the group at " + place(name, group.source()) + ": " + error.what() + ".");
    }
  return tasks;
}

std::vector<Task> read_tasks(const std::filesystem::path& file, const std::string& device) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf()))
    throw FileError("Cannot read the groups in " + file.string() +
                    ": check its name, its rights, and that it holds some.");
  return parse_tasks(text.str(), file.string(), device);
}

namespace {

void replace_all(std::string& text, const std::string& name, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
    text.replace(at, name.size(), value);
}

std::vector<Task> builtin_tasks(std::string text, const std::string& name, const std::string& device) {
  const bool on_cpu = backend_of(device) == "cpu";
  // a GPU needs far more points to be busy than a CPU
  replace_all(text, "POINTS", on_cpu ? "500" : "100000");
  replace_all(text, "LEVELS", on_cpu ? "\"call\"" : "\"kernel\"");
  return parse_tasks(text, name, device);
}

}  // namespace

std::vector<Task> default_tasks(const std::string& device) {
  return builtin_tasks(kDefaultGroups, "the built-in groups", device);
}

std::vector<Task> quick_tasks(const std::string& device) {
  return builtin_tasks(kQuickGroups, "the groups of --quick", device);
}

}  // namespace dic::bench

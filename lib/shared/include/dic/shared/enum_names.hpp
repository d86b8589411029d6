#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dic {

/// An enumerator and its name in files, on the command line and in messages.
template <typename E>
struct EnumName {
  E value;
  std::string_view name;
};

/// The names of an enum: a specialization beside it holds `table`, an array of EnumName<E> with every
/// enumerator. Whoever writes, reads or offers the names takes them from there.
template <typename E>
struct EnumNames;

template <typename E>
concept NamedEnum = requires {
  EnumNames<E>::table[0].name;
};

/// Name of an enumerator. Throws std::out_of_range for a number that is no enumerator.
template <NamedEnum E>
constexpr std::string_view to_string(E value) {
  for (const EnumName<E>& known : EnumNames<E>::table)
    if (known.value == value) return known.name;
  throw std::out_of_range("A number is no enumerator of its enum.");
}

/// The enumerator of this name; none if no enumerator has it.
template <NamedEnum E>
constexpr std::optional<E> from_name(std::string_view name) {
  for (const EnumName<E>& known : EnumNames<E>::table)
    if (known.name == name) return known.value;
  return {};
}

/// The names of all enumerators, in the order of the table.
template <NamedEnum E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const EnumName<E>& known : EnumNames<E>::table) names.emplace_back(known.name);
  return names;
}

}  // namespace dic

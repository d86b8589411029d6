#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>

namespace dic::test {

/// The text with only the characters that GoogleTest allows in a parameter name: letters, digits,
/// underscores.
inline std::string as_parameter_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

/// Names a parameter by its printed text.
struct PrintedName {
  template <typename T>
  std::string operator()(const testing::TestParamInfo<T>& tested) const {
    return as_parameter_name(testing::PrintToString(tested.param));
  }
};

}  // namespace dic::test

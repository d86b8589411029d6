#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>

namespace dic::test {

/// What GoogleTest allows in the name of a parameter: letters, digits and underscores.
inline std::string as_parameter_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

/// Names a parameter by what prints it.
struct PrintedName {
  template <typename T>
  std::string operator()(const testing::TestParamInfo<T>& tested) const {
    return as_parameter_name(testing::PrintToString(tested.param));
  }
};

}  // namespace dic::test

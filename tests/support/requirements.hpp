#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

/// Requirements of tests on the machine and the environment.
namespace dic::test {

inline bool is_set_to_1(const char* variable) {
  const char* value = std::getenv(variable);
  return value && std::string(value) == "1";
}

/// DIC_SMALL_TESTS=1: tests skip large cases. Meant for compute-sanitizer, under which kernels are up to
/// about 1000 times slower.
inline bool only_small_tests() { return is_set_to_1("DIC_SMALL_TESTS"); }

/// Skips the test because something is missing. If the environment sets `requirement` to 1, the test fails
/// instead.
inline void skip_unless_required(const char* requirement, const std::string& reason) {
  if (is_set_to_1(requirement)) FAIL() << requirement << "=1, but " << reason;
  GTEST_SKIP() << reason;
}
/// Skips the test because there is no GPU, or no library for it.
inline void skip_without_gpu(const std::string& reason) { skip_unless_required("DIC_REQUIRE_GPU", reason); }
/// Skips the test because there is no OpenCL device.
inline void skip_without_opencl(const std::string& reason) {
  skip_unless_required("DIC_REQUIRE_OPENCL", reason);
}

/// The folder of real images that DIC_REAL_DATA names, if set.
inline std::optional<std::filesystem::path> real_data() {
  const char* folder = std::getenv("DIC_REAL_DATA");
  return folder ? std::optional<std::filesystem::path>(folder) : std::nullopt;
}
constexpr const char* no_real_data = "DIC_REAL_DATA does not name the folder of the real images";

}  // namespace dic::test

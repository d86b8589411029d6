#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <dic/kernels/device.hpp>
#include <string>

namespace dic::test {

/// DIC_SMALL_TESTS=1 in the environment: tests leave out what is there for its size alone. For
/// compute-sanitizer, under which a kernel takes up to some 1000 times as long.
inline bool only_small_tests() {
  const char* small = std::getenv("DIC_SMALL_TESTS");
  return small && std::string(small) == "1";
}

/// Tests that need a GPU. Without one they skip, visibly; with DIC_REQUIRE_GPU=1 in the environment they
/// fail.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!kernels::devices(&why).empty()) return;
    miss("GPU", why);
  }
  /// Skips the test, or fails it, for want of `what`.
  static void miss(const std::string& what, const std::string& why) {
    const char* required = std::getenv("DIC_REQUIRE_GPU");
    if (required && std::string(required) == "1")
      FAIL() << "no " << what << ", but DIC_REQUIRE_GPU=1: " << why;
    GTEST_SKIP() << "no " << what << ": " << why;
  }
};

}  // namespace dic::test

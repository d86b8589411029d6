#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <dic/kernels/device.hpp>

namespace dic::test {

/// Tests that need a GPU. Without one they skip, visibly; with DIC_REQUIRE_GPU=1 in the environment they
/// fail.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!kernels::devices(&why).empty()) return;
    const char* required = std::getenv("DIC_REQUIRE_GPU");
    if (required && std::string(required) == "1") FAIL() << "no GPU, but DIC_REQUIRE_GPU=1: " << why;
    GTEST_SKIP() << "no GPU: " << why;
  }
};

}  // namespace dic::test

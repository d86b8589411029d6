#pragma once

#include <dic/kernels/device.hpp>
#include <string>

#include "support/requirements.hpp"

namespace dic::test {

/// Base of tests that need a GPU.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (kernels::devices(&reason).empty()) skip_without_gpu(reason);
  }
};

}  // namespace dic::test

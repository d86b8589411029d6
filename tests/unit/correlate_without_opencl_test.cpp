#include <dic/correlate.hpp>
#include <dic/error.hpp>

#include "support/backend_test.hpp"

// Stands for the OpenCL cases, which do not exist in builds without OpenCL.
namespace dic {
namespace {

TEST(OpenCl, IsInThisBuild) { test::skip_without_device_of("opencl"); }

TEST(OpenCl, SaysThatItIsNotInThisBuild) { EXPECT_THROW(Correlator("opencl"), DeviceError); }

}  // namespace
}  // namespace dic

#include <dic/correlate.hpp>
#include <dic/error.hpp>

#include "support/backend_test.hpp"

// Builds without OpenCL: the cases of its variants do not exist, which this one shows.
namespace dic {
namespace {

TEST(OpenCl, IsInThisBuild) { test::skip_without_device_of("opencl"); }

TEST(OpenCl, SaysThatItIsNotInThisBuild) { EXPECT_THROW(Correlator("opencl"), DeviceError); }

}  // namespace
}  // namespace dic

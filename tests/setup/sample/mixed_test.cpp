#include "support/requirements.hpp"

TEST(Sample, Passes) {}

TEST(Sample, IsSkipped) { GTEST_SKIP() << "on purpose"; }

TEST(Sample, Fails) { ADD_FAILURE() << "on purpose"; }

TEST(Sample, FailsAndIsSkipped) {
  ADD_FAILURE() << "on purpose";
  GTEST_SKIP() << "on purpose";
}

TEST(SampleOnGpu, FindsNone) { dic::test::skip_without_gpu("there is none, on purpose"); }

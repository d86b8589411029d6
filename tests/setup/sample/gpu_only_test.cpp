#include "support/requirements.hpp"

TEST(Sample, FindsNoGpu) { dic::test::skip_without_gpu("there is none, on purpose"); }

TEST(Sample, Fails) { ADD_FAILURE() << "on purpose"; }

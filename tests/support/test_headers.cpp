#include <gtest/gtest.h>

// An empty source, whose precompiled header is shared by all tests.

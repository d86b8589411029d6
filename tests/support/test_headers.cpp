#include <gtest/gtest.h>

// Nothing: its precompiled header is that of all tests.

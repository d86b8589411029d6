#include <gtest/gtest.h>

#include <set>

#include "kernels/ncc_parameters.hpp"

// Tests that the cases of ncc_test.cpp reach every registered variant. Needs no GPU.
namespace dic::test {
namespace {

TEST(Cases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;  // ncc_test.cpp stores the answers by name
  for (const Case& c : ncc_cases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

TEST(Registry, EveryVariantTakesSomeCase) {
  const std::vector<NccParameter> all = ncc_parameters();
  for (const kernels::NccVariant& variant : kernels::ncc_variants())
    EXPECT_TRUE(!variant.computes_sums() || std::any_of(all.begin(), all.end(), [&](const NccParameter& p) {
      return p.variant == &variant;
    })) << variant.name;
}

}  // namespace
}  // namespace dic::test

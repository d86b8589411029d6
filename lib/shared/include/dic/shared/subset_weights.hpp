#pragma once

#include <cstdint>
#include <dic/shared/enum_names.hpp>

namespace dic {

/// How much a pixel of a subset counts, by its position in it.
enum class SubsetWeights : std::uint8_t {
  uniform,   ///< all the same
  gaussian,  ///< 1 at the centre; standard deviation of a quarter of the subset along both axes
};
template <>
struct EnumNames<SubsetWeights> {
  static constexpr EnumName<SubsetWeights> table[] = {{SubsetWeights::uniform, "uniform"},
                                                      {SubsetWeights::gaussian, "gaussian"}};
};

}  // namespace dic

#pragma once

#include <cstdint>
#include <dic/shared/enum_names.hpp>

namespace dic {

/// Weight of a pixel by its position in the subset.
enum class SubsetWeights : std::uint8_t {
  uniform,   ///< all the same
  gaussian,  ///< 1 at the centre; standard deviation is a quarter of the subset's side along both axes
};
template <>
struct EnumNames<SubsetWeights> {
  static constexpr EnumName<SubsetWeights> table[] = {{SubsetWeights::uniform, "uniform"},
                                                      {SubsetWeights::gaussian, "gaussian"}};
};

}  // namespace dic

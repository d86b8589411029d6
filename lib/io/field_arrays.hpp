#pragma once

#include <array>
#include <cstdint>
#include <dic/fields.hpp>
#include <string>
#include <vector>

/// The arrays of a field by the names that they have in files.
namespace dic::io {

enum class Kind : std::uint8_t { length, strain, plain };

template <typename Member>
struct FieldArray {
  const char* name;
  Kind kind;
  Member member;
  const char* description;
};

inline constexpr std::array kDisplacements = {
    FieldArray{"u", Kind::length, &Field::u, "displacement along x (right)"},
    FieldArray{"v", Kind::length, &Field::v, "displacement along y (down, as in the image)"},
};
inline constexpr std::array kQualities = {
    FieldArray{"zncc", Kind::plain, &Field::zncc, "zero-normalized cross-correlation of the matched subset"},
    FieldArray{"sigma_u", Kind::length, &Field::sigma_u, "predicted standard deviation of u"},
    FieldArray{"sigma_v", Kind::length, &Field::sigma_v, "predicted standard deviation of v"},
};
/// Of measurements with the global step.
inline constexpr std::array kGlobal = {
    FieldArray{"resolution", Kind::length, &Field::resolution,
               "period of a displacement that keeps nine tenths of its amplitude"},
    FieldArray{"subset_sigma_u", Kind::length, &Field::subset_sigma_u,
               "predicted standard deviation of u before the global step"},
    FieldArray{"subset_sigma_v", Kind::length, &Field::subset_sigma_v,
               "predicted standard deviation of v before the global step"},
};
inline constexpr std::array kStrains = {
    FieldArray{"exx", Kind::strain, &StrainField::exx, "normal strain along x"},
    FieldArray{"eyy", Kind::strain, &StrainField::eyy, "normal strain along y"},
    FieldArray{"exy", Kind::strain, &StrainField::exy,
               "tensor shear strain (half of gamma), x right, y down"},
    FieldArray{"e1", Kind::strain, &StrainField::e1, "larger principal strain"},
    FieldArray{"e2", Kind::strain, &StrainField::e2, "smaller principal strain"},
    FieldArray{"von_mises", Kind::strain, &StrainField::von_mises, "von Mises equivalent strain"},
    FieldArray{"sigma_exx", Kind::strain, &StrainField::sigma_exx, "predicted standard deviation of exx"},
    FieldArray{"sigma_eyy", Kind::strain, &StrainField::sigma_eyy, "predicted standard deviation of eyy"},
    FieldArray{"sigma_exy", Kind::strain, &StrainField::sigma_exy, "predicted standard deviation of exy"},
};

/// By number.
inline std::vector<std::string> status_names() {
  std::vector<std::string> names;
  for (int status = 0; status < kStatusCount; ++status)
    names.emplace_back(to_string(static_cast<Status>(status)));
  return names;
}

}  // namespace dic::io

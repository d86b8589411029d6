#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <dic/fields.hpp>
#include <dic/shared/enum_names.hpp>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

/// The arrays of a result: names, units, meanings and order of what `dic track` measures at every node.
/// Files, tables, other languages, figures and the page take them from this table: a new array is a member of
/// Field and an entry here.
namespace dic {

/// Kind of unit of the values of an array.
enum class UnitKind : std::uint8_t {
  none,    ///< numbers without a unit
  length,  ///< px, or mm with a scale
  mm,      ///< mm, whatever the scale
  px,      ///< px, whatever the scale
  degrees,
  strain  ///< strain of the measure of the run
};
template <>
struct EnumNames<UnitKind> {
  static constexpr EnumName<UnitKind> table[] = {
      {UnitKind::none, "none"}, {UnitKind::length, "length"},   {UnitKind::mm, "mm"},
      {UnitKind::px, "px"},     {UnitKind::degrees, "degrees"}, {UnitKind::strain, "strain"}};
};

/// Role of an array. The role decides who shows the array: displacement and strain are drawn
/// and summarized; probes have all roles down to sigma; the page has all but strain_invariant (which it
/// computes) and detail; files have all arrays.
enum class ArrayRole : std::uint8_t {
  displacement,      ///< component of the displacement
  strain,            ///< component of the strain tensor: xx, yy, xy, in this order
  strain_invariant,  ///< follows from the components of the strain
  quality,           ///< how well the subset matches
  sigma,             ///< predicted standard deviation of the array that is named after "sigma_"
  status,            ///< how the measurement ended, a Status
  vector,  ///< the displacement as a vector in VTK's axes: result files alone, without a member of Field
  detail   ///< how the node was measured
};
template <>
struct EnumNames<ArrayRole> {
  static constexpr EnumName<ArrayRole> table[] = {{ArrayRole::displacement, "displacement"},
                                                  {ArrayRole::strain, "strain"},
                                                  {ArrayRole::strain_invariant, "strain_invariant"},
                                                  {ArrayRole::quality, "quality"},
                                                  {ArrayRole::sigma, "sigma"},
                                                  {ArrayRole::status, "status"},
                                                  {ArrayRole::vector, "vector"},
                                                  {ArrayRole::detail, "detail"}};
};

/// The runs that have an array, by the options of `dic track`.
enum class MadeBy : std::uint8_t {
  every_run,
  automatic_order,  ///< --order auto
  global_step,      ///< --global
  stereo            ///< two cameras: dic stereo
};
template <>
struct EnumNames<MadeBy> {
  static constexpr EnumName<MadeBy> table[] = {{MadeBy::every_run, "every run"},
                                               {MadeBy::automatic_order, "--order auto"},
                                               {MadeBy::global_step, "--global"},
                                               {MadeBy::stereo, "two cameras"}};
};

/// The member of Field or of its strain that holds the values of an array; std::monostate: none, writers
/// compute it.
using FieldMember = std::variant<std::monostate, NodeValues<double> Field::*, NodeValues<float> Field::*,
                                 NodeValues<Status> Field::*, NodeValues<std::int16_t> Field::*,
                                 NodeValues<std::uint8_t> Field::*, NodeValues<float> StrainField::*,
                                 NodeValues<double> StereoField::*, NodeValues<float> StereoField::*>;

/// One array of a result.
struct FieldArray {
  std::string_view name;
  UnitKind unit = UnitKind::none;
  ArrayRole role = ArrayRole::detail;
  MadeBy made_by = MadeBy::every_run;
  FieldMember member;
  std::string_view description;  ///< for the legend of a file
  std::string_view label = {};   ///< for a menu; arrays that no menu offers have none
  std::string_view symbol = {};  ///< for a figure; empty: the name
  int components = 1;            ///< values for each node

  constexpr bool is_length() const { return unit == UnitKind::length; }
  constexpr bool is_strain() const { return unit == UnitKind::strain; }
  /// The unit of the values in files, "1" for numbers. length_unit: the one of the result, "px" or "mm".
  constexpr std::string_view unit_in(std::string_view length_unit) const {
    switch (unit) {
      case UnitKind::length:
        return length_unit;
      case UnitKind::mm:
        return "mm";
      case UnitKind::px:
        return "px";
      case UnitKind::degrees:
        return "degrees";
      case UnitKind::none:
      case UnitKind::strain:
        break;
    }
    return "1";
  }
  constexpr bool is_optional() const { return made_by != MadeBy::every_run; }
  /// True if a Field holds the values.
  constexpr bool is_in_field() const { return !std::holds_alternative<std::monostate>(member); }
};

/// All arrays of a result, in the order of its files and tables.
inline constexpr auto kFieldArrays = std::to_array<FieldArray>({
    {.name = "u",
     .unit = UnitKind::length,
     .role = ArrayRole::displacement,
     .member = &Field::u,
     .description = "displacement along x (right)",
     .label = "u (to the right)"},
    {.name = "v",
     .unit = UnitKind::length,
     .role = ArrayRole::displacement,
     .member = &Field::v,
     .description = "displacement along y (down, as in the image)",
     .label = "v (down)"},
    {.name = "displacement",
     .unit = UnitKind::length,
     .role = ArrayRole::vector,
     .member = {},
     .description = "(u, -v, 0): in VTK's axes, y up, for Warp By Vector and Glyph",
     .components = 3},
    {.name = "zncc",
     .role = ArrayRole::quality,
     .member = &Field::zncc,
     .description = "zero-normalized cross-correlation of the matched subset",
     .label = "zncc correlation",
     .symbol = "ZNCC"},
    {.name = "sigma_u",
     .unit = UnitKind::length,
     .role = ArrayRole::sigma,
     .member = &Field::sigma_u,
     .description = "predicted standard deviation of u",
     .label = "sigma_u predicted",
     .symbol = "σ_u"},
    {.name = "sigma_v",
     .unit = UnitKind::length,
     .role = ArrayRole::sigma,
     .member = &Field::sigma_v,
     .description = "predicted standard deviation of v",
     .label = "sigma_v predicted",
     .symbol = "σ_v"},
    {.name = "status",
     .role = ArrayRole::status,
     .member = &Field::status,
     .description = "how the measurement of the point ended",
     .label = "status"},
    {.name = "iterations", .member = &Field::iterations, .description = "Gauss-Newton iterations"},
    {.name = "exx",
     .unit = UnitKind::strain,
     .role = ArrayRole::strain,
     .member = &StrainField::exx,
     .description = "normal strain along x",
     .label = "exx strain",
     .symbol = "ε_xx"},
    {.name = "eyy",
     .unit = UnitKind::strain,
     .role = ArrayRole::strain,
     .member = &StrainField::eyy,
     .description = "normal strain along y",
     .label = "eyy strain",
     .symbol = "ε_yy"},
    {.name = "exy",
     .unit = UnitKind::strain,
     .role = ArrayRole::strain,
     .member = &StrainField::exy,
     .description = "tensor shear strain (half of gamma), x right, y down",
     .label = "exy shear strain (tensor)",
     .symbol = "ε_xy"},
    {.name = "e1",
     .unit = UnitKind::strain,
     .role = ArrayRole::strain_invariant,
     .member = &StrainField::e1,
     .description = "larger principal strain",
     .label = "e1 larger principal strain",
     .symbol = "ε_1"},
    {.name = "e2",
     .unit = UnitKind::strain,
     .role = ArrayRole::strain_invariant,
     .member = &StrainField::e2,
     .description = "smaller principal strain",
     .label = "e2 smaller principal strain",
     .symbol = "ε_2"},
    {.name = "von_mises",
     .unit = UnitKind::strain,
     .role = ArrayRole::strain_invariant,
     .member = &StrainField::von_mises,
     .description = "von Mises equivalent strain",
     .label = "von Mises strain",
     .symbol = "ε_vM"},
    {.name = "sigma_exx",
     .unit = UnitKind::strain,
     .role = ArrayRole::sigma,
     .member = &StrainField::sigma_exx,
     .description = "predicted standard deviation of exx",
     .label = "sigma_exx predicted",
     .symbol = "σ_εxx"},
    {.name = "sigma_eyy",
     .unit = UnitKind::strain,
     .role = ArrayRole::sigma,
     .member = &StrainField::sigma_eyy,
     .description = "predicted standard deviation of eyy",
     .label = "sigma_eyy predicted",
     .symbol = "σ_εyy"},
    {.name = "sigma_exy",
     .unit = UnitKind::strain,
     .role = ArrayRole::sigma,
     .member = &StrainField::sigma_exy,
     .description = "predicted standard deviation of exy",
     .label = "sigma_exy predicted",
     .symbol = "σ_εxy"},
    {.name = "order",
     .made_by = MadeBy::automatic_order,
     .member = &Field::order,
     .description = "order of the point's shape function"},
    {.name = "resolution",
     .unit = UnitKind::length,
     .made_by = MadeBy::global_step,
     .member = &Field::resolution,
     .description = "period of a displacement that keeps nine tenths of its amplitude"},
    {.name = "subset_sigma_u",
     .unit = UnitKind::length,
     .made_by = MadeBy::global_step,
     .member = &Field::subset_sigma_u,
     .description = "predicted standard deviation of u before the global step"},
    {.name = "subset_sigma_v",
     .unit = UnitKind::length,
     .made_by = MadeBy::global_step,
     .member = &Field::subset_sigma_v,
     .description = "predicted standard deviation of v before the global step"},
    {.name = "X",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::x,
     .description = "X of the point in the reference, in the axes of the measurement"},
    {.name = "Y",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::y,
     .description = "Y of the point in the reference"},
    {.name = "Z",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::z,
     .description = "Z of the point in the reference"},
    {.name = "U",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::u,
     .description = "displacement along X"},
    {.name = "V",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::v,
     .description = "displacement along Y"},
    {.name = "W",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::w,
     .description = "displacement along Z"},
    {.name = "sigma_X",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::sigma_x,
     .description = "predicted standard deviation of X"},
    {.name = "sigma_Y",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::sigma_y,
     .description = "predicted standard deviation of Y"},
    {.name = "sigma_Z",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::sigma_z,
     .description = "predicted standard deviation of Z"},
    {.name = "sigma_U",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::sigma_u,
     .description = "predicted standard deviation of U"},
    {.name = "sigma_V",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::sigma_v,
     .description = "predicted standard deviation of V"},
    {.name = "sigma_W",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::sigma_w,
     .description = "predicted standard deviation of W"},
    {.name = "epipolar",
     .unit = UnitKind::px,
     .made_by = MadeBy::stereo,
     .member = &StereoField::epipolar,
     .description = "distance of the match in the right image from the epipolar line"},
    {.name = "reprojection",
     .unit = UnitKind::px,
     .made_by = MadeBy::stereo,
     .member = &StereoField::reprojection,
     .description = "root mean square distance of both image points from the projections of the position"},
    {.name = "incidence",
     .unit = UnitKind::degrees,
     .made_by = MadeBy::stereo,
     .member = &StereoField::incidence,
     .description = "angle between the normal of the surface and the more oblique line of sight"},
    {.name = "calibration_sigma_X",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::calibration_sigma_x,
     .description = "predicted standard deviation of X from the calibration alone"},
    {.name = "calibration_sigma_Y",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::calibration_sigma_y,
     .description = "predicted standard deviation of Y from the calibration alone"},
    {.name = "calibration_sigma_Z",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::calibration_sigma_z,
     .description = "predicted standard deviation of Z from the calibration alone"},
    {.name = "calibration_sigma_U",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::calibration_sigma_u,
     .description = "predicted standard deviation of U from the calibration alone"},
    {.name = "calibration_sigma_V",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::calibration_sigma_v,
     .description = "predicted standard deviation of V from the calibration alone"},
    {.name = "calibration_sigma_W",
     .unit = UnitKind::mm,
     .made_by = MadeBy::stereo,
     .member = &StereoField::calibration_sigma_w,
     .description = "predicted standard deviation of W from the calibration alone"},
});

/// An array of node positions, which a result has once, with a camera; with two cameras X and Y are arrays of
/// each frame.
struct PositionArray {
  std::string_view name;
  NodeValues<double> NodePositions::*member;
  std::string_view description;
};
inline constexpr auto kPositionArrays = std::to_array<PositionArray>({
    {"X", &NodePositions::x, "X of the node in corrected coordinates"},
    {"Y", &NodePositions::y, "Y of the node in corrected coordinates"},
});

/// The array of a name; null for an unknown name.
constexpr const FieldArray* find_field_array(std::string_view name) {
  for (const FieldArray& array : kFieldArrays)
    if (array.name == name) return &array;
  return nullptr;
}

/// The predicted standard deviation of an array; null if nothing predicts it.
constexpr const FieldArray* sigma_of(const FieldArray& array) {
  constexpr std::string_view prefix = "sigma_";
  for (const FieldArray& sigma : kFieldArrays)
    if (sigma.name.starts_with(prefix) && sigma.name.substr(prefix.size()) == array.name) return &sigma;
  return nullptr;
}

/// The arrays for which a predicate is true, in the order of files. select: a constexpr lambda without
/// captures.
template <auto select>
inline constexpr auto kArraysIf = [] {
  constexpr std::size_t count = [] {
    std::size_t n = 0;
    for (const FieldArray& array : kFieldArrays) n += select(array) ? 1 : 0;
    return n;
  }();
  std::array<FieldArray, count> found{};
  std::size_t next = 0;
  for (const FieldArray& array : kFieldArrays)
    if (select(array)) found[next++] = array;
  return found;
}();

/// The arrays of some roles: all of the first role, all of the next one, ..., each in the order of files.
template <ArrayRole... roles>
inline constexpr auto kArraysOf = [] {
  constexpr std::size_t count = [] {
    std::size_t n = 0;
    for (const FieldArray& array : kFieldArrays) n += ((array.role == roles) || ...) ? 1 : 0;
    return n;
  }();
  std::array<FieldArray, count> found{};
  std::size_t next = 0;
  for (const ArrayRole role : {roles...})
    for (const FieldArray& array : kFieldArrays)
      if (array.role == role) found[next++] = array;
  return found;
}();

/// xx, yy and xy of the strain tensor.
inline constexpr auto& kStrainComponents = kArraysOf<ArrayRole::strain>;
/// xx and yy of the strain tensor.
inline constexpr std::span kNormalStrains = std::span(kStrainComponents).first<2>();
/// Arrays that pictures of a run show and its summary describes, in this order: displacement, then strain.
inline constexpr auto& kDrawnArrays = kArraysOf<ArrayRole::displacement, ArrayRole::strain>;
/// The drawn arrays with a predicted standard deviation.
inline constexpr auto& kScatteredArrays = kArraysIf<[](const FieldArray& array) {
  return (array.role == ArrayRole::displacement || array.role == ArrayRole::strain) && sigma_of(array);
}>;
/// All arrays that `compute_strain` fills.
inline constexpr auto& kStrainArrays = kArraysIf<[](const FieldArray& array) { return array.is_strain(); }>;
/// The arrays that a Field holds.
inline constexpr auto& kMeasuredArrays =
    kArraysIf<[](const FieldArray& array) { return array.is_in_field(); }>;

/// Calls visitor(values) with the NodeValues of an array in a field; not at all for an array that no field
/// holds.
template <typename AnyField, typename Visitor>
requires std::is_same_v<std::remove_const_t<AnyField>, Field>
void visit_values(AnyField& field, const FieldArray& array, Visitor&& visitor) {
  std::visit(
      [&](auto member) {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, NodeValues<float> StrainField::*>)
          visitor(field.strain.*member);
        else if constexpr (std::is_same_v<Member, NodeValues<double> StereoField::*> ||
                           std::is_same_v<Member, NodeValues<float> StereoField::*>)
          visitor(field.stereo.*member);
        else if constexpr (!std::is_same_v<Member, std::monostate>)
          visitor(field.*member);
      },
      array.member);
}

/// The values of an array of kStrainArrays.
template <typename AnyStrain>
requires std::is_same_v<std::remove_const_t<AnyStrain>, StrainField>
auto& strain_values(AnyStrain& strain, const FieldArray& array) {
  return strain.*std::get<NodeValues<float> StrainField::*>(array.member);
}

/// One value of an array as a number; NaN where the field lacks the array.
inline double value_at(const Field& field, const FieldArray& array, std::size_t node) {
  double value = std::numeric_limits<double>::quiet_NaN();
  visit_values(field, array, [&](const auto& values) {
    if (!values.empty()) value = static_cast<double>(values[node]);
  });
  return value;
}

/// Calls visitor(T{}) with the type of an array's elements in files: double, float, std::int16_t or
/// std::uint8_t.
template <typename Visitor>
constexpr decltype(auto) visit_element(const FieldArray& array, Visitor&& visitor) {
  return std::visit(
      [&](auto member) -> decltype(auto) {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, NodeValues<float> Field::*> ||
                      std::is_same_v<Member, NodeValues<float> StrainField::*> ||
                      std::is_same_v<Member, NodeValues<float> StereoField::*>)
          return visitor(float{});
        else if constexpr (std::is_same_v<Member, NodeValues<std::int16_t> Field::*>)
          return visitor(std::int16_t{});
        else if constexpr (std::is_same_v<Member, NodeValues<std::uint8_t> Field::*> ||
                           std::is_same_v<Member, NodeValues<Status> Field::*>)
          return visitor(std::uint8_t{});
        else
          return visitor(double{});
      },
      array.member);
}

/// Type of an array's elements as NumPy calls it: "float64", "float32", "int16", "uint8".
constexpr std::string_view element_type(const FieldArray& array) {
  return visit_element(array, []<typename T>(T) -> std::string_view {
    if (std::is_same_v<T, float>) return "float32";
    if (std::is_same_v<T, std::int16_t>) return "int16";
    return std::is_same_v<T, double> ? "float64" : "uint8";
  });
}

}  // namespace dic

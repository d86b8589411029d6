#include <algorithm>
#include <cmath>
#include <cstring>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <dic/io.hpp>
#include <dic/result.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "io/hdf5_file.hpp"
#include "io/hdf5_input.hpp"
#include "support/io_files.hpp"

// Tests that every array of the schema and every measure of strain survive a file.
namespace dic {
namespace {

using namespace test;

/// A field in which every array of the schema has values of its own.
Field full_field(double shift) {
  Field field(sample_grid());
  for (std::size_t a = 0; a < kMeasuredArrays.size(); ++a)
    visit_values(field, kMeasuredArrays[a], [&]<typename T>(NodeValues<T>& values) {
      values = NodeValues<T>(35);
      for (std::size_t k = 0; k < values.size(); ++k)
        if constexpr (std::is_same_v<T, Status>)
          values[k] = static_cast<Status>(k % kStatusCount);
        else
          values[k] = static_cast<T>(shift + static_cast<double>(a) + 3 * static_cast<double>(k % 7));
    });
  return field;
}

/// Expects the bits of an array to be the same in two fields.
void expect_same(const Field& a, const Field& b, const FieldArray& array) {
  visit_values(a, array, [&]<typename T>(const NodeValues<T>& expected) {
    visit_values(b, array, [&]<typename S>(const NodeValues<S>& found) {
      ASSERT_EQ(found.size(), expected.size()) << array.name;
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(T)), 0) << array.name;
    });
  });
}

class Schema : public Io {
 protected:
  fs::path write(const ResultInfo& info, const std::vector<Field>& fields) const {
    VtkHdfWriter writer(file("result.vtkhdf"), sample_grid(), info);
    for (std::size_t f = 0; f < fields.size(); ++f)
      writer.append(fields[f], static_cast<double>(f + 1), "frame" + std::to_string(f));
    writer.finish();
    return file("result.vtkhdf");
  }
};

TEST_F(Schema, HasEveryMemberOfAField) {
  // Positions and the displacement in the image are no arrays of a result.
  constexpr std::size_t kOthers = 2 * sizeof(std::shared_ptr<int>) + 2 * sizeof(NodeValues<double>);
  constexpr std::size_t kAll = kMeasuredArrays.size() * sizeof(NodeValues<double>);
  EXPECT_EQ(sizeof(StrainField), kStrainArrays.size() * sizeof(NodeValues<float>));
  EXPECT_EQ(sizeof(Field), kAll + kOthers) << "a member of Field has no entry in dic/field_schema.hpp";
}

TEST_F(Schema, NamesAreUniqueAndDescribed) {
  std::set<std::string_view> names;
  for (const FieldArray& array : kFieldArrays) {
    EXPECT_TRUE(names.insert(array.name).second) << array.name;
    EXPECT_EQ(find_field_array(array.name), &array);
    EXPECT_FALSE(array.description.empty()) << array.name;
    EXPECT_EQ(array.is_in_field(), array.components == 1) << array.name;
  }
  EXPECT_EQ(find_field_array("none"), nullptr);
  ASSERT_EQ(kStrainComponents.size(), 3u);
  for (const FieldArray& array : kStrainComponents) ASSERT_NE(sigma_of(array), nullptr) << array.name;
}

TEST_F(Schema, EveryArrayComesBackToTheBit) {
  const std::vector<Field> fields = {full_field(0.5), full_field(100.25)};
  const Result result(write(sample_info(), fields));
  ASSERT_EQ(result.arrays().size(), kFieldArrays.size());
  for (const FieldArray& array : kFieldArrays) {
    ASSERT_TRUE(result.has(array.name)) << array.name;
    const ResultArray& stored = result.array(array.name);
    EXPECT_EQ(stored.unit, array.unit_in("px")) << array.name;
    EXPECT_EQ(stored.description, array.description);
    EXPECT_EQ(stored.components, array.components) << array.name;
    EXPECT_EQ(stored.measure.empty(), !array.is_strain()) << array.name;
    for (int f = 0; f < 2; ++f)
      if (array.is_in_field()) expect_same(fields[f], result.field(f), array);
  }
}

TEST_F(Schema, LengthsAreInMillimetresWithAScale) {
  ResultInfo info = sample_info();
  info.scale_mm_per_px = 0.25;  // exact in binary
  const Field field = full_field(0.5);
  const Result result(write(info, {field}));
  for (const FieldArray& array : kMeasuredArrays) {
    EXPECT_EQ(result.array(array.name).unit, array.unit_in("mm")) << array.name;
    const std::vector<double> values = result.values(array.name, 0);
    for (std::size_t k = 0; k < values.size(); ++k)
      ASSERT_EQ(values[k], value_at(field, array, k) * (array.is_length() ? 0.25 : 1)) << array.name;
    expect_same(field, result.field(0), array);
  }
}

TEST_F(Schema, OptionalArraysAreThereIfTheFieldHasThem) {
  for (const FieldArray& optional : kFieldArrays) {
    if (!optional.is_optional()) continue;
    Field field = full_field(1);
    visit_values(field, optional, [](auto& values) { values = {}; });
    const Result result(write(sample_info(), {field}));
    for (const FieldArray& array : kFieldArrays)
      EXPECT_EQ(result.has(array.name), array.name != optional.name) << array.name;
    Field stored = result.field(0);
    visit_values(stored, optional, [](const auto& values) { EXPECT_TRUE(values.empty()); });
  }
}

TEST_F(Schema, EveryArrayGrowsAfterAResume) {
  const std::vector<Field> fields = {full_field(0.5), full_field(7)};
  write(sample_info(), {fields[0]});
  VtkHdfWriter writer = VtkHdfWriter::resume(file("result.vtkhdf"), 1, sample_grid(), sample_info());
  writer.append(fields[1], 2, "frame1");
  writer.finish();
  const Result result(file("result.vtkhdf"));
  ASSERT_EQ(result.frame_count(), 2);
  for (const FieldArray& array : kMeasuredArrays) expect_same(fields[1], result.field(1), array);
}

TEST_F(Schema, EveryArrayIsInAJoinedFile) {
  const Field field = full_field(0.5);
  fs::create_directories(file("parts"));
  fs::rename(write(sample_info(), {field}), file("parts") / "one.vtkhdf");
  ResultPart part;
  part.file = "parts/one.vtkhdf";
  part.rows = part.use = 5;
  part.times = {1};
  part.numbers = {1};
  part.names = {"f"};
  for (const FieldArray& array : kFieldArrays)
    if (array.is_optional()) part.optional_arrays.emplace_back(array.name);
  VtkHdfWriter::join(file("all.vtkhdf"), sample_grid(), sample_info(), {&part, 1});
  const Result result(file("all.vtkhdf"));
  for (const FieldArray& array : kFieldArrays) EXPECT_TRUE(result.has(array.name)) << array.name;
  for (const FieldArray& array : kMeasuredArrays) expect_same(field, result.field(0), array);
}

TEST_F(Schema, NetcdfFindsEveryArrayInTheRootGroup) {
  const hdf5::InputFile stored(write(sample_info(), {full_field(1)}));
  for (const FieldArray& array : kFieldArrays) {
    const std::string path = "/" + std::string(array.name);
    ASSERT_TRUE(stored.has(path)) << path;
    EXPECT_EQ(stored.text_attribute(path, "units"), array.unit_in("px")) << path;
    EXPECT_EQ(stored.text_attribute(path, "long_name"), std::string(array.description)) << path;
  }
}

TEST_F(Schema, CsvHasAColumnForEveryArrayOfEveryRun) {
  ResultInfo info = sample_info();
  info.scale_mm_per_px = 0.25;
  const Field field = full_field(0.5);
  write_csv(file("a.csv"), info, field);
  std::istringstream lines(read_text(file("a.csv")));
  std::string header, first;
  std::getline(lines, header);
  std::getline(lines, first);
  std::string expected = "x [mm],y [mm]";
  std::vector<const FieldArray*> columns;
  for (const FieldArray& array : kMeasuredArrays) {
    if (array.is_optional() || array.role == ArrayRole::strain_invariant) continue;
    expected += "," + std::string(array.name) + (array.is_length() ? " [mm]" : "");
    columns.push_back(&array);
  }
  EXPECT_EQ(header, expected);
  std::istringstream cells(first);
  std::string cell;
  std::getline(cells, cell, ',');
  std::getline(cells, cell, ',');
  for (const FieldArray* array : columns) {
    std::getline(cells, cell, ',');
    if (array->role == ArrayRole::status)
      EXPECT_EQ(cell, "ok");
    else
      EXPECT_NEAR(std::stod(cell), value_at(field, *array, 0) * (array->is_length() ? 0.25 : 1), 1e-6)
          << array->name;
  }
}

TEST_F(Schema, EveryMeasureComesBack) {
  for (const auto& [measure, name] : EnumNames<StrainMeasure>::table) {
    ResultInfo info = sample_info();
    info.strain.measure = measure;
    const Result result(write(info, {full_field(1)}));
    EXPECT_EQ(result.info().strain.measure, measure) << name;
    for (const FieldArray& array : kStrainArrays)
      EXPECT_EQ(result.array(array.name).measure, name) << array.name;
  }
}

TEST_F(Schema, EveryMeasureIsComputed) {
  for (const auto& [measure, name] : EnumNames<StrainMeasure>::table) {
    const auto strain = strain_from_gradient({1e-6, 0, 0, -2e-6}, measure);
    EXPECT_NEAR(strain[0], 1e-6, 1e-10) << name;  // all measures agree about small strains
    EXPECT_NEAR(strain[1], -2e-6, 1e-10) << name;
  }
}

}  // namespace
}  // namespace dic

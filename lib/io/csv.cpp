#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <dic/field_schema.hpp>
#include <dic/io.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "io/pending_file.hpp"
#include "io/text_rows.hpp"

namespace dic {
namespace {

constexpr int kDigits = 10;  ///< digits of double values: 1e-7 px at 1000 px

/// Rows of a table, which are appended to a text; cells are separated by commas.
class Table {
 public:
  explicit Table(std::string& text) : text_(text) {}

  void cell(std::string_view value) { (text_ += value) += ','; }
  void cell(std::integral auto value) { append(value); }
  void cell(float value) { std::isnan(value) ? cell("nan") : append(value); }
  void cell(double value) {
    std::isnan(value) ? cell("nan") : append(value, std::chars_format::general, kDigits);
  }

  /// Ends the row; removes the last comma unless `trailing_comma` is set.
  void end_row(bool trailing_comma) {
    if (!trailing_comma) text_.pop_back();
    text_ += '\n';
  }

 private:
  template <typename... Format>
  void append(auto value, Format... format) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value, format...).ptr;
    text_.append(digits, end) += ',';
  }

  std::string& text_;
};

/// Row of the table: one point of the grid.
struct Row {
  std::int64_t id;  ///< number of the row, from 0
  std::size_t k;    ///< index of the node
  double x, y;      ///< position of the node, px
};

/// A column of one frame: its header, and the function that writes its cell of a row.
struct Column {
  std::string header;
  std::function<void(Table&, const Row&)> write;
};

void write_cell(Table& table, Status status) { table.cell(to_string(status)); }
void write_cell(Table& table, auto value) { table.cell(value); }

Column nothing(std::string header) {
  return {std::move(header), [](Table& table, const Row&) { table.cell("nan"); }};
}

/// Values of the nodes; "nan" in each row for an empty array, as of a strain that was not computed.
template <typename T>
Column values_of(std::string header, const NodeValues<T>& values) {
  if (values.empty()) return nothing(std::move(header));
  return {std::move(header), [&values](Table& table, const Row& row) { write_cell(table, values[row.k]); }};
}

/// Values of the nodes times a factor, rounded once to their own type; "nan" for an empty array.
template <std::floating_point T>
Column scaled(std::string header, const NodeValues<T>& values, double factor) {
  if (values.empty()) return nothing(std::move(header));
  return {std::move(header), [&values, factor](Table& table, const Row& row) {
            write_cell(table, static_cast<T>(values[row.k] * factor));
          }};
}

/// The position of the node along x or y, times a factor.
Column position(std::string header, double Row::*axis, double factor = 1) {
  return {std::move(header), [=](Table& table, const Row& row) { table.cell(row.*axis * factor); }};
}

/// An array of the field in the unit of the result.
Column array_of(std::string header, const Field& field, const FieldArray& array, double length_factor) {
  Column column;
  visit_values(field, array, [&]<typename T>(const NodeValues<T>& values) {
    if constexpr (std::floating_point<T>)
      column = array.is_length() ? scaled(std::move(header), values, length_factor)
                                 : values_of(std::move(header), values);
    else
      column = values_of(std::move(header), values);
  });
  return column;
}

std::vector<Column> native_columns(const ResultInfo& info, const Field& field) {
  const double factor = info.length_factor();
  const std::string unit = info.has_scale() ? " [mm]" : "";
  std::vector<Column> columns = {position("x" + unit, &Row::x, factor),
                                 position("y" + unit, &Row::y, factor)};
  for (const FieldArray& array : kMeasuredArrays)
    if (!array.is_optional() && array.role != ArrayRole::strain_invariant)
      columns.push_back(
          array_of(std::string(array.name) + (array.is_length() ? unit : ""), field, array, factor));
  return columns;
}

/// The components of the strain, which Vic-2D and OpenCorr name as we do.
std::vector<Column> strain_columns(const Field& field) {
  std::vector<Column> columns;
  for (const FieldArray& array : kStrainComponents)
    columns.push_back(values_of(std::string(array.name), strain_values(field.strain, array)));
  return columns;
}

/// DICe and Vic-2D have one sigma for both directions: the larger one; -1 for a point without values.
Column one_sigma(std::string header, const Field& field) {
  return {std::move(header), [&field](Table& table, const Row& row) {
            const bool is_measured = has_values(field.status[row.k]);
            table.cell(is_measured ? std::fmax(field.sigma_u[row.k], field.sigma_v[row.k]) : -1.0f);
          }};
}

/// DICe's codes: 4 initialized (and solved), 8 correlation failed, 9 subset not built, 11 out of iterations.
int dice_status(Status status) {
  switch (status) {
    case Status::ok:
    case Status::outlier:
      return 4;
    case Status::low_correlation:
    case Status::diverged:
    case Status::ambiguous:
    case Status::epipolar:
      return 8;
    case Status::not_converged:
      return 11;
    case Status::flat:
    case Status::out_of_image:
    case Status::masked:
      break;
  }
  return 9;
}

std::vector<Column> dice_columns(const Field& field) {
  const StrainField& strain = field.strain;
  return {
      {"SUBSET_ID", [](Table& table, const Row& row) { table.cell(row.id); }},
      position("COORDINATE_X", &Row::x),
      position("COORDINATE_Y", &Row::y),
      values_of("DISPLACEMENT_X", field.u),
      values_of("DISPLACEMENT_Y", field.v),
      one_sigma("SIGMA", field),
      {"GAMMA", [&](Table& table, const Row& row) { table.cell(2 * (1 - field.zncc[row.k])); }},
      nothing("BETA"),
      {"STATUS_FLAG", [&](Table& table, const Row& row) { table.cell(dice_status(field.status[row.k])); }},
      {"UNCERTAINTY",
       [&](Table& table, const Row& row) {
         table.cell(std::hypot(field.sigma_u[row.k], field.sigma_v[row.k]));
       }},
      values_of("VSG_STRAIN_XX", strain.exx),
      values_of("VSG_STRAIN_YY", strain.eyy),
      values_of("VSG_STRAIN_XY", strain.exy),
  };
}

/// Angle of the larger principal strain, rad, from x towards y.
Column principal_angle(std::string header, const StrainField& strain) {
  if (strain.exy.empty()) return nothing(std::move(header));
  return {std::move(header), [&strain](Table& table, const Row& row) {
            table.cell(std::atan2(2 * strain.exy[row.k], strain.exx[row.k] - strain.eyy[row.k]) / 2);
          }};
}

/// Vic-2D adds columns in mm in front of the others if it knows the scale.
std::vector<Column> vic_columns(const ResultInfo& info, const Field& field) {
  const StrainField& strain = field.strain;
  std::vector<Column> columns;
  const auto add = [&](Column column) {
    column.header = '"' + column.header + '"';
    columns.push_back(std::move(column));
  };
  if (info.has_scale()) {
    const double factor = info.length_factor();
    add(position("x_c", &Row::x, factor));
    add(position("y_c", &Row::y, factor));
    add(scaled("u_c", field.u, factor));
    add(scaled("v_c", field.v, factor));
  }
  add(position("x", &Row::x));
  add(position("y", &Row::y));
  add(values_of("u", field.u));
  add(values_of("v", field.v));
  add(one_sigma("sigma", field));
  for (Column& column : strain_columns(field)) add(std::move(column));
  add(values_of("e1", strain.e1));
  add(values_of("e2", strain.e2));
  add(principal_angle("gamma", strain));
  add(values_of("e_vonmises", strain.von_mises));
  return columns;
}

std::vector<Column> opencorr_columns(const ResultInfo& info, const Field& field) {
  const auto half_subset = [&info](Table& table, const Row&) { table.cell(info.subset / 2); };
  std::vector<Column> columns = {
      position("x", &Row::x),
      position("y", &Row::y),
      values_of("u", field.u),
      values_of("v", field.v),
      nothing("u0"),
      nothing("v0"),
      values_of("ZNCC", field.zncc),
      values_of("iteration", field.iterations),
      nothing("convergence"),
      nothing("feature"),
  };
  for (Column& column : strain_columns(field)) columns.push_back(std::move(column));
  columns.push_back({"subset_rx", half_subset});
  columns.push_back({"subset_ry", half_subset});
  return columns;
}

/// The columns of a measurement with two cameras.
std::vector<Column> stereo_columns(const Field& field) {
  std::vector<Column> columns = {position("x", &Row::x), position("y", &Row::y)};
  for (const std::string_view name :
       {"u",       "v",       "X",       "Y",       "Z",       "U",       "V",        "W",
        "sigma_X", "sigma_Y", "sigma_Z", "sigma_U", "sigma_V", "sigma_W", "epipolar", "zncc",
        "status",  "exx",     "eyy",     "exy",     "e1",      "e2"})
    columns.push_back(array_of(std::string(name), field, *find_field_array(name), 1));
  return columns;
}

std::vector<Column> columns_of(CsvStyle style, const ResultInfo& info, const Field& field) {
  switch (style) {
    case CsvStyle::native:
      return native_columns(info, field);
    case CsvStyle::dice:
      return dice_columns(field);
    case CsvStyle::vic:
      return vic_columns(info, field);
    case CsvStyle::opencorr:
      return opencorr_columns(info, field);
  }
  throw std::invalid_argument("There is no such style of CSV files.");
}

std::string header_of(const std::vector<Column>& columns, bool trailing_comma) {
  std::string text;
  Table header(text);
  for (const Column& column : columns) header.cell(column.header);
  header.end_row(trailing_comma);
  return text;
}

void write_table(const std::filesystem::path& path, const Field& field, const std::vector<Column>& columns,
                 bool trailing_comma, int threads) {
  const Grid& grid = field.grid();
  std::vector<std::size_t> nodes;
  for (std::size_t k = 0; k < grid.inside.size(); ++k)
    if (grid.inside[k]) nodes.push_back(k);
  core::ThreadPool pool(threads);
  PendingText file(path);
  file.write(header_of(columns, trailing_comma));
  io::write_rows(file, std::ssize(nodes), pool, [&](std::int64_t begin, std::int64_t end, std::string& text) {
    Table table(text);
    for (std::int64_t id = begin; id < end; ++id) {
      const std::size_t k = nodes[id];
      const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
      const Row row{id, k, field.x(i, j), field.y(i, j)};
      for (const Column& column : columns) column.write(table, row);
      table.end_row(trailing_comma);
    }
  });
  file.commit();
}

}  // namespace

void write_csv(const std::filesystem::path& path, const ResultInfo& info, const Field& field, CsvStyle style,
               int threads) {
  const bool trailing_comma = style == CsvStyle::opencorr;  // OpenCorr's own reader needs it
  write_table(path, field, columns_of(style, info, field), trailing_comma, threads);
}

void write_stereo_csv(const std::filesystem::path& path, const Field& field, int threads) {
  write_table(path, field, stereo_columns(field), false, threads);
}

}  // namespace dic

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <dic/io.hpp>
#include <limits>

#include "io/pending_file.hpp"

namespace dic {
namespace {

constexpr std::size_t kBlock = 1 << 18;  // bytes between two writes
constexpr int kDigits = 10;              // of double values: 1e-7 px at 1000 px

/// A table that is being written: cells are separated by commas and go to the file block by block.
class Table {
 public:
  explicit Table(PendingText& file) : file_(file) { text_.reserve(kBlock + 4096); }

  void cell(std::string_view value) { (text_ += value) += ','; }
  void cell(std::integral auto value) { append(value); }
  void cell(float value) { std::isnan(value) ? cell("nan") : append(value); }
  void cell(double value) {
    std::isnan(value) ? cell("nan") : append(value, std::chars_format::general, kDigits);
  }

  /// Ends the row; the last comma goes unless the style wants it.
  void end_row(bool trailing_comma) {
    if (!trailing_comma) text_.pop_back();
    text_ += '\n';
    if (text_.size() >= kBlock) flush();
  }
  void flush() {
    file_.write(text_);
    text_.clear();
  }

 private:
  template <typename... Format>
  void append(auto value, Format... format) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value, format...).ptr;
    text_.append(digits, end) += ',';
  }

  PendingText& file_;
  std::string text_;
};

/// One point, with all that its row is made of.
struct Row {
  const ResultInfo& info;
  const Field& field;
  std::int64_t id;  // counts the rows
  std::size_t k;    // node
  double x, y;      // px

  bool measured() const { return has_values(field.status[k]); }
  /// NaN where the strain was not computed.
  float strain(NodeValues<float> StrainField::*component) const {
    const auto& values = field.strain.*component;
    return values.empty() ? std::numeric_limits<float>::quiet_NaN() : values[k];
  }
};

struct Column {
  const char* name;
  void (*write)(Table&, const Row&);
  bool is_length = false;  // scaled, with the unit in the header, where the style does that
};

void write_nan(Table& table, const Row&) { table.cell("nan"); }

template <auto Component>
void write_strain(Table& table, const Row& row) {
  table.cell(row.strain(Component));
}

/// `px` times the scale.
double scaled(const Row& row, double px) { return px * row.info.length_factor(); }

constexpr Column kNative[] = {
    {"x", [](Table& t, const Row& r) { t.cell(scaled(r, r.x)); }, true},
    {"y", [](Table& t, const Row& r) { t.cell(scaled(r, r.y)); }, true},
    {"u", [](Table& t, const Row& r) { t.cell(scaled(r, r.field.u[r.k])); }, true},
    {"v", [](Table& t, const Row& r) { t.cell(scaled(r, r.field.v[r.k])); }, true},
    {"zncc", [](Table& t, const Row& r) { t.cell(r.field.zncc[r.k]); }},
    {"sigma_u", [](Table& t, const Row& r) { t.cell(static_cast<float>(scaled(r, r.field.sigma_u[r.k]))); },
     true},
    {"sigma_v", [](Table& t, const Row& r) { t.cell(static_cast<float>(scaled(r, r.field.sigma_v[r.k]))); },
     true},
    {"status", [](Table& t, const Row& r) { t.cell(to_string(r.field.status[r.k])); }},
    {"iterations", [](Table& t, const Row& r) { t.cell(r.field.iterations[r.k]); }},
    {"exx", write_strain<&StrainField::exx>},
    {"eyy", write_strain<&StrainField::eyy>},
    {"exy", write_strain<&StrainField::exy>},
    {"sigma_exx", write_strain<&StrainField::sigma_exx>},
    {"sigma_eyy", write_strain<&StrainField::sigma_eyy>},
    {"sigma_exy", write_strain<&StrainField::sigma_exy>},
};

/// DICe and Vic-2D have one sigma for both directions: the larger one; -1 for a point without values.
float one_sigma(const Row& row) {
  return row.measured() ? std::fmax(row.field.sigma_u[row.k], row.field.sigma_v[row.k]) : -1.0f;
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

constexpr Column kDice[] = {
    {"SUBSET_ID", [](Table& t, const Row& r) { t.cell(r.id); }},
    {"COORDINATE_X", [](Table& t, const Row& r) { t.cell(r.x); }},
    {"COORDINATE_Y", [](Table& t, const Row& r) { t.cell(r.y); }},
    {"DISPLACEMENT_X", [](Table& t, const Row& r) { t.cell(r.field.u[r.k]); }},
    {"DISPLACEMENT_Y", [](Table& t, const Row& r) { t.cell(r.field.v[r.k]); }},
    {"SIGMA", [](Table& t, const Row& r) { t.cell(one_sigma(r)); }},
    {"GAMMA", [](Table& t, const Row& r) { t.cell(2 * (1 - r.field.zncc[r.k])); }},
    {"BETA", write_nan},
    {"STATUS_FLAG", [](Table& t, const Row& r) { t.cell(dice_status(r.field.status[r.k])); }},
    {"UNCERTAINTY",
     [](Table& t, const Row& r) { t.cell(std::hypot(r.field.sigma_u[r.k], r.field.sigma_v[r.k])); }},
    {"VSG_STRAIN_XX", write_strain<&StrainField::exx>},
    {"VSG_STRAIN_YY", write_strain<&StrainField::eyy>},
    {"VSG_STRAIN_XY", write_strain<&StrainField::exy>},
};

/// Angle of the larger principal strain, rad, from x towards y.
float principal_angle(const Row& row) {
  return std::atan2(2 * row.strain(&StrainField::exy),
                    row.strain(&StrainField::exx) - row.strain(&StrainField::eyy)) /
         2;
}

constexpr Column kVic[] = {
    {"\"x\"", [](Table& t, const Row& r) { t.cell(r.x); }},
    {"\"y\"", [](Table& t, const Row& r) { t.cell(r.y); }},
    {"\"u\"", [](Table& t, const Row& r) { t.cell(r.field.u[r.k]); }},
    {"\"v\"", [](Table& t, const Row& r) { t.cell(r.field.v[r.k]); }},
    {"\"sigma\"", [](Table& t, const Row& r) { t.cell(one_sigma(r)); }},
    {"\"exx\"", write_strain<&StrainField::exx>},
    {"\"eyy\"", write_strain<&StrainField::eyy>},
    {"\"exy\"", write_strain<&StrainField::exy>},
    {"\"e1\"", write_strain<&StrainField::e1>},
    {"\"e2\"", write_strain<&StrainField::e2>},
    {"\"gamma\"", [](Table& t, const Row& r) { t.cell(principal_angle(r)); }},
    {"\"e_vonmises\"", write_strain<&StrainField::von_mises>},
};

/// What Vic-2D adds in front of the rest where it knows the scale.
constexpr Column kVicCalibrated[] = {
    {"\"x_c\"", [](Table& t, const Row& r) { t.cell(scaled(r, r.x)); }},
    {"\"y_c\"", [](Table& t, const Row& r) { t.cell(scaled(r, r.y)); }},
    {"\"u_c\"", [](Table& t, const Row& r) { t.cell(scaled(r, r.field.u[r.k])); }},
    {"\"v_c\"", [](Table& t, const Row& r) { t.cell(scaled(r, r.field.v[r.k])); }},
};

constexpr Column kOpenCorr[] = {
    {"x", [](Table& t, const Row& r) { t.cell(r.x); }},
    {"y", [](Table& t, const Row& r) { t.cell(r.y); }},
    {"u", [](Table& t, const Row& r) { t.cell(r.field.u[r.k]); }},
    {"v", [](Table& t, const Row& r) { t.cell(r.field.v[r.k]); }},
    {"u0", write_nan},
    {"v0", write_nan},
    {"ZNCC", [](Table& t, const Row& r) { t.cell(r.field.zncc[r.k]); }},
    {"iteration", [](Table& t, const Row& r) { t.cell(r.field.iterations[r.k]); }},
    {"convergence", write_nan},
    {"feature", write_nan},
    {"exx", write_strain<&StrainField::exx>},
    {"eyy", write_strain<&StrainField::eyy>},
    {"exy", write_strain<&StrainField::exy>},
    {"subset_rx", [](Table& t, const Row& r) { t.cell(r.info.subset / 2); }},
    {"subset_ry", [](Table& t, const Row& r) { t.cell(r.info.subset / 2); }},
};

std::vector<Column> columns_of(CsvStyle style, bool has_scale) {
  switch (style) {
    case CsvStyle::dice:
      return {std::begin(kDice), std::end(kDice)};
    case CsvStyle::opencorr:
      return {std::begin(kOpenCorr), std::end(kOpenCorr)};
    case CsvStyle::vic: {
      std::vector<Column> columns;
      if (has_scale) columns.assign(std::begin(kVicCalibrated), std::end(kVicCalibrated));
      columns.insert(columns.end(), std::begin(kVic), std::end(kVic));
      return columns;
    }
    case CsvStyle::native:
      break;
  }
  return {std::begin(kNative), std::end(kNative)};
}

}  // namespace

void write_csv(const std::filesystem::path& path, const ResultInfo& info, const Field& field,
               CsvStyle style) {
  const std::vector<Column> columns = columns_of(style, info.has_scale());
  const bool trailing_comma = style == CsvStyle::opencorr;  // OpenCorr's own reader needs it
  const Grid& grid = field.grid();

  PendingText file(path);
  Table table(file);
  for (const Column& column : columns) {
    const bool named = column.is_length && info.has_scale();
    table.cell(named ? column.name + std::string(" [mm]") : column.name);
  }
  table.end_row(trailing_comma);

  std::int64_t id = 0;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
      if (!grid.inside[k]) continue;
      const Row row{info, field, id++, k, field.x(i, j), field.y(i, j)};
      for (const Column& column : columns) column.write(table, row);
      table.end_row(trailing_comma);
    }
  table.flush();
  file.commit();
}

}  // namespace dic

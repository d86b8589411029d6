#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/heading.hpp"

namespace dic::io {

/// A table of numbers as testing machines, cameras and spreadsheets export it.
///
/// Columns are separated by semicolons, tabs, commas or spaces. Above the headings any lines may stand, below
/// them a line of units. Lines that begin with # are skipped, except for headings. Cells may stand in double
/// quotes. Numbers may have a decimal comma, and groups of three digits; the whole table decides what a comma
/// or point means, and a table that leaves it open is refused.
class TextTable {
 public:
  /// wanted: name of a column that the headings have, which helps to find them; may be empty. Throws
  /// FileError, also for a file without numbers.
  explicit TextTable(const std::filesystem::path& path, std::string_view wanted = {});
  /// The same for the text of a file, as read_text_file gives it. path: for messages.
  TextTable(std::filesystem::path path, std::string text, std::string_view wanted);

  /// Empty if no headings stand above the numbers.
  const std::vector<Heading>& headings() const { return headings_; }
  std::size_t row_count() const { return rows_.size(); }
  /// Number of cells of the first row.
  std::size_t width() const { return rows_.front().cells.size(); }
  /// True if the first row holds a number in this column.
  bool begins_with_number(std::size_t column) const;
  /// The numbers of a column. Throws FileError, which names the line, for a cell that is no number.
  std::vector<double> numbers(std::size_t column) const;
  /// The numbers of a column of times in s: h:mm:ss are read too, and the unit of the heading counts.
  std::vector<double> seconds(std::size_t column) const;
  /// Line of the file, from 1, of a row.
  int line_of(std::size_t row) const { return rows_[row].line; }
  /// True if no heading tells whether "0,5" is one number or two.
  bool may_have_decimal_commas() const;
  /// True if the first column, as it is separated, holds increasing numbers, and every row has a second cell.
  bool first_cells_increase() const;
  /// Takes every row for one cell, so that commas are decimal.
  void join_cells();

  /// The column that its heading names as time; of several, the one that is named so and nothing else. Throws
  /// FileError where that leaves several.
  std::optional<std::size_t> find_time() const;

  /// A number that may have been meant otherwise, for a message: "1,234" if semicolons alone say that the
  /// comma is decimal. Empty if there is none.
  const std::string& doubtful_number() const { return doubtful_; }

  /// The headings in quotes, for a message.
  std::string list_of_headings() const;
  /// Throws the FileError "'PATH' WHAT."
  [[noreturn]] void fail(const std::string& what) const;

 private:
  struct Row {
    int line = 0;
    bool is_comment = false;
    bool is_quoted = false;  ///< some cell stands in quotes
    std::vector<std::string_view> cells;
  };
  /// Meaning of commas and points in numbers.
  struct Style {
    bool comma_groups = false, comma_is_decimal = false, point_groups = false;
  };

  std::vector<Row> split(char separator) const;
  char find_separator() const;
  bool is_open() const;
  void find_table(std::vector<Row> rows, std::string_view wanted);
  void take_headings(const std::vector<Row>& rows, std::size_t header, std::size_t first);
  void check_widths();
  Style find_style();
  std::optional<double> number(std::string_view cell) const;
  template <typename Read>
  std::vector<double> column(std::size_t index, const std::string& what, const Read& read) const;

  std::filesystem::path path_;
  std::string text_;
  char separator_ = ',';
  std::vector<Heading> headings_;
  std::vector<Row> rows_;
  Style style_;
  std::string doubtful_;
};

}  // namespace dic::io

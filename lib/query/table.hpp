#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/pending_file.hpp"

namespace dic::query {

/// Rows of a CSV table, which are appended to a text, as spreadsheets read them: comma, decimal point, "nan"
/// for no value, text in double quotes where it has to be.
class TableRows {
 public:
  explicit TableRows(std::string& text) : text_(text) {}

  DIC_INTERNAL_API void cell(std::string_view text);
  void cell(const char* text) { cell(std::string_view(text)); }
  void cell(const std::string& text) { cell(std::string_view(text)); }
  DIC_INTERNAL_API void cell(std::int64_t value);
  /// digits: those that count; the rest is rounded.
  DIC_INTERNAL_API void cell(double value, int digits = 10);
  DIC_INTERNAL_API void end_row();

 private:
  void separate();

  std::string& text_;
  bool begun_ = false;  ///< the row
};

/// A CSV file that is written cell by cell.
class Table {
 public:
  explicit Table(const std::filesystem::path& path) : file_(path) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  template <typename... Cell>
  void cell(const Cell&... of) {
    rows_.cell(of...);
  }
  void end_row();
  void commit();

 private:
  PendingText file_;
  std::string text_;
  TableRows rows_{text_};
};

}  // namespace dic::query

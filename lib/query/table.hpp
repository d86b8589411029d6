#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/pending_file.hpp"

namespace dic::query {

/// A CSV file that is being written, as spreadsheets read it: comma, decimal point, "nan" for no value, text
/// in double quotes where it has to be.
class Table {
 public:
  explicit Table(const std::filesystem::path& path) : file_(path) {}

  DIC_INTERNAL_API void cell(std::string_view text);
  void cell(const char* text) { cell(std::string_view(text)); }
  void cell(const std::string& text) { cell(std::string_view(text)); }
  DIC_INTERNAL_API void cell(std::int64_t value);
  /// digits: those that count; the rest is rounded.
  DIC_INTERNAL_API void cell(double value, int digits = 10);
  DIC_INTERNAL_API void end_row();
  DIC_INTERNAL_API void commit();

 private:
  void separate();

  PendingText file_;
  std::string text_;
  bool begun_ = false;  ///< the row
};

}  // namespace dic::query

#include "query/table.hpp"

#include <charconv>
#include <cmath>

namespace dic::query {
namespace {

constexpr std::size_t kBlock = 1 << 18;  // bytes between two writes

}  // namespace

void TableRows::separate() {
  if (begun_) text_ += ',';
  begun_ = true;
}

void TableRows::cell(std::string_view text) {
  separate();
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    text_ += text;
    return;
  }
  text_ += '"';
  for (const char c : text) text_.append(c == '"' ? 2 : 1, c);
  text_ += '"';
}

void TableRows::cell(std::int64_t value) {
  separate();
  text_ += std::to_string(value);
}

void TableRows::cell(double value, int digits) {
  separate();
  if (std::isnan(value)) {
    text_ += "nan";
    return;
  }
  char number[40];
  const auto end =
      std::to_chars(number, number + sizeof number, value, std::chars_format::general, digits).ptr;
  text_.append(number, end);
}

void TableRows::end_row() {
  text_ += '\n';
  begun_ = false;
}

void Table::end_row() {
  rows_.end_row();
  if (text_.size() < kBlock) return;
  file_.write(text_);
  text_.clear();
}

void Table::commit() {
  file_.write(text_);
  file_.commit();
}

}  // namespace dic::query

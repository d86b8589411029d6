#include "io/pending_file.hpp"

#include <cerrno>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <system_error>
#include <utility>

#include "core/advice.hpp"

namespace dic {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void throw_cannot_write(const fs::path& path, const std::string& reason,
                                     const std::string& advice) {
  throw FileError("'" + path.string() + "' cannot be written (" + reason + "); " + advice + ".");
}

}  // namespace

void throw_cannot_write(const fs::path& path, const std::string& reason) {
  throw_cannot_write(path, reason, core::advice_for_writing(0));
}

void throw_cannot_write(const fs::path& path, int error) {
  throw_cannot_write(path, std::generic_category().message(error), core::advice_for_writing(error));
}

PendingFile::PendingFile(fs::path path) : path_(std::move(path)) {
  std::error_code failure;
  file_.emplace(path_, failure);
  if (failure) throw_cannot_write(path_, failure.value());
}

void PendingFile::commit() {
  std::error_code failure;
  file_->commit(failure);
  if (failure) throw_cannot_write(path_, failure.value());
}

PendingText::PendingText(fs::path path)
    : file_(std::move(path)), stream_(std::fopen(file_.temporary().c_str(), "wb")) {
  if (!stream_) throw_cannot_write(file_.path(), errno);
}

void PendingText::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stream_.get()) != text.size())
    throw_cannot_write(file_.path(), errno);
}

void PendingText::commit() {
  if (std::fclose(stream_.release()) != 0) throw_cannot_write(file_.path(), errno);
  file_.commit();
}

void write_text_file(const fs::path& path, std::string_view text) {
  PendingText file(path);
  file.write(text);
  file.commit();
}

}  // namespace dic

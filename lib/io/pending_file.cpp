#include "io/pending_file.hpp"

#include <cerrno>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <system_error>
#include <utility>

namespace dic {

namespace fs = std::filesystem;

void throw_cannot_write(const fs::path& path, const std::string& reason) {
  const bool too_many = reason == std::generic_category().message(EMFILE);
  throw FileError("'" + path.string() + "' cannot be written (" + reason +
                  (too_many ? "); allow the process more open files."
                            : "); free some space, check your rights there or choose another place."));
}

PendingFile::PendingFile(fs::path path) : path_(std::move(path)) {
  std::error_code failure;
  file_.emplace(path_, failure);
  if (failure) throw_cannot_write(path_, failure.message());
}

void PendingFile::commit() {
  std::error_code failure;
  file_->commit(failure);
  if (failure) throw_cannot_write(path_, failure.message());
}

PendingText::PendingText(fs::path path)
    : file_(std::move(path)), stream_(std::fopen(file_.temporary().c_str(), "wb")) {
  if (!stream_) throw_cannot_write(file_.path(), std::generic_category().message(errno));
}

void PendingText::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stream_.get()) != text.size())
    throw_cannot_write(file_.path(), std::generic_category().message(errno));
}

void PendingText::commit() {
  if (std::fclose(stream_.release()) != 0)
    throw_cannot_write(file_.path(), std::generic_category().message(errno));
  file_.commit();
}

void write_text_file(const fs::path& path, std::string_view text) {
  PendingText file(path);
  file.write(text);
  file.commit();
}

}  // namespace dic

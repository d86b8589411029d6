#include "image/raw_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "image/codecs.hpp"

namespace dic::image {

RawFile::RawFile(const std::filesystem::path& path)
    // Without O_NONBLOCK a pipe would wait for its writer.
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  if (file_ < 0) throw cannot_be_read(errno);
  if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file_);
    throw Refusal("is not a regular file; name a recording.");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

RawFile::~RawFile() { ::close(file_); }

bool RawFile::read(std::uint64_t offset, std::span<std::uint8_t> bytes) const {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        ::pread(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace dic::image

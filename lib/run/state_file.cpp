#include "run/state_file.hpp"

#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "io/pending_file.hpp"

namespace dic::run {
namespace {

constexpr std::array<char, 8> kSignature = {'d', 'i', 'c', 's', 't', 'a', 't', '2'};

/// Header of each state.
struct Head {
  std::array<char, 8> signature = kSignature;
  std::int64_t frame = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

std::uint64_t checksum(std::span<const std::byte> state) {
  return libdeflate_crc32(0, state.data(), state.size());
}

}  // namespace

StateFile::StateFile(std::filesystem::path path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file_ < 0) throw_cannot_write(path_, errno);
}

StateFile::~StateFile() {
  if (file_ >= 0) ::close(file_);
}

void StateFile::write(std::int64_t frame, std::span<const std::byte> state) {
  const Head head{.frame = frame, .bytes = state.size(), .checksum = checksum(state)};
  const auto put = [&](const void* bytes, std::size_t size, std::size_t at) {
    const auto* from = static_cast<const char*>(bytes);
    while (size > 0) {
      const ssize_t n = ::pwrite(file_, from, size, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw_cannot_write(path_, errno);
      from += n, at += static_cast<std::size_t>(n), size -= static_cast<std::size_t>(n);
    }
  };
  const std::size_t room = sizeof head + state.size();
  if (place_ < 0) {
    place_ = first_place(state.size());
    // Both places are allocated at once, so that a disk that is full later still has room for the state of
    // the last frame it took.
    if (const int reason = ::posix_fallocate(file_, 0, static_cast<off_t>(2 * room)); reason != 0)
      throw_cannot_write(path_, reason);
  }
  const std::size_t begin = place_ * room;
  place_ = 1 - place_;
  put(&head, sizeof head, begin);
  put(state.data(), state.size(), begin + sizeof head);
}

int StateFile::first_place(std::uint64_t bytes) const {
  std::array<std::int64_t, 2> frames = {-1, -1};
  for (int place = 0; place < 2; ++place) {
    Head head;
    const auto at = static_cast<off_t>(place * (sizeof head + bytes));
    if (::pread(file_, &head, sizeof head, at) == ssize_t{sizeof head} && head.signature == kSignature &&
        head.bytes == bytes)
      frames[place] = head.frame;
  }
  return frames[0] <= frames[1] ? 0 : 1;
}

std::vector<std::byte> StateFile::read(const std::filesystem::path& path, std::int64_t frame) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  for (std::streamoff begin = 0; begin + std::streamoff{sizeof(Head)} <= size;) {
    Head head;
    file.seekg(begin);
    if (!file.read(reinterpret_cast<char*>(&head), sizeof head)) break;
    const std::streamoff rest = size - begin - std::streamoff{sizeof head};
    if (head.signature != kSignature || head.bytes > static_cast<std::uint64_t>(rest)) break;
    std::vector<std::byte> state(head.bytes);
    if (!file.read(reinterpret_cast<char*>(state.data()), static_cast<std::streamsize>(head.bytes))) break;
    if (head.frame == frame) return checksum(state) == head.checksum ? state : std::vector<std::byte>();
    begin += static_cast<std::streamoff>(sizeof head + head.bytes);
  }
  return {};
}

}  // namespace dic::run

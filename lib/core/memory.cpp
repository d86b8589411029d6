#include "dic/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dic/error.hpp>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/make_room.hpp"

namespace dic {
namespace {

/// Smallest block that is mapped, bytes; smaller blocks come from the heap.
constexpr std::size_t kLeastMapped = std::size_t{1} << 20;
constexpr std::size_t kPiece = std::size_t{16} << 20;  ///< bytes given back in one step
constexpr auto kPause = std::chrono::milliseconds(2);
constexpr auto kBetweenLooks = std::chrono::microseconds(50);  ///< reading the resident size takes 2 us
/// Bytes that may become resident before the keeper notices, on a machine that is also busy with other work.
constexpr std::size_t kReserve = std::size_t{256} << 20;

class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  ~OpenFile() {
    if (file_ >= 0) ::close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

[[noreturn]] void throw_failure(const std::filesystem::path& folder, std::size_t bytes, int reason) {
  throw FileError("Images need " + std::to_string(bytes >> 20) + " MB more on the disk of " +
                  folder.string() + " (" + std::generic_category().message(reason) +
                  "): make room there, or allow more memory with --max-memory.");
}

/// The folder, or its nearest parent that exists.
std::filesystem::path existing(std::filesystem::path folder) {
  std::error_code ignored;
  folder = std::filesystem::absolute(folder, ignored);
  while (!std::filesystem::is_directory(folder, ignored) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder;
}

/// Opens a file that has no name, so that nothing remains on the disk however the process ends.
int open_nameless(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return file;
  std::string name = (folder / ".dic-memory-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

/// Maps a new file. Allocates its disk space now: a disk that fills up later would kill the process.
void* map_file(const std::filesystem::path& folder, std::size_t bytes) {
  const OpenFile file(open_nameless(folder));
  if (file.get() < 0) throw_failure(folder, bytes, errno);
  if (const int reason = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); reason != 0)
    throw_failure(folder, bytes, reason);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Pages stay at 4 KB: with larger ones, reading one column would load the whole image, and writing one byte
  // would send 2 MB to the disk.
  ::madvise(memory, bytes, MADV_RANDOM);
  return memory;
}

/// The limits of this process, its mapped blocks, and the thread that gives their pages back.
class Keeper {
 public:
  /// The only instance: a memory limit applies to the whole process. No other state is shared by objects.
  static Keeper& instance() {
    static Keeper keeper;
    return keeper;
  }

  void add(const MemoryLimit* limit, std::size_t bytes, std::filesystem::path folder) {
    const std::lock_guard lock(mutex_);
    limits_.emplace(limit, Limit{bytes, std::move(folder)});
    set_most();
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
  }

  void remove(const MemoryLimit* limit) {
    std::jthread ended;  // joined after the lock is released
    const std::lock_guard lock(mutex_);
    if (limits_.erase(limit) == 0) return;
    set_most();
    if (!limits_.empty()) return;
    thread_.request_stop();
    ended = std::move(thread_);
  }

  /// Gives pages back in the calling thread, which may create them faster than the keeper's thread can.
  void make_room() {
    if (most_ == 0 || !helps_) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    if (now - last_look_.load() < kBetweenLooks) return;
    last_look_ = now;
    if (resident_bytes() <= most_) return;
    const std::lock_guard lock(mutex_);
    give_back();
  }

  /// Maps a new block. Returns null if no limit is set.
  std::byte* map(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    if (limits_.empty()) return nullptr;
    const std::filesystem::path folder = smallest().folder;
    lock.unlock();  // a disk may be slow
    auto* block = static_cast<std::byte*>(map_file(folder, bytes));
    lock.lock();
    blocks_.emplace(block, bytes);
    return block;
  }

  void unmap(std::byte* block) {
    std::unique_lock lock(mutex_);
    const std::size_t bytes = blocks_.extract(block).mapped();
    lock.unlock();  // unmapping a large file takes long
    ::munmap(block, bytes);
  }

 private:
  struct Limit {
    std::size_t bytes;
    std::filesystem::path folder;
  };

  const Limit& smallest() const {
    return std::ranges::min_element(limits_, {}, [](const auto& entry) { return entry.second.bytes; })
        ->second;
  }

  /// Updates `most_` after a change of the limits. The caller holds the lock.
  void set_most() {
    const std::size_t limit = limits_.empty() ? 0 : smallest().bytes;
    most_ = limit - std::max(limit / 4, std::min(limit / 2, kReserve));
  }

  void keep(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      give_back();
      changed_.wait_for(lock, stop, kPause, [] { return false; });
    }
  }

  /// Cycles through all blocks until enough memory is free.
  void give_back() {
    if (most_ == 0 || resident_bytes() <= most_) return;
    std::size_t left = 0;
    for (const auto& [block, bytes] : blocks_) left += bytes;
    bool is_enough = false;
    while (!is_enough && left > 0) {
      left -= std::min(left, give_back_piece());
      is_enough = resident_bytes() <= most_ / 8 * 7;
    }
    helps_ = is_enough;
  }

  /// Gives one piece back; its contents stay in the file. Returns the number of bytes.
  std::size_t give_back_piece() {
    auto block = blocks_.upper_bound(hand_);
    if (block != blocks_.begin() && hand_ < std::prev(block)->first + std::prev(block)->second)
      --block;  // the hand is within this one
    else if (block == blocks_.end())
      block = blocks_.begin();
    std::byte* const end = block->first + block->second;
    std::byte* const from = hand_ >= block->first && hand_ < end ? hand_ : block->first;
    const std::size_t bytes = std::min<std::size_t>(kPiece, end - from);
    ::madvise(from, bytes, MADV_DONTNEED);
    hand_ = from + bytes;
    return bytes;
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<const MemoryLimit*, Limit> limits_;
  std::map<std::byte*, std::size_t> blocks_;
  std::byte* hand_ = nullptr;          ///< begin of the next piece
  std::atomic<std::size_t> most_ = 0;  ///< resident bytes above which pages are given back; 0: no limit
  std::atomic<std::chrono::steady_clock::duration> last_look_{};
  std::atomic<bool> helps_ = true;  ///< false: most memory is outside blocks, so threads need not wait
  std::jthread thread_;
};

}  // namespace

MemoryLimit::MemoryLimit(std::size_t bytes, const std::filesystem::path& folder) {
  if (bytes == 0) return;
  if (resident_bytes() == 0) throw UsageError("This system does not say how much memory a process uses.");
  Keeper::instance().add(this, bytes, existing(folder));
}
MemoryLimit::~MemoryLimit() { Keeper::instance().remove(this); }

void core::make_room_in_memory() { Keeper::instance().make_room(); }

std::size_t resident_bytes() {
  const OpenFile file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  char text[128] = {};
  // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): this file never lets its reader wait
  if (file.get() < 0 || ::read(file.get(), text, sizeof text - 1) <= 0) return 0;
  unsigned long long size = 0, resident = 0;
  if (std::sscanf(text, "%llu %llu", &size, &resident) != 2) return 0;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

PixelMemory::PixelMemory(std::size_t bytes, bool zeros) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes >= kLeastMapped) data_ = Keeper::instance().map(bytes);
  is_mapped_ = data_ != nullptr;
  if (!data_) data_ = static_cast<std::byte*>(zeros ? std::calloc(bytes, 1) : std::malloc(bytes));
  if (!data_) throw std::bad_alloc();
}
PixelMemory::PixelMemory(const PixelMemory& other) : PixelMemory(other.size_, false) {
  if (size_ > 0) std::memcpy(data_, other.data_, size_);
}
PixelMemory::PixelMemory(PixelMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      is_mapped_(std::exchange(other.is_mapped_, false)) {}
PixelMemory& PixelMemory::operator=(PixelMemory other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(is_mapped_, other.is_mapped_);
  return *this;
}
PixelMemory::~PixelMemory() {
  if (is_mapped_)
    Keeper::instance().unmap(data_);
  else
    std::free(data_);
}

}  // namespace dic

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct CUstream_st;  // CUDA's stream and event, opaque here
struct CUevent_st;

/// CUDA devices as plain data, and objects that own device resources. No CUDA header is needed to
/// include this; every failure is a dic::DeviceError that names the operation and the device.
namespace dic::kernels {

using StreamHandle = CUstream_st*;

/// Properties of one device.
struct Device {
  int index = 0;               ///< the N of "cuda:N"
  std::string model;           ///< "NVIDIA H100 80GB HBM3"
  int compute_capability = 0;  ///< 90 for 9.0
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
};

/// All devices that this process may use and this build has code for, in CUDA's order. If there are none, the
/// list is empty and `why` (if given) receives one sentence.
std::vector<Device> devices(std::string* why = nullptr);

/// As devices(), but throws DeviceError if there are none.
std::vector<Device> find_devices();
/// Device "cuda:<index>". Throws DeviceError if it does not exist or cannot be used.
Device find_device(int index);

/// Makes a device current for the calling thread; the end of the scope restores the former device.
class DeviceScope {
 public:
  explicit DeviceScope(int index);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int former_ = 0;
};

/// Priority of a stream: if blocks of several kernels wait, those of higher priority begin first.
enum class Priority : std::uint8_t { normal, high };

class Event;

/// A queue of device work. It belongs to the device that was current when it was made.
class Stream {
 public:
  explicit Stream(Priority priority = Priority::normal);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamHandle handle() const { return handle_; }
  /// Waits until all queued work is done; `what` names that work in the message of an error.
  void synchronize(const std::string& what) const;
  /// Makes work that is queued from now on begin after the event was reached.
  void wait(const Event& event) const;

 private:
  StreamHandle handle_ = nullptr;
};

/// Time between two marks in a stream, by the clock of the device.
class Stopwatch {
 public:
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start(const Stream& stream);
  void stop(const Stream& stream);
  /// Seconds from the last start to the last stop; requires that the stream was synchronized since then.
  double seconds() const;

 private:
  CUevent_st* start_ = nullptr;
  CUevent_st* stop_ = nullptr;
};

/// A mark in the work of a stream, for which other streams and the host can wait. An event counts as reached
/// before it is recorded for the first time.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Marks the end of all work that is queued on the stream so far.
  void record(const Stream& stream);
  bool reached() const;
  /// Waits until the event is reached; `what` names the work before it in the message of an error.
  void synchronize(const std::string& what) const;

 private:
  friend class Stream;
  CUevent_st* handle_ = nullptr;
};

enum class MemoryKind : std::uint8_t {
  device,
  pinned  ///< page-locked host memory: copies from and to it overlap with other work of host and device
};

/// Memory that only grows: in a steady workload, only the first calls allocate.
template <MemoryKind kind>
class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  /// Returns at least `bytes` of memory, aligned to 256 bytes. Growing loses the content and waits for the
  /// device; while pinned memory grows, no copy from or to it may be under way.
  void* reserve(std::size_t bytes);
  /// Memory for `count` elements of a plain type, see above.
  template <typename T>
  T* reserve(std::size_t count) {
    return static_cast<T*>(reserve(count * sizeof(T)));
  }
  void* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};
using DeviceBuffer = Buffer<MemoryKind::device>;
using PinnedBuffer = Buffer<MemoryKind::pinned>;

/// Free memory of the current device, in bytes.
std::size_t free_memory();

/// Copies `rows` rows of `row_bytes` each. A pitch is the distance in bytes between the starts of two rows;
/// the host pitch may be small or negative. Pageable host memory has been read when the call returns, pinned
/// memory when the stream has reached this copy.
void upload(void* device, std::size_t device_pitch, const void* host, std::ptrdiff_t host_pitch,
            std::size_t row_bytes, std::size_t rows, const Stream& stream);
void upload(void* device, const void* host, std::size_t bytes, const Stream& stream);
/// Queues a copy to the host, whose memory is valid after stream.synchronize().
void download(void* host, const void* device, std::size_t bytes, const Stream& stream);
/// Queues writing `value` to every byte.
void fill(void* device, int value, std::size_t bytes, StreamHandle stream);

}  // namespace dic::kernels

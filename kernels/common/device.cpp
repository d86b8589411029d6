#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dic/kernels/device.hpp>
#include <dic/kernels/memory_space.hpp>
#include <dic/shared/error.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "common/check.hpp"

namespace dic::kernels {
namespace {

constexpr int oldest_compute_capability = 80;  // oldest architecture that kernels/ is compiled for

std::string current_device_name() {
  int index = 0;
  cudaDeviceProp properties;
  if (cudaGetDevice(&index) != cudaSuccess) return "the GPU";
  std::string name = "cuda:" + std::to_string(index);
  if (cudaGetDeviceProperties(&properties, index) == cudaSuccess)
    name += " (" + std::string(properties.name) + ")";
  return name;
}

Device describe(int index) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index),
        "Reading the properties of cuda:" + std::to_string(index));
  return {index, properties.name, properties.major * 10 + properties.minor, properties.multiProcessorCount,
          properties.totalGlobalMem};
}

}  // namespace

void check(cudaError_t code, const std::string& what) {
  if (code == cudaSuccess) return;
  const std::string device = current_device_name();
  cudaGetLastError();  // clears the error: a later, healthy call must not report it again
  const std::string advice = code == cudaErrorMemoryAllocation
                                 ? "; fewer points or smaller images take less, or use --device cpu."
                                 : "; use --device cpu if this persists.";
  throw DeviceError(what + " failed on " + device + ": " + cudaGetErrorString(code) + advice);
}

std::vector<Device> devices(std::string* why) {
  std::string reason;
  std::vector<Device> found;
  int count = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    cudaGetLastError();
    reason = code == cudaErrorInsufficientDriver ? "the NVIDIA driver is missing or older than CUDA 13 needs"
                                                 : cudaGetErrorString(code);
    count = 0;
  } else if (count == 0) {
    reason = "the NVIDIA driver sees no GPU";
  }
  for (int index = 0; index < count; ++index) {
    Device device = describe(index);
    if (device.compute_capability >= oldest_compute_capability)
      found.push_back(std::move(device));
    else
      reason = device.model + " is older than compute capability 8.0";
  }
  if (why) *why = found.empty() ? reason : "";
  return found;
}

std::vector<Device> find_devices() {
  std::string why;
  const std::vector<Device> all = devices(&why);
  if (all.empty()) throw DeviceError("There is no GPU to use: " + why + "; use --device cpu.");
  return all;
}

Device find_device(int index) {
  for (const Device& device : find_devices())
    if (device.index == index) return device;
  throw DeviceError("There is no usable device cuda:" + std::to_string(index) +
                    "; `dic info` lists the devices.");
}

DeviceScope::DeviceScope(int index) {
  check(cudaGetDevice(&former_), "Reading the current device");
  check(cudaSetDevice(index), "Selecting cuda:" + std::to_string(index));
}
DeviceScope::~DeviceScope() { cudaSetDevice(former_); }

Stream::Stream(Priority priority) {
  int lowest = 0, highest = 0;  // higher priorities have smaller numbers
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "Reading the priorities of streams");
  const int number = std::max(lowest - static_cast<int>(priority), highest);
  check(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, number), "Creating a stream");
}
Stream::~Stream() { cudaStreamDestroy(handle_); }
void Stream::synchronize(const std::string& what) const { check(cudaStreamSynchronize(handle_), what); }
void Stream::wait(const Event& event) const {
  check(cudaStreamWaitEvent(handle_, event.handle_), "Waiting for an event");
}

Stopwatch::Stopwatch() {
  check(cudaEventCreate(&start_), "Creating an event");
  check(cudaEventCreate(&stop_), "Creating an event");
}
Stopwatch::~Stopwatch() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
}
void Stopwatch::start(const Stream& stream) {
  check(cudaEventRecord(start_, stream.handle()), "Recording an event");
}
void Stopwatch::stop(const Stream& stream) {
  check(cudaEventRecord(stop_, stream.handle()), "Recording an event");
}
double Stopwatch::seconds() const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start_, stop_), "Reading an event");
  return 1e-3 * milliseconds;
}

Event::Event() { check(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming), "Creating an event"); }
Event::~Event() { cudaEventDestroy(handle_); }
void Event::record(const Stream& stream) {
  check(cudaEventRecord(handle_, stream.handle()), "Recording an event");
}
bool Event::reached() const {
  const cudaError_t code = cudaEventQuery(handle_);
  if (code != cudaErrorNotReady) check(code, "Querying an event");
  return code == cudaSuccess;
}
void Event::synchronize(const std::string& what) const { check(cudaEventSynchronize(handle_), what); }

namespace {

/// Least size for large pages, which, touched by several threads, cut the time of page-locking to a third.
constexpr std::size_t large_page = std::size_t{2} << 20;

void touch(std::byte* memory, std::size_t pages) {
  constexpr std::size_t most_threads = 4;
  const std::size_t threads = std::min(pages, most_threads);
  std::vector<std::jthread> team;
  for (std::size_t i = 0; i < threads; ++i) {
    const std::size_t first = pages * i / threads, last = pages * (i + 1) / threads;
    team.emplace_back([=] { std::memset(memory + first * large_page, 0, (last - first) * large_page); });
  }
}

/// Returns null if CUDA cannot lock memory that it did not allocate itself.
void* allocate_large_pages(std::size_t bytes) {
  const std::size_t pages = (bytes + large_page - 1) / large_page;
  void* memory = std::aligned_alloc(large_page, pages * large_page);
  if (!memory) return nullptr;
  madvise(memory, pages * large_page, MADV_HUGEPAGE);  // small pages are slower
  touch(static_cast<std::byte*>(memory), pages);
  if (cudaHostRegister(memory, pages * large_page, cudaHostRegisterPortable) == cudaSuccess) return memory;
  cudaGetLastError();  // clears the error: a later, healthy call must not report it
  std::free(memory);
  return nullptr;
}

void* allocate_pinned(std::size_t bytes) {
  void* memory = bytes < large_page ? nullptr : allocate_large_pages(bytes);
  if (!memory)
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
          "Allocating " + std::to_string(bytes) + " bytes of page-locked memory");
  return memory;
}

void release_pinned(void* memory, std::size_t bytes) {
  if (bytes >= large_page && cudaHostUnregister(memory) == cudaSuccess) return std::free(memory);
  cudaGetLastError();  // this memory has no large pages; if the device is lost, large pages stay allocated
  cudaFreeHost(memory);
}

void release(void* memory, std::size_t bytes, MemoryKind kind) {
  if (!memory) return;
  if (kind == MemoryKind::device)
    cudaFree(memory);
  else
    release_pinned(memory, bytes);
}

/// Bytes left free for the driver, and for pages of allocations that do not fit.
constexpr std::size_t kept_free = std::size_t{256} << 20;

bool host_has(std::size_t bytes) {
  const auto pages = static_cast<std::size_t>(std::max(0L, sysconf(_SC_AVPHYS_PAGES)));
  return bytes <= pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Managed memory, which the device loads page by page: slow, but larger than the device's own memory.
/// Returns null if the device has enough memory, or if device or host do not support it.
void* allocate_paged(std::size_t bytes) {
  int device = 0, pages = 0;
  if (bytes + kept_free <= free_memory()) return nullptr;
  check(cudaGetDevice(&device), "Reading the current device");
  check(cudaDeviceGetAttribute(&pages, cudaDevAttrConcurrentManagedAccess, device),
        "Reading the properties of the device");
  void* memory = nullptr;
  if (!pages || !host_has(bytes) || cudaMallocManaged(&memory, bytes) != cudaSuccess) {
    cudaGetLastError();  // clears the error: a later, healthy call must not report it
    return nullptr;
  }
  return memory;
}

void* allocate(std::size_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::pinned) return allocate_pinned(bytes);
  void* memory = allocate_paged(bytes);
  if (!memory) check(cudaMalloc(&memory, bytes), "Allocating " + std::to_string(bytes) + " bytes");
  return memory;
}

}  // namespace

template <MemoryKind kind>
Buffer<kind>::~Buffer() {
  release(data_, size_, kind);
}
template <MemoryKind kind>
Buffer<kind>::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
template <MemoryKind kind>
Buffer<kind>& Buffer<kind>::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

template <MemoryKind kind>
void* Buffer<kind>::reserve(std::size_t bytes) {
  if (bytes <= size_) return data_;
  bytes = std::max(bytes, size_ + size_ / 4);  // slow growth must not reallocate every time
  release(std::exchange(data_, nullptr), std::exchange(size_, 0), kind);  // comes first: both may not fit
  data_ = allocate(bytes, kind);
  size_ = bytes;
  return data_;
}
template class Buffer<MemoryKind::device>;
template class Buffer<MemoryKind::pinned>;

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "Reading the free memory");
  return free;
}

bool is_device_memory(const void* memory) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

int device_of(const void* memory) {
  cudaPointerAttributes attributes;
  check(cudaPointerGetAttributes(&attributes, memory), "Asking which GPU has an image");
  return attributes.device;
}

void wait_for_default_stream(int device) {
  const DeviceScope scope(device);
  check(cudaStreamSynchronize(cudaStreamLegacy), "Waiting for the default stream");
}

void upload(void* device, std::size_t device_pitch, const void* host, std::ptrdiff_t host_pitch,
            std::size_t row_bytes, std::size_t rows, const Stream& stream) {
  if (host_pitch < static_cast<std::ptrdiff_t>(row_bytes)) {  // cudaMemcpy2D does not accept such a pitch
    for (std::size_t y = 0; y < rows; ++y)
      upload(static_cast<std::byte*>(device) + y * device_pitch,
             static_cast<const std::byte*>(host) + static_cast<std::ptrdiff_t>(y) * host_pitch, row_bytes,
             stream);
    return;
  }
  check(cudaMemcpy2DAsync(device, device_pitch, host, host_pitch, row_bytes, rows, cudaMemcpyDefault,
                          stream.handle()),
        "Copying an image to the device");
}

void upload(void* device, const void* host, std::size_t bytes, const Stream& stream) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream.handle()),
        "Copying " + std::to_string(bytes) + " bytes to the device");
}

void download(void* host, const void* device, std::size_t bytes, const Stream& stream) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream.handle()),
        "Copying " + std::to_string(bytes) + " bytes from the device");
}

void fill(void* device, int value, std::size_t bytes, StreamHandle stream) {
  check(cudaMemsetAsync(device, value, bytes, stream), "Filling " + std::to_string(bytes) + " bytes");
}

}  // namespace dic::kernels

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// Aravis, the library for GenICam cameras, through libaravis-0.8.so.0, which is loaded on first use. The
/// build needs no header: the functions are declared here.
namespace dic::live::arv {

struct Camera;
struct Device;
struct FakeCamera;
struct Stream;
struct Buffer;
struct Node;
/// GError of GLib.
struct GError {
  std::uint32_t domain;
  int code;
  char* message;
};
using FillPattern = void (*)(Buffer*, void* data, std::uint32_t exposure, std::uint32_t gain,
                             std::uint32_t format);
using Notice = void (*)(Device*, void* data);

constexpr int kBufferSuccess = 0, kBufferSizeMismatch = 5;
/// Registers of Aravis's fake camera.
constexpr std::uint32_t kFakeWidth = 0x100, kFakeHeight = 0x104, kFakePixelFormat = 0x128;

// A return type, a name and arguments for each function, a line each.
// clang-format off
#define DIC_ARAVIS_FUNCTIONS(use) \
  use(void, arv_enable_interface, (const char* name)) \
  use(void, arv_update_device_list, ()) \
  use(unsigned, arv_get_n_devices, ()) \
  use(const char*, arv_get_device_id, (unsigned index)) \
  use(const char*, arv_get_device_address, (unsigned index)) \
  use(const char*, arv_get_device_vendor, (unsigned index)) \
  use(const char*, arv_get_device_model, (unsigned index)) \
  use(const char*, arv_get_device_serial_nbr, (unsigned index)) \
  use(const char*, arv_get_device_protocol, (unsigned index)) \
  use(Camera*, arv_camera_new, (const char* name, GError** error)) \
  use(Device*, arv_camera_get_device, (Camera* camera)) \
  use(int, arv_camera_is_gv_device, (Camera* camera)) \
  use(int, arv_gv_device_is_controller, (Device* device)) \
  use(void, arv_camera_set_region, (Camera* camera, int x, int y, int width, int height, GError** error)) \
  use(void, arv_camera_get_region, \
      (Camera* camera, int* x, int* y, int* width, int* height, GError** error)) \
  use(void, arv_camera_set_pixel_format_from_string, (Camera* camera, const char* format, GError** error)) \
  use(const char*, arv_camera_get_pixel_format_as_string, (Camera* camera, GError** error)) \
  use(int, arv_camera_is_frame_rate_available, (Camera* camera, GError** error)) \
  use(void, arv_camera_set_frame_rate, (Camera* camera, double rate, GError** error)) \
  use(double, arv_camera_get_frame_rate, (Camera* camera, GError** error)) \
  use(int, arv_camera_is_exposure_time_available, (Camera* camera, GError** error)) \
  use(void, arv_camera_set_exposure_time, (Camera* camera, double us, GError** error)) \
  use(double, arv_camera_get_exposure_time, (Camera* camera, GError** error)) \
  use(int, arv_camera_is_gain_available, (Camera* camera, GError** error)) \
  use(void, arv_camera_set_gain, (Camera* camera, double gain, GError** error)) \
  use(double, arv_camera_get_gain, (Camera* camera, GError** error)) \
  use(void, arv_camera_set_acquisition_mode, (Camera* camera, int mode, GError** error)) \
  use(void, arv_camera_set_trigger, (Camera* camera, const char* source, GError** error)) \
  use(void, arv_camera_clear_triggers, (Camera* camera, GError** error)) \
  use(const char*, arv_camera_get_trigger_source, (Camera* camera, GError** error)) \
  use(void, arv_camera_software_trigger, (Camera* camera, GError** error)) \
  use(unsigned, arv_camera_get_payload, (Camera* camera, GError** error)) \
  use(Stream*, arv_camera_create_stream, (Camera* camera, void* callback, void* data, GError** error)) \
  use(void, arv_camera_start_acquisition, (Camera* camera, GError** error)) \
  use(void, arv_camera_stop_acquisition, (Camera* camera, GError** error)) \
  use(Node*, arv_device_get_feature, (Device* device, const char* name)) \
  use(void, arv_gc_feature_node_set_value_from_string, (Node* node, const char* value, GError** error)) \
  use(const char*, arv_gc_feature_node_get_value_as_string, (Node* node, GError** error)) \
  use(Buffer*, arv_buffer_new_allocate, (std::size_t bytes)) \
  use(int, arv_buffer_get_status, (Buffer* buffer)) \
  use(std::uint64_t, arv_buffer_get_frame_id, (Buffer* buffer)) \
  use(void, arv_buffer_set_frame_id, (Buffer* buffer, std::uint64_t id)) \
  use(std::uint64_t, arv_buffer_get_timestamp, (Buffer* buffer)) \
  use(void, arv_buffer_set_timestamp, (Buffer* buffer, std::uint64_t ns)) \
  use(std::uint64_t, arv_buffer_get_system_timestamp, (Buffer* buffer)) \
  use(void, arv_buffer_set_system_timestamp, (Buffer* buffer, std::uint64_t ns)) \
  use(const void*, arv_buffer_get_data, (Buffer* buffer, std::size_t* bytes)) \
  use(int, arv_buffer_get_image_width, (Buffer* buffer)) \
  use(int, arv_buffer_get_image_height, (Buffer* buffer)) \
  use(std::uint32_t, arv_buffer_get_image_pixel_format, (Buffer* buffer)) \
  use(void, arv_stream_push_buffer, (Stream* stream, Buffer* buffer)) \
  use(Buffer*, arv_stream_timeout_pop_buffer, (Stream* stream, std::uint64_t us)) \
  use(void, arv_stream_get_statistics, \
      (Stream* stream, std::uint64_t* completed, std::uint64_t* failures, std::uint64_t* underruns)) \
  use(std::uint64_t, arv_stream_get_info_uint64_by_name, (Stream* stream, const char* name)) \
  use(FakeCamera*, arv_fake_device_get_fake_camera, (Device* device)) \
  use(FakeCamera*, arv_fake_camera_new, (const char* serial)) \
  use(int, arv_fake_camera_write_register, (FakeCamera* camera, std::uint32_t at, std::uint32_t value)) \
  use(void, arv_fake_camera_fill_buffer, (FakeCamera* camera, Buffer* buffer, std::uint32_t* packet_size)) \
  use(void, arv_fake_camera_set_fill_pattern, (FakeCamera* camera, FillPattern pattern, void* data)) \
  use(void, g_object_unref, (void* object)) \
  use(void, g_clear_error, (GError** error)) \
  use(unsigned long, g_signal_connect_data, \
      (void* object, const char* signal, Notice notice, void* data, void* destroy, int flags)) \
  use(void, g_signal_handler_disconnect, (void* object, unsigned long handler))
// clang-format on

/// The functions of Aravis, and of GLib, which it brings, that this library uses.
struct Library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a type, a name and arguments
#define DIC_ARAVIS_MEMBER(type, name, arguments) type(*name) arguments = nullptr;
  DIC_ARAVIS_FUNCTIONS(DIC_ARAVIS_MEMBER)
#undef DIC_ARAVIS_MEMBER
  std::string problem;  ///< empty if all functions were found, otherwise one sentence
};
const Library& library();

}  // namespace dic::live::arv

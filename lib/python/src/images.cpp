#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <dic/image_io.hpp>
#include <dic/info.hpp>
#include <stdexcept>

#include "arrays.hpp"
#include "bindings.hpp"

namespace dic::python {

namespace {

/// Reads a file by one of the functions of <dic/image_io.hpp>.
template <Image (*kRead)(const std::filesystem::path&)>
NumpyArray read_file(const std::filesystem::path& path) {
  return numpy_of([&] {
    const nb::gil_scoped_release others_run;
    return kRead(path);
  }());
}

void write_file(const std::filesystem::path& path, const Array& image) {
  const ImageView view = view_of(image);
  const nb::gil_scoped_release others_run;
  write_image(path, view);
}

NumpyArray read_frame(FrameSource& source, std::int64_t i) {
  return numpy_of([&] {
    const nb::gil_scoped_release others_run;
    return source.read(i);
  }());
}

nb::list listed(const std::vector<DeviceInfo>& devices) {
  nb::list all;
  for (const DeviceInfo& device : devices) {
    nb::dict entry;
    entry["name"] = device.name;
    entry["model"] = device.model;
    entry["details"] = device.details;
    all.append(entry);
  }
  return all;
}

nb::dict information() {
  const BuildInfo info = build_info();
  nb::dict out;
  out["version"] = info.version;
  out["compiler"] = info.compiler;
  out["build_type"] = info.build_type;
  out["libraries"] = info.libraries;
  out["cpu"] = info.cpu;
  out["simd_target"] = info.simd_target;
  out["cuda"] = info.cuda;
  out["cuda_note"] = info.cuda_note;
  out["devices"] = listed(info.devices);
  const OpenClInfo opencl = opencl_info();
  out["opencl_note"] = opencl.note;
  out["opencl_devices"] = listed(opencl.devices);
  return out;
}

}  // namespace

void add_images(nb::module_& module) {
  using namespace nb::literals;
  module.def(
      "read_image", &read_file<read_image>, "path"_a,
      "Reads an image file as grey values.\n\n"
      "Returns an array [y, x] of uint8, uint16 or float32, as the file has them; colour becomes grey "
      "(ITU-R BT.601), the orientation noted in the file is applied. PNG, TIFF, BMP, JPEG, PGM, GIF; of "
      "several pages the first picture. Raises FileError.");
  module.def(
      "read_mask", &read_file<read_mask>, "path"_a,
      "Reads a mask, as roi= takes it: an array [y, x] of uint8, 255 inside, 0 outside. Raises FileError.");
  module.def(
      "read_opacity", &read_file<read_opacity>, "path"_a,
      "Where the pixels of an image file are opaque: an array [y, x] of uint8, 255 there; of size 0 if all "
      "are. Raises FileError.");
  module.def(
      "write_image", &write_file, "path"_a, "image"_a,
      "Writes an array [y, x] of uint8 or uint16 (PNG, TIFF, BMP, PGM by the ending) or float32 (TIFF). "
      "Raises FileError, UsageError.");
  module.def("info", &information,
             "Version, compiler, libraries, processor and devices of this installation, as a dictionary.");
  nb::class_<FrameSource>(module, "FrameSource",
                          "A sequence of frames, read one at a time: image files or the frames of one video.")
      .def("count", &FrameSource::count, "Number of frames; None where a video does not say.")
      .def("name", &FrameSource::name, "i"_a, "Name of frame i.")
      .def("read", &read_frame, "i"_a,
           "Frame i as an array [y, x]. A video is read in order. Raises FileError, and IndexError past the "
           "end.")
      .def("frames_per_second", &FrameSource::frames_per_second,
           "Frame rate of a video or a recording; None if it is not known.")
      .def("time", &FrameSource::time, "i"_a,
           "Time of frame i, s from the first, where the file notes it; else None. A video knows those that "
           "were "
           "read.")
      .def("reads_in_parallel", &FrameSource::reads_in_parallel,
           "Whether several threads may read at once, in any order.");
  module.def("open_frames", &open_frames, "arguments"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Opens files, globs, folders or one video, as `dic track` does. Raises FileError.");
}

}  // namespace dic::python

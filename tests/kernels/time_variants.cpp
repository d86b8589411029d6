#include <algorithm>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/kernels/ncc.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/device_timing.hpp"

// Times every registered variant on the device, kernels only: medians over repeats, warm, data in device
// memory.
//
//     kernels_time [TEXT...]    only the rows that contain every TEXT
namespace {

using namespace dic;
using kernels::DeviceBuffer;
using kernels::NccJob;
using kernels::Stream;
using test::median_seconds;

constexpr int picture_size = 4096;

struct Shape {
  const char* name;
  Form form;
  ScalarType type;
  int bit_depth;
  int references, windows;
  int ref_size, window_size;
  Shifts shifts;
};

Shape valid(const char* name, int points, int h, int r, ScalarType type = ScalarType::u8, int bit_depth = 0) {
  return {name, Form::one_to_one, type, bit_depth, points, points, h, h + 2 * r, {0, 2 * r, 0, 2 * r}};
}
/// `count` references of h x h in one picture.
Shape templates(const char* name, int count, int h) {
  const Shifts shifts = Shifts::valid(h, h, picture_size, picture_size);
  return {name, Form::n_to_m, ScalarType::u8, 0, count, 1, h, picture_size, shifts};
}
Shape full(const char* name, Form form, int references, int windows, int h) {
  return {name, form, ScalarType::f32, 0, references, windows, h, h, Shifts::full(h, h, h, h)};
}

/// One random picture and random positions in it.
class Side {
 public:
  Side(ScalarType type, int bit_depth, int count, int size, unsigned seed, const Stream& stream)
      : count_(count), size_(size) {
    std::mt19937 random(seed);
    const std::size_t pixels = std::size_t{picture_size} * picture_size;
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint16_t> words;
    std::vector<float> floats;
    const void* data = nullptr;
    if (type == ScalarType::u8) {
      for (std::size_t i = 0; i < pixels; ++i) bytes.push_back(static_cast<std::uint8_t>(random()));
      data = bytes.data();
    } else if (type == ScalarType::u16) {
      const int unused_bits = bit_depth == 0 ? 0 : 16 - bit_depth;
      for (std::size_t i = 0; i < pixels; ++i)
        words.push_back(static_cast<std::uint16_t>((random() & 0xffff) >> unused_bits));
      data = words.data();
    } else {
      for (std::size_t i = 0; i < pixels; ++i)
        floats.push_back(static_cast<float>(random() % 1000) / 1000.0F);
      data = floats.data();
    }
    const std::size_t row = picture_size * dic::size_of(type);
    kernels::upload(pixels_.reserve(row * picture_size), data, row * picture_size, stream);
    const kernels::DevicePicture picture{pixels_.data(), static_cast<std::ptrdiff_t>(row), picture_size,
                                         picture_size};
    kernels::upload(picture_.reserve(sizeof(picture)), &picture, sizeof(picture), stream);
    std::vector<MatrixPosition> positions;
    std::uniform_int_distribution<int> place(0, picture_size - size);
    for (int k = 0; k < count; ++k) {
      const int x = place(random);
      positions.push_back({0, x, place(random)});
    }
    const std::size_t bytes_of_positions = positions.size() * sizeof(MatrixPosition);
    kernels::upload(positions_.reserve(bytes_of_positions), positions.data(), bytes_of_positions, stream);
    stream.synchronize("upload");
  }
  kernels::DeviceMatrices matrices() const {
    return {static_cast<const kernels::DevicePicture*>(picture_.data()),
            static_cast<const MatrixPosition*>(positions_.data()), count_, size_, size_};
  }

 private:
  int count_, size_;
  DeviceBuffer pixels_, picture_, positions_;
};

/// False where no row of a shape can hold all texts: then its pictures need not be made.
bool may_be_wanted(const Shape& shape, std::span<char*> wanted) {
  std::string words =
      "moments of the references, scores from sums, peaks from scores, fused peaks, fused scores";
  for (const kernels::NccVariant& variant : kernels::ncc_variants())
    words += ", " + std::string(variant.name);
  return std::ranges::all_of(wanted, [&](const std::string text) {
    return std::string(shape.name).find(text) != std::string::npos || words.find(text) != std::string::npos;
  });
}

void time_shape(const Shape& shape, std::span<char*> wanted) {
  if (!may_be_wanted(shape, wanted)) return;
  const Stream stream;
  NccJob job;
  job.form = shape.form;
  job.type = shape.type;
  job.bit_depth = shape.bit_depth;
  job.sums = shape.type == ScalarType::f32
                 ? Surfaces::Type::f32
                 : kernels::sums_for_scores(shape.type, shape.ref_size, shape.ref_size);
  const Side reference(shape.type, shape.bit_depth, shape.references, shape.ref_size, 1, stream);
  const Side search(shape.type, shape.bit_depth, shape.windows, shape.window_size, 2, stream);
  job.reference = reference.matrices();
  job.search = search.matrices();
  job.shifts = shape.shifts;
  job.pairs = shape.form == Form::n_to_m ? std::int64_t{shape.references} * shape.windows : shape.windows;

  const auto report = [&](std::string_view name, auto&& launch) {
    const std::string row = shape.name + std::string("  ") + std::string(name);
    const auto holds = [&](const char* text) { return row.find(text) != std::string::npos; };
    if (!std::ranges::all_of(wanted, holds)) return;
    std::printf("%-66s %10.4f ms\n", row.c_str(), 1e3 * median_seconds(stream, launch));
    std::fflush(stdout);
  };
  DeviceBuffer sums, scores, moments, peaks, workspace;
  kernels::Workspace kept;
  sums.reserve(job.outputs() * kernels::size_of(job.sums));
  for (const kernels::NccVariant& variant : kernels::ncc_variants())
    if (variant.sums() && kernels::obstacle(variant).empty() && kernels::refusal(variant, job).empty())
      report(variant.name, [&] { kernels::launch_ncc(variant, job, sums.data(), kept, stream.handle()); });
  if (shape.type == ScalarType::f32) return;

  auto* surfaces = static_cast<float*>(scores.reserve(job.outputs() * sizeof(float)));
  auto* found = static_cast<Peak*>(peaks.reserve(job.pairs * sizeof(Peak)));
  moments.reserve(job.reference.count * kernels::moments_bytes);
  workspace.reserve(kernels::peaks_workspace_bytes(job));
  report("moments of the references",
         [&] { kernels::launch_reference_moments(job, moments.data(), stream.handle()); });
  report("scores from sums", [&] {
    kernels::launch_scores(job, Measure::zncc, kernels::ScoreKind::score, sums.data(), moments.data(),
                           surfaces, stream.handle());
  });
  report("peaks from scores", [&] {
    kernels::launch_peaks(job, Measure::zncc, surfaces, found, workspace.data(), stream.handle());
  });
  for (const kernels::NccVariant& variant : kernels::ncc_variants()) {
    if (!variant.fused || !kernels::refusal(variant, job).empty()) continue;
    if (variant.fused->fits(job, false))
      report(std::string(variant.name) + ", fused scores", [&] {
        variant.fused->launch_scores(job, Measure::zncc, kernels::ScoreKind::score, surfaces,
                                     stream.handle());
      });
    if (variant.fused->fits(job, true))
      report(std::string(variant.name) + ", fused peaks",
             [&] { variant.fused->launch_peaks(job, Measure::zncc, found, stream.handle()); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const kernels::Device device = kernels::find_device(0);
    std::printf("%s\n", device.model.c_str());
    for (const Shape& shape : {valid("valid u8 31,15 x 100000", 100000, 31, 15),
                               valid("valid u8 32,16 x 100000", 100000, 32, 16),
                               valid("valid u8 64,16 x 100000", 100000, 64, 16),
                               valid("valid u8 61,31 x 100000", 100000, 61, 31),
                               templates("valid u8 64 in 4096 x 1", 1, 64),
                               templates("valid u8 64 in 4096 x 100", 100, 64),
                               valid("valid u16 31,15 x 100000", 100000, 31, 15, ScalarType::u16),
                               valid("valid u16 32,16 x 100000", 100000, 32, 16, ScalarType::u16),
                               valid("valid u16 64,16 x 100000", 100000, 64, 16, ScalarType::u16),
                               valid("valid u16 61,31 x 100000", 100000, 61, 31, ScalarType::u16),
                               valid("valid 12 bit 31,15 x 100000", 100000, 31, 15, ScalarType::u16, 12),
                               valid("valid 12 bit 32,16 x 100000", 100000, 32, 16, ScalarType::u16, 12),
                               valid("valid 12 bit 64,16 x 100000", 100000, 64, 16, ScalarType::u16, 12),
                               valid("valid 12 bit 61,31 x 100000", 100000, 61, 31, ScalarType::u16, 12),
                               valid("valid f32 31,15 x 10000", 10000, 31, 15, ScalarType::f32),
                               valid("valid f32 61,31 x 2000", 2000, 61, 31, ScalarType::f32),
                               valid("valid f32 64 in 4096 x 1", 1, 64, 2016, ScalarType::f32),
                               full("full f32 16 50x50", Form::n_to_m, 50, 50, 16),
                               full("full f32 64 1x1", Form::one_to_one, 1, 1, 64),
                               full("full f32 256 1x1", Form::one_to_one, 1, 1, 256),
                               full("full f32 16 1x1", Form::one_to_one, 1, 1, 16),
                               full("full f32 16 1x1024", Form::one_to_many, 1, 1024, 16),
                               full("full f32 32 1x1", Form::one_to_one, 1, 1, 32),
                               full("full f32 32 1x64", Form::one_to_many, 1, 64, 32),
                               full("full f32 32 100x1000", Form::n_to_mn, 100, 1000, 32),
                               full("full f32 64 1x64", Form::one_to_many, 1, 64, 64)})
      time_shape(shape, {argv + 1, argv + argc});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

#include <dic/error.hpp>
#include <dic/image_io.hpp>

#include "io/hdf5_file.hpp"
#include "io/pending_file.hpp"
#include "synth/sequence_folder.hpp"
#include "synth/synth.hpp"

namespace dic {

using namespace synth;

namespace fs = std::filesystem;

namespace {

/// Displacement of the nodes in every frame, [frame, y, x], in the images; with a camera also in corrected
/// coordinates.
struct Truth {
  std::vector<double> x, y, u, v;
  std::vector<std::uint8_t> measurable, body;                              // body: [y, x]
  std::vector<double> corrected_x, corrected_y, corrected_u, corrected_v;  // positions: [y, x]
};

void add_corrected(const SynthOptions& options, Truth& truth) {
  for (const double y : truth.y)
    for (const double x : truth.x) {
      const Camera::Point p = options.camera ? options.camera->undistort(x, y) : Camera::Point{x, y};
      truth.corrected_x.push_back(p.x);
      truth.corrected_y.push_back(p.y);
    }
  for (const double amount : options.amounts)
    for (std::size_t k = 0; k < truth.corrected_x.size(); ++k) {
      const auto [u, v] = options.motion.at(truth.corrected_x[k], truth.corrected_y[k], amount);
      truth.corrected_u.push_back(u);
      truth.corrected_v.push_back(v);
    }
}

Truth compute_truth(const SynthOptions& options, int step) {
  Truth truth;
  for (int x = 0; x < options.size.width; x += step) truth.x.push_back(x);
  for (int y = 0; y < options.size.height; y += step) truth.y.push_back(y);
  add_corrected(options, truth);
  for (std::size_t k = 0; k < truth.corrected_x.size(); ++k)
    truth.body.push_back(
        static_cast<std::uint8_t>(options.motion.body(truth.corrected_x[k], truth.corrected_y[k])));
  for (int i = 0; i < static_cast<int>(options.amounts.size()); ++i)
    for (const double y : truth.y)
      for (const double x : truth.x) {
        const auto [u, v] = image_displacement(options, i, x, y);
        truth.u.push_back(u);
        truth.v.push_back(v);
        truth.measurable.push_back(static_cast<std::uint8_t>(measurable(options, i, x, y)));
      }
  return truth;
}

void write_csv(const fs::path& path, const SynthOptions& options, const Truth& truth) {
  PendingText file(path);
  file.write("frame,x,y,u,v,body,measurable\n");
  std::size_t i = 0;
  for (std::size_t frame = 0; frame < options.amounts.size(); ++frame)
    for (const double y : truth.y)
      for (const double x : truth.x) {
        std::string line = std::to_string(frame) + ',' + decimal(x) + ',' + decimal(y) + ',' +
                           decimal(truth.u[i]) + ',' + decimal(truth.v[i]);
        line += ',' + std::to_string(truth.body[i % truth.body.size()]) + ',' +
                std::to_string(truth.measurable[i]) + '\n';
        file.write(line);
        ++i;
      }
  file.commit();
}

void write_hdf5(const fs::path& path, const SynthOptions& options, const Truth& truth,
                const std::string& command) {
  PendingFile pending(path);
  hdf5::OutputFile file(pending.temporary(), path);
  const hdf5::Shape shape = {options.amounts.size(), truth.y.size(), truth.x.size()};
  file.write("/u", shape, truth.u.data());
  file.write("/v", shape, truth.v.data());
  file.write("/measurable", shape, truth.measurable.data());
  file.write("/body", {truth.y.size(), truth.x.size()}, truth.body.data());
  file.write("/x", {truth.x.size()}, truth.x.data());
  file.write("/y", {truth.y.size()}, truth.y.data());
  if (options.camera) {
    file.write("/X", {truth.y.size(), truth.x.size()}, truth.corrected_x.data());
    file.write("/Y", {truth.y.size(), truth.x.size()}, truth.corrected_y.data());
    file.write("/U", shape, truth.corrected_u.data());
    file.write("/V", shape, truth.corrected_v.data());
  }
  file.write("/amount", {options.amounts.size()}, options.amounts.data());
  file.set_attribute("/", "motion", to_string(options.motion.kind));
  file.set_attribute("/", "seed", options.seed);
  file.set_attribute("/", "command", std::string_view(command));
  file.close();
  pending.commit();
}

}  // namespace

void synth_sequence(const SynthOptions& options, const fs::path& directory, int truth_step,
                    const std::string& command) {
  if (truth_step < 1) throw UsageError("The step of the truth must be at least 1 px.");
  Synthesizer synthesizer(options);
  make_empty_directory(directory);
  for (int i = 0; i < static_cast<int>(options.amounts.size()); ++i)
    write_image(directory / frame_name(i), synthesizer.frame(i));
  const Truth truth = compute_truth(options, truth_step);
  write_csv(directory / "truth.csv", options, truth);
  write_hdf5(directory / "truth.h5", options, truth, command);
}

}  // namespace dic

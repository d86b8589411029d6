#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <map>

#include "io/hdf5_input.hpp"
#include "validate/real.hpp"
#include "validate/validate.hpp"

namespace dic::validation {
namespace {

namespace fs = std::filesystem;

/// The truth.h5 of `dic synth`: arrays [frame, y, x] over nodes x, y with a constant spacing along each axis.
struct TruthFile {
  std::vector<double> u, v, x, y, amount;
  std::vector<std::uint8_t> measurable, body;

  explicit TruthFile(const fs::path& path) {
    hdf5::InputFile file(path);
    file.read("/x", x);
    file.read("/y", y);
    file.read("/amount", amount);
    file.read("/u", u);
    file.read("/v", v);
    file.read("/measurable", measurable);
    file.read("/body", body);
    const std::size_t nodes = x.size() * y.size(), values = nodes * amount.size();
    if (x.size() < 2 || y.size() < 2 || amount.size() < 2 || u.size() != values || v.size() != values ||
        measurable.size() != values || body.size() != nodes)
      throw FileError("'" + path.string() +
                      "' is no truth of dic synth: its datasets do not fit each other.");
  }

  /// The index of the node at this coordinate; none between nodes.
  static std::optional<std::size_t> index(const std::vector<double>& nodes, double value) {
    const double place = (value - nodes[0]) / (nodes[1] - nodes[0]);
    if (place < 0 || place != std::floor(place) || place >= static_cast<double>(nodes.size()))
      return std::nullopt;
    return static_cast<std::size_t>(place);
  }

  std::optional<Truth> at(int frame, double px, double py) const {
    const auto i = index(x, px), j = index(y, py);
    if (!i || !j) return std::nullopt;
    const std::size_t node = *j * x.size() + *i,
                      k = static_cast<std::size_t>(frame) * x.size() * y.size() + node;
    return Truth{u[k], v[k], static_cast<Measurable>(measurable[k]), body[node]};
  }
};

}  // namespace

Scene folder_scene(const fs::path& folder) {
  const auto truth = std::make_shared<TruthFile>(folder / "truth.h5");
  const std::vector<fs::path> files = expand_frames({folder.string()});
  if (files.size() != truth->amount.size())
    throw FileError("'" + folder.string() + "' has " + std::to_string(files.size()) +
                    " images, its truth.h5 " + std::to_string(truth->amount.size()) +
                    " frames: let it hold the frames of dic synth alone.");
  Scene scene;
  scene.frames = static_cast<int>(files.size());
  scene.image = [files](int frame) { return read_image(files[frame]); };
  scene.truth = [truth](int frame, double x, double y) { return truth->at(frame, x, y); };
  scene.known_between = false;
  scene.origin = folder.string();
  return scene;
}

Suite folder_suite(const fs::path& folder) {
  const std::vector<std::string> columns = {"ok", "lost", "false ok", "bias", "sd", "RMSE", "scatter"};
  const std::string name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  if (fs::exists(folder / "truth.h5")) {
    const auto cases = [folder, name](const Options&) {
      return std::vector<Case>{{name, [folder] { return folder_scene(folder); }, {.false_ok = 1e-4}}};
    };
    return {name, "images and truth of " + folder.string(), "ok is a promise", cases, columns};
  }
  if (real_cases(folder).empty())
    throw FileError("'" + folder.string() +
                    "' has neither a truth.h5, as dic synth writes it, nor a collection of images that dic "
                    "validate knows.");
  return {"real", "real images of known motion", "as docs/accuracy.md states them",
          [folder](const Options&) { return real_cases(folder); }, columns};
}

}  // namespace dic::validation

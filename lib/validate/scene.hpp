#pragma once

#include <dic/image.hpp>
#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace dic::validation {

/// True motion of the material at a reference position in a frame.
struct Truth {
  double u = 0, v = 0;  ///< px
  Measurable measurable = Measurable::yes;
  int body = 0;  ///< body as numbered by Motion::body
};

/// Images and their truth.
struct Scene {
  int frames = 2;  ///< number of frames, including the reference, frame 0
  std::function<Image(int frame)> image;
  /// The truth at a reference position; none if unknown, and the point is not judged.
  std::function<std::optional<Truth>(int frame, double x, double y)> truth;
  double truth_error = 0;     ///< standard deviation of the truth, px
  bool known_between = true;  ///< the truth is known between the points too
  std::string origin;         ///< source of the images: a command or a path
  std::optional<Motion> motion;
  std::vector<double> amounts;  ///< amount of motion of each frame
};

/// A scene of synthetic images, made in memory. Throws UsageError.
Scene synthetic_scene(const SynthOptions& options);

/// The command that writes the same images: "dic synth -o DIR ...".
std::string synth_command(const SynthOptions& options);

/// A scene of the frames and the truth.h5 that `dic synth` wrote. Points are judged at the nodes of the
/// truth. Throws FileError.
Scene folder_scene(const std::filesystem::path& folder);

}  // namespace dic::validation

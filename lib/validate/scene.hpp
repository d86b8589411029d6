#pragma once

#include <dic/image.hpp>
#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace dic::validation {

/// What is true of the material at a reference position in a frame.
struct Truth {
  double u = 0, v = 0;  ///< px
  Measurable measurable = Measurable::yes;
  int body = 0;  ///< as Motion::body
};

/// Images and their truth.
struct Scene {
  int frames = 2;  ///< with the reference, frame 0
  std::function<Image(int frame)> image;
  /// None where nothing is known: such points are not judged.
  std::function<std::optional<Truth>(int frame, double x, double y)> truth;
  double truth_error = 0;     ///< standard deviation of the truth, px
  bool known_between = true;  ///< the truth is known between the points too
  std::string origin;         ///< how to get the images: a command, or where they lie
  std::optional<Motion> motion;
  std::vector<double> amounts;  ///< of the motion, per frame
};

/// Made in memory. Throws UsageError.
Scene synthetic_scene(const SynthOptions& options);

/// The command that writes the same images: "dic synth -o DIR ...".
std::string synth_command(const SynthOptions& options);

/// Frames and truth.h5 as `dic synth` writes them. Points are judged at the nodes of the truth. Throws
/// FileError.
Scene folder_scene(const std::filesystem::path& folder);

}  // namespace dic::validation

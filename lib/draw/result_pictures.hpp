#pragma once

#include <dic/camera.hpp>
#include <dic/draw.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/parallel.hpp"

namespace dic::draw {

/// What is drawn, and how. The heading comes from the frame.
struct Quantity {
  std::string name;  ///< an array of the result with one component, or "magnitude" of the displacement
  FigureOptions options = {};
};

/// The options of a quantity: symbol, unit, mm_per_px.
FigureOptions options_for(const Result& result, const std::string& name);
/// Its values in a frame, [ny x nx], in the unit of the result. Throws UsageError for an unknown name.
std::vector<float> quantity_values(const Result& result, const std::string& name, int frame);

/// Pictures of frames of a result.
class ResultPictures {
 public:
  struct Frame {
    int index = 0;                      ///< of the result, from 0
    std::function<Image()> image = {};  ///< may be reduced; an empty image is white
    std::string heading = {};
    std::vector<std::filesystem::path> files = {};  ///< one for each quantity
  };

  /// camera: of the result, or null. The result has to live as long.
  ResultPictures(const Result& result, std::vector<Quantity> quantities, const Camera* camera,
                 CanvasFactory canvases);
  /// Several threads draw; images are asked for by one of them, or by several where `parallel_images`. Throws
  /// FileError.
  void write(std::span<const Frame> frames, bool parallel_images, ThreadPool& threads) const;

 private:
  void write_some(std::span<const Frame> frames, bool parallel_images, ThreadPool& threads) const;

  const Result& result_;
  std::vector<Quantity> quantities_;
  const Camera* camera_;
  CanvasFactory canvases_;
};

}  // namespace dic::draw

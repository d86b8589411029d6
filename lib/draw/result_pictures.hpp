#pragma once

#include <dic/draw.hpp>
#include <dic/export.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "draw/drawn_fields.hpp"

namespace dic::draw {

/// A quantity to draw, with its options. The heading comes from the frame.
struct Quantity {
  std::string name;  ///< an array of the result with one component, or "magnitude" of the displacement
  FigureOptions options = {};
};

/// The options of a quantity: symbol, unit and mm_per_px. unit: "1" = none.
FigureOptions options_for(const ResultInfo& info, const std::string& name, const std::string& unit);
DIC_INTERNAL_API FigureOptions options_for(const Result& result, const std::string& name);

/// Draws pictures of frames.
class ResultPictures {
 public:
  struct Frame {
    int index = 0;                      ///< index of the frame in the fields, from 0
    std::function<Image()> image = {};  ///< returns the image, which may be reduced; an empty one is white
    std::string heading = {};
    std::vector<std::filesystem::path> files = {};  ///< one file for each quantity
  };

  /// The fields must outlive this object.
  DIC_INTERNAL_API ResultPictures(const DrawnFields& fields, std::vector<Quantity> quantities,
                                  CanvasFactory canvases);
  /// Draws all quantities of the frames on several threads. Several threads request images only if
  /// `parallel_images` is true. Throws FileError.
  DIC_INTERNAL_API void write(std::span<const Frame> frames, bool parallel_images,
                              core::ThreadPool& threads) const;

 private:
  void write_some(std::span<const Frame> frames, bool parallel_images, core::ThreadPool& threads) const;

  const DrawnFields& fields_;
  std::vector<Quantity> quantities_;
  CanvasFactory canvases_;
};

}  // namespace dic::draw

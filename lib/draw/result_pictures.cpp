#include "draw/result_pictures.hpp"

#include <algorithm>
#include <dic/field_schema.hpp>
#include <memory>
#include <utility>

#include "draw/figure.hpp"
#include "draw/moved_grid.hpp"

namespace dic::draw {
namespace {

std::string symbol_of(const std::string& name) {
  if (name == "magnitude") return "|d|";
  const FieldArray* array = find_field_array(name);
  return array && !array->symbol.empty() ? std::string(array->symbol) : name;
}

/// A frame that is being drawn.
struct Sheet {
  MovedGrid grid;
  FrameDrawing drawing;

  Sheet(MovedGrid moved, ImageView image, Size size, const CanvasFactory& canvases,
        const FigureOptions& options)
      : grid(std::move(moved)), drawing(image, size, grid, canvases, options) {}
};

}  // namespace

FigureOptions options_for(const ResultInfo& info, const std::string& name, const std::string& unit) {
  FigureOptions options;
  options.symbol = symbol_of(name);
  options.unit = unit == "1" ? "" : unit;
  options.mm_per_px = info.scale_mm_per_px;
  return options;
}

FigureOptions options_for(const Result& result, const std::string& name) {
  const std::string displacement = result.has("W") ? "U" : "u";
  return options_for(result.info(), name, result.array(name == "magnitude" ? displacement : name).unit);
}

ResultPictures::ResultPictures(const DrawnFields& fields, std::vector<Quantity> quantities,
                               CanvasFactory canvases)
    : fields_(fields), quantities_(std::move(quantities)), canvases_(std::move(canvases)) {}

/// Draws as many frames at once as there are threads, so that memory does not grow with the sequence.
void ResultPictures::write(std::span<const Frame> frames, bool parallel_images,
                           core::ThreadPool& threads) const {
  const auto at_once = static_cast<std::size_t>(threads.size());
  for (; !frames.empty(); frames = frames.subspan(std::min(at_once, frames.size())))
    write_some(frames.first(std::min(at_once, frames.size())), parallel_images, threads);
}

void ResultPictures::write_some(std::span<const Frame> frames, bool parallel_images,
                                core::ThreadPool& threads) const {
  const auto count = std::ssize(frames), each = std::ssize(quantities_);
  std::vector<Image> images(frames.size());
  if (!parallel_images)
    for (std::size_t k = 0; k < frames.size(); ++k) images[k] = frames[k].image();
  std::vector<std::unique_ptr<Sheet>> sheets(frames.size());
  const auto options_of = [&](std::int64_t frame, std::int64_t quantity) {
    FigureOptions options = quantities_[quantity].options;
    options.heading = frames[frame].heading;
    return options;
  };
  threads.parallel_for(count, 1, [&](std::int64_t k, std::int64_t, int) {
    if (parallel_images) images[k] = frames[k].image();
    sheets[k] = std::make_unique<Sheet>(fields_.moved_grid(frames[k].index), images[k], fields_.info().image,
                                        canvases_, options_of(k, 0));
  });
  threads.parallel_for(count * each, 1, [&](std::int64_t task, std::int64_t, int) {
    const std::int64_t frame = task / each, quantity = task % each;
    sheets[frame]->drawing.write(frames[frame].files[quantity],
                                 fields_.values(quantities_[quantity].name, frames[frame].index),
                                 options_of(frame, quantity));
  });
}

}  // namespace dic::draw

/// Input: size of the image, size of the mask, step, then the texts of a rectangle, of polygons and of holes,
/// one per line.
#include <dic/error.hpp>
#include <dic/track_options.hpp>
#include <sstream>
#include <string>

#include "memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5) return 0;
  const dic::Size image = {data[0] + 1, data[1] + 1};
  std::istringstream text(std::string(reinterpret_cast<const char*>(data) + 5, size - 5));
  try {
    dic::TrackJob job;
    for (const char* option : {"roi-rect", "roi-polygon", "roi-hole"}) {
      std::string line;
      std::getline(text, line);
      if (!line.empty()) dic::track_option(option).set(job, line);
    }
    if (data[2] != 0) {
      job.roi.mask = dic::Image({data[2], data[3] + 1}, dic::ScalarType::u8);
      job.roi.mask.row<std::uint8_t>(data[3])[data[2] / 2] = 1;
    }
    const dic::Image mask = dic::rasterize(job.roi, image);
    dic::require(mask.size() == image);
    const dic::Grid grid = dic::make_grid(mask, data[4] + 1);
    dic::require(grid.nodes() >= 1 && grid.inside.size() == grid.nodes());
  } catch (const dic::Error&) {
  }
  return 0;
}

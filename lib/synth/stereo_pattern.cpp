#include "synth/stereo_pattern.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace dic::synth {
namespace {

/// A node of a Gauss-Legendre rule on [-0.5, 0.5].
struct Node {
  double place, weight;
};
constexpr Node kThree[] = {{-0.38729833462074169, 5.0 / 18}, {0, 4.0 / 9}, {0.38729833462074169, 5.0 / 18}};
constexpr Node kFive[] = {{-0.45308992296933199, 0.11846344252809454},
                          {-0.26923465505284155, 0.23931433524968324},
                          {0, 64.0 / 225},
                          {0.26923465505284155, 0.23931433524968324},
                          {0.45308992296933199, 0.11846344252809454}};

/// A ray that meets the specimen.
struct Sample {
  int pixel;
  double weight, a, b;
};

struct Tile {
  int x = 0, y = 0, width = 0, height = 0;
};

constexpr int kTile = 32;  // px

Box box_of(const std::vector<Sample>& samples) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Box box = {kInfinity, -kInfinity, kInfinity, -kInfinity};
  for (const Sample& s : samples)
    box = {std::min(box.x_min, s.a), std::max(box.x_max, s.a), std::min(box.y_min, s.b),
           std::max(box.y_max, s.b)};
  return box;
}

class Integration {
 public:
  Integration(const Specimen& specimen, const ViewingCamera& camera, const Print& print)
      : specimen_(specimen),
        camera_(camera),
        print_(print),
        nodes_(print.nodes == 3 ? std::span<const Node>(kThree) : std::span<const Node>(kFive)) {}

  void run(const Tile& tile, PixelMeans& means) const {
    const std::vector<Sample> samples = cast(tile);
    if (samples.empty()) return;
    const Box box = box_of(samples);
    // A tile across an outline may show material far apart.
    constexpr double kMostCells = 1e5;
    const double cell = print_.speckle.cell;
    const double cells = (box.x_max - box.x_min) / cell * ((box.y_max - box.y_min) / cell);
    if (cells < kMostCells) {
      const Speckle speckle(print_.speckle, box);
      for (const Sample& s : samples) add(s, speckle, means);
    } else {
      for (const Sample& s : samples) add(s, Speckle(print_.speckle, {s.a, s.a, s.b, s.b}), means);
    }
  }

 private:
  std::vector<Sample> cast(const Tile& tile) const {
    std::vector<Sample> samples;
    samples.reserve(static_cast<std::size_t>(tile.width) * tile.height * nodes_.size() * nodes_.size());
    for (int y = tile.y; y < tile.y + tile.height; ++y)
      for (int x = tile.x; x < tile.x + tile.width; ++x)
        for (const Node& v : nodes_)
          for (const Node& u : nodes_)
            if (const auto place = specimen_.seen(camera_, x + u.place, y + v.place))
              samples.push_back({y * camera_.image().width + x, u.weight * v.weight, place->a, place->b});
    return samples;
  }

  void add(const Sample& s, const Speckle& speckle, PixelMeans& means) const {
    means.texture[s.pixel] += s.weight * print_.tone(speckle.at(s.a, s.b));
    means.share[s.pixel] += s.weight;
  }

  const Specimen& specimen_;
  const ViewingCamera& camera_;
  const Print& print_;
  std::span<const Node> nodes_;
};

}  // namespace

PixelMeans integrate_speckle(const Specimen& specimen, const ViewingCamera& camera, const Print& print,
                             core::ThreadPool& pool) {
  const auto [width, height] = camera.image();
  const int columns = (width + kTile - 1) / kTile, rows = (height + kTile - 1) / kTile;
  const Integration integration(specimen, camera, print);
  PixelMeans means;
  means.texture.assign(static_cast<std::size_t>(width) * height, 0);
  means.share = means.texture;
  pool.parallel_for(
      static_cast<std::int64_t>(columns) * rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t k = begin; k < end; ++k) {
          const int x = static_cast<int>(k % columns) * kTile, y = static_cast<int>(k / columns) * kTile;
          integration.run({x, y, std::min(kTile, width - x), std::min(kTile, height - y)}, means);
        }
      });
  return means;
}

}  // namespace dic::synth

#include <algorithm>

#include "match/pose_backend.hpp"

namespace dic::match {
namespace {

/// Places that one task searches: of small images fewer rows, so that all threads have some.
constexpr int kMostTileRows = 32, kLeastTileRows = 8, kTileColumns = 62;
constexpr int kPlaneRows = kMostTileRows + 2;  ///< a tile and its border, which decides about local maxima
constexpr int kPlaneColumns = 128;             ///< a tile, its border, whole vectors
constexpr int kPlane = kPlaneRows * kPlaneColumns;

/// Coarse scores of all wanted poses in one tile.
class ScoreTile {
 public:
  ScoreTile(const CoarseSearch& search, const std::vector<char>& is_wanted, std::vector<float>& memory,
            int column, int first_row, int rows)
      : search_(search),
        is_wanted_(is_wanted),
        scores_(memory),
        x0_(column * kTileColumns - 1),
        y0_(first_row - 1),
        rows_(std::min(rows + 2, search.image->height - y0_ + 1)),
        columns_(std::min(kTileColumns + 2, search.image->width - x0_ + 1)) {
    scores_.resize(static_cast<std::size_t>(search.poses->count()) * kPlane);
  }

  /// False if the time is over.
  bool correlate(const SearchLimit& limit) {
    for (const int p : search_.wanted) {
      float* plane = scores_.data() + static_cast<std::ptrdiff_t>(p) * kPlane;
      for (int j = 0; j < rows_; ++j)
        correlate_row(*search_.image, search_.patterns[p], x0_, y0_ + j, columns_, search_.rules,
                      plane + j * kPlaneColumns);
      if (p % 16 == 15 && limit.is_over()) return false;
    }
    return true;
  }

  void add_maxima(std::vector<CoarseMaximum>& found) const {
    for (const int p : search_.wanted)
      for (int j = 1; j + 1 < rows_; ++j)
        for (int i = 1; i + 1 < columns_; ++i) {
          const float value = *at(p, i, j);
          if (value >= search_.threshold && is_maximum(p, i, j, value))
            found.push_back({p, x0_ + i, y0_ + j, value});
        }
  }

 private:
  const float* at(int pose, int i, int j) const {
    return scores_.data() + static_cast<std::ptrdiff_t>(pose) * kPlane + j * kPlaneColumns + i;
  }
  /// True if no score around a place is higher; with `is_earlier`, or as high.
  bool is_highest(int pose, int i, int j, float value, bool is_earlier) const {
    if (!is_wanted_[pose]) return true;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const float other = *at(pose, i + dx, j + dy);
        if (other > value || (other == value && is_earlier)) return false;
      }
    return true;
  }
  bool is_maximum(int p, int i, int j, float value) const {
    if (!is_highest(p, i, j, value, false)) return false;
    const CoarsePoses& poses = *search_.poses;
    const int turns = poses.turns(), turn = p % turns, size = p / turns;
    if (poses.by_angle && turns > 2) {
      const int before = size * turns + (turn + turns - 1) % turns, after = size * turns + (turn + 1) % turns;
      if ((turn > 0 || poses.full_circle) && !is_highest(before, i, j, value, true)) return false;
      if ((turn + 1 < turns || poses.full_circle) && !is_highest(after, i, j, value, false)) return false;
    }
    if (poses.by_scale && size > 0 && !is_highest(p - turns, i, j, value, true)) return false;
    return !poses.by_scale || size + 1 == poses.sizes() || is_highest(p + turns, i, j, value, false);
  }

  const CoarseSearch& search_;
  const std::vector<char>& is_wanted_;
  std::vector<float>& scores_;
  int x0_, y0_, rows_, columns_;
};

class CpuPoses final : public PoseBackend {
 public:
  explicit CpuPoses(core::ThreadPool& pool)
      : pool_(pool), refiners_(pool.size(), PoseRefiner(pool)), memory_(pool.size()) {}

  void set_image(ImagePyramid& image, int top) override {
    image.require(top, pool_);
    image_ = &image;
  }

  void find_maxima(std::span<CoarseSearch> searches, const SearchLimit& limit) override {
    for (CoarseSearch& search : searches) find_maxima(search, limit);
  }

  void fit(int level, int image_level, std::span<const LevelStart> starts, std::span<LevelFit> fits,
           const SearchLimit& limit) override {
    const SampleImage from = sample_image(image_->level(image_level), image_->mask(image_level));
    pool_.parallel_for(std::ssize(starts), 1, [&](std::int64_t k, std::int64_t, int worker) {
      fits[k] = {};
      if (limit.is_over()) return;
      const PixelList& pixels = starts[k].source->level(level).pixels;
      const PoseFit fit = refiners_[worker].refine(from, pixels, starts[k].start, starts[k].own_plan());
      fits[k].fit = fit;
      if (level == 1 && fit.valid)
        fits[k].structure = refiners_[worker].gradient_correlation(from, pixels, fit);
    });
  }

 private:
  void find_maxima(CoarseSearch& search, const SearchLimit& limit) {
    std::vector<char> is_wanted(search.poses->count(), 0);
    for (const int p : search.wanted) is_wanted[p] = 1;
    const int across = (search.image->width + kTileColumns - 1) / kTileColumns;
    const int rows = std::clamp(search.image->height * across / pool_.size(), kLeastTileRows, kMostTileRows);
    const int down = (search.image->height + rows - 1) / rows;
    std::vector<std::vector<CoarseMaximum>> found(pool_.size());
    pool_.parallel_for(static_cast<std::int64_t>(across) * down, 1,
                       [&](std::int64_t k, std::int64_t, int worker) {
                         if (limit.is_over()) return;
                         ScoreTile tile(search, is_wanted, memory_[worker], static_cast<int>(k % across),
                                        static_cast<int>(k / across) * rows, rows);
                         if (tile.correlate(limit)) tile.add_maxima(found[worker]);
                       });
    search.found.clear();
    for (const auto& part : found) search.found.insert(search.found.end(), part.begin(), part.end());
  }

  core::ThreadPool& pool_;
  const ImagePyramid* image_ = nullptr;
  std::vector<PoseRefiner> refiners_;       ///< one per thread
  std::vector<std::vector<float>> memory_;  ///< scores of a tile, one per thread
};

}  // namespace

std::unique_ptr<PoseBackend> open_cpu_poses(core::ThreadPool& pool) {
  return std::make_unique<CpuPoses>(pool);
}

}  // namespace dic::match

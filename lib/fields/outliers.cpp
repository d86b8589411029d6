#include "fields/outliers.hpp"

#include <cstddef>
#include <dic/shared/median_test.hpp>
#include <mutex>
#include <vector>

namespace dic {
namespace fields {
namespace {

using median_test::missing;
using median_test::side_limit;

constexpr std::int64_t kRowsPerTask = 8;

struct Point {
  int i, j;
  float u, v;
};

/// The displacements of a field with a border of one missing node.
class Neighbourhoods {
 public:
  explicit Neighbourhoods(const Field& field)
      : stride_(field.grid().nx + 2),
        u_(static_cast<std::size_t>(stride_) * (field.grid().ny + 2), missing),
        v_(u_) {
    const Grid& grid = field.grid();
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
        if (!grid.inside[k] || field.status[k] != Status::ok) continue;
        u_[at(i, j)] = static_cast<float>(field.u[k]);
        v_[at(i, j)] = static_cast<float>(field.v[k]);
      }
  }

  Point point(int i, int j) const { return {i, j, u_[at(i, j)], v_[at(i, j)]}; }
  void remove(const Point& point) {
    u_[at(point.i, point.j)] = missing;
    v_[at(point.i, point.j)] = missing;
  }
  float residual(const Point& point, float floor) const {
    return median_test::normalized_residual(around(u_, point), around(v_, point), point.u, point.v, floor);
  }
  bool fits_a_side(const Point& point, float limit) const {
    return median_test::fits_a_side(around(u_, point), around(v_, point), point.u, point.v, limit);
  }

 private:
  /// Values around a point, addressed by offsets in nodes.
  struct Around {
    const float* centre;
    std::ptrdiff_t stride;
    float operator()(int di, int dj) const { return centre[dj * stride + di]; }
  };
  Around around(const std::vector<float>& values, const Point& point) const {
    return {values.data() + at(point.i, point.j), stride_};
  }
  std::size_t at(int i, int j) const { return static_cast<std::size_t>(j + 1) * stride_ + i + 1; }

  std::ptrdiff_t stride_;
  std::vector<float> u_, v_;
};

std::vector<Point> find_suspects(const Grid& grid, const Neighbourhoods& neighbourhoods,
                                 const OutlierOptions& options, core::ThreadPool& pool) {
  std::vector<Point> suspects;
  std::mutex mutex;
  pool.parallel_for(grid.ny, kRowsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    for (int j = static_cast<int>(begin); j < end; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const Point point = neighbourhoods.point(i, j);
        if (point.u == missing) continue;
        const float residual = neighbourhoods.residual(point, static_cast<float>(options.floor));
        if (!median_test::is_suspect(residual, options.threshold)) continue;
        if (neighbourhoods.fits_a_side(point, side_limit(options))) continue;
        const std::lock_guard lock(mutex);
        suspects.push_back(point);
      }
  });
  return suspects;
}

}  // namespace

std::int64_t mark_outliers(Field& field, const OutlierOptions& options, core::ThreadPool& pool) {
  if (!options.enabled) return 0;
  const Grid& grid = field.grid();
  Neighbourhoods neighbourhoods(field);
  const std::vector<Point> suspects = find_suspects(grid, neighbourhoods, options, pool);
  for (const Point& point : suspects) neighbourhoods.remove(point);
  std::int64_t marked = 0;
  for (const Point& point : suspects) {
    const float residual = neighbourhoods.residual(point, static_cast<float>(options.floor));
    if (!median_test::stays_suspect(residual, options.threshold)) continue;
    field.status[static_cast<std::size_t>(point.j) * grid.nx + point.i] = Status::outlier;
    ++marked;
  }
  return marked;
}

}  // namespace fields

std::int64_t mark_outliers(Field& field, const OutlierOptions& options, int threads) {
  core::ThreadPool pool(threads);
  return fields::mark_outliers(field, options, pool);
}

}  // namespace dic

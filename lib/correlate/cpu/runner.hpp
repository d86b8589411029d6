#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "core/make_room.hpp"
#include "core/parallel.hpp"
#include "correlate/backend.hpp"
#include "correlate/cpu/kernel.hpp"
#include "correlate/cpu/scoring.hpp"
#include "correlate/window.hpp"

/// The common part of all variants of the CPU backend: it finds the defined shifts, distributes tiles of
/// shifts over threads, pads with zeros, and computes scores and peaks. A variant supplies only a Kernel.
namespace dic::correlate {

/// The memory of one thread, reused from call to call.
template <typename T>
struct Worker {
  std::unique_ptr<Kernel<T>> kernel;
  std::unique_ptr<Kernel<T>>
      exact;  ///< recomputes scores that are uncertain with `kernel`; null if `kernel` is exact
  ScoringScratch scratch;
  std::vector<Sum<T>> products;
  std::vector<T> padded;
  std::vector<float> scores;

  std::int64_t reference = -1;  ///< index of the reference that the kernels hold
  bool exact_ready = false;
  Block<T> reference_block;
  Block<std::uint8_t> mask;
  ReferenceSums<T> sums;
  Sum<T> offset = 0;        ///< offset that `kernel` subtracts from the reference
  Sum<T> exact_offset = 0;  ///< offset that `exact` subtracts from the reference
};

inline Shifts intersect(const Shifts& a, const Shifts& b) {
  return {std::max(a.dx_min, b.dx_min), std::min(a.dx_max, b.dx_max), std::max(a.dy_min, b.dy_min),
          std::min(a.dy_max, b.dy_max)};
}

/// Computes some pairs of a job of element type T. Results go to their places in those of the whole job.
template <typename T>
class Runner {
 public:
  Runner(const Job& job, PairRange pairs, core::ThreadPool& pool, std::vector<Worker<T>>& workers)
      : job_(job), pairs_(pairs), pool_(pool), workers_(workers) {
    for (Worker<T>& worker : workers_) {
      for (Kernel<T>* kernel : {worker.kernel.get(), worker.exact.get()}) {
        if (!kernel) continue;
        kernel->set_stop(job.stop);
        kernel->begin(job.shape());
      }
      worker.reference = -1;
    }
    const TileSize size = workers_[0].kernel->tile();
    tile_ny_ = std::min(size.ny, job.shifts.ny());
    tile_nx_ = std::min(size.nx, job.shifts.nx());
    tiles_x_ = (job.shifts.nx() + tile_nx_ - 1) / tile_nx_;
    tiles_ = tiles_x_ * std::int64_t{(job.shifts.ny() + tile_ny_ - 1) / tile_ny_};
  }

  void surfaces(Surfaces& out) {
    if (job_.criterion != Criterion::cross_correlation) return scores(out.surface<float>(0));
    switch (out.type) {
      case Surfaces::Type::u32:
        return sums(out.surface<std::uint32_t>(0));
      case Surfaces::Type::u64:
        return sums(out.surface<std::uint64_t>(0));
      case Surfaces::Type::i64:
        return sums(out.surface<std::int64_t>(0));
      case Surfaces::Type::f32:
        return sums(out.surface<float>(0));
      case Surfaces::Type::f64:
        break;
    }
    sums(out.surface<double>(0));
  }

  void peaks(std::span<Peak> out) {
    const std::int64_t count = job_.shifts.count();
    for_pairs(
        [&](std::int64_t, int w) {
          workers_[w].scores.resize(static_cast<std::size_t>(count));
          return workers_[w].scores.data();
        },
        [&](std::int64_t k, Worker<T>& worker, float* scores) {
          settle_bounds(k, worker, scores);
          out[k] = extract_peak(scores, job_.shifts, job_.criterion);
        },
        [this](auto&&... a) { score_tile(a..., true); });
  }

 private:
  // Computes the scores of every pair, as values of the criterion.
  void scores(float* out) {
    const std::int64_t count = job_.shifts.count();
    for_pairs([&](std::int64_t k, int) { return out + k * count; },
              [&](std::int64_t k, Worker<T>& worker, float* found) {
                settle_scores(k, worker, found);
                settle_marked(k, worker, found);
                for (std::int64_t i = 0; i < count; ++i) found[i] = score_to_value(found[i], job_.criterion);
              },
              [this](auto&&... a) { score_tile(a..., false); });
  }

  // Computes the sums of products of every pair.
  template <typename Out>
  void sums(Out* out) {
    const std::int64_t count = job_.shifts.count();
    for_pairs([&](std::int64_t k, int) { return out + k * count; }, [](std::int64_t, Worker<T>&, Out*) {},
              [this](auto&&... a) { this->sum_tile(a...); });
  }

  // Shifts at which sums can differ from zero (overlapping), and at which scores are defined (inside).
  Shifts overlapping(const Available& a) const {
    return {a.x0 - job_.reference.size.width + 1, a.x1 - 1, a.y0 - job_.reference.size.height + 1, a.y1 - 1};
  }
  Shifts inside(const Available& a) const {
    return {a.x0, a.x1 - job_.reference.size.width, a.y0, a.y1 - job_.reference.size.height};
  }

  Shifts tile_shifts(std::int64_t tile) const {
    const Shifts& all = job_.shifts;
    const int dy = all.dy_min + static_cast<int>(tile / tiles_x_) * tile_ny_;
    const int dx = all.dx_min + static_cast<int>(tile % tiles_x_) * tile_nx_;
    return {dx, std::min(dx + tile_nx_ - 1, all.dx_max), dy, std::min(dy + tile_ny_ - 1, all.dy_max)};
  }

  // Calls tile() for every tile and finish() for every pair. With many pairs each thread takes whole pairs;
  // with few, the threads share the tiles of one pair.
  template <typename Destination, typename Finish, typename Tile>
  void for_pairs(const Destination& destination, const Finish& finish, const Tile& tile) {
    const std::int64_t threads = pool_.size();
    const std::int64_t pairs = pairs_.end - pairs_.begin;
    if (pairs >= 4 * threads || tiles_ == 1) {
      const std::int64_t grain = std::clamp<std::int64_t>(pairs / (16 * threads), 1, 256);
      pool_.parallel_for(pairs, grain, [&](std::int64_t begin, std::int64_t end, int w) {
        for (std::int64_t k = pairs_.begin + begin; k < pairs_.begin + end; ++k) {
          core::make_room_in_memory();
          auto* out = destination(k, w);
          for (std::int64_t t = 0; t < tiles_; ++t) tile(k, t, workers_[w], out);
          finish(k, workers_[w], out);
        }
      });
      return;
    }
    for (std::int64_t k = pairs_.begin; k < pairs_.end; ++k) {
      auto* out = destination(k, 0);
      pool_.parallel_for(tiles_, 1, [&](std::int64_t begin, std::int64_t end, int w) {
        for (std::int64_t t = begin; t < end; ++t) tile(k, t, workers_[w], out);
      });
      finish(k, workers_[0], out);
    }
  }

  void take_reference(std::int64_t index, Worker<T>& worker) {
    if (worker.reference == index) return;
    const PatchPosition& at = job_.reference.positions[static_cast<std::size_t>(index)];
    const auto image = static_cast<std::size_t>(at.image);
    worker.reference_block = block_of<T>(job_.reference.images[image], at, job_.reference.size);
    worker.mask = job_.mask.empty() ? Block<std::uint8_t>{}
                                    : block_of<std::uint8_t>(job_.mask[image], at, job_.reference.size);
    worker.sums = scoring<T>().reference_sums(worker.reference_block, worker.mask);
    worker.offset = worker.kernel->set_reference(worker.reference_block, worker.mask, worker.sums);
    worker.exact_ready = false;
    worker.reference = index;
  }

  // The elements that `shifts` need: a view if the image has them all, otherwise a copy with zeros outside.
  Block<T> fetch(const Available& a, const Shifts& shifts, int read_ahead, Worker<T>& worker) const {
    const int x = shifts.dx_min, width = shifts.nx() + job_.reference.size.width - 1;
    const int y = shifts.dy_min, height = shifts.ny() + job_.reference.size.height - 1;
    const bool within = x >= a.x0 && x + width <= a.x1 && y >= a.y0 && y + height <= a.y1;
    if (within && a.x + x + width + read_ahead <= a.image.width)
      return {a.image.template row<T>(static_cast<int>(a.y + y)) + a.x + x, a.image.row_bytes, height, width};

    const std::size_t stride = static_cast<std::size_t>(width) + read_ahead;
    worker.padded.assign(stride * height, T{});
    const int x0 = std::max(x, a.x0), x1 = std::min(x + width, a.x1);
    for (int row = std::max(y, a.y0); row < std::min(y + height, a.y1) && x0 < x1; ++row)
      std::memcpy(worker.padded.data() + (row - y) * stride + (x0 - x),
                  a.image.template row<T>(static_cast<int>(a.y + row)) + a.x + x0, (x1 - x0) * sizeof(T));
    return {worker.padded.data(), static_cast<std::ptrdiff_t>(stride * sizeof(T)), height, width};
  }

  template <typename Element>
  Element* cell(Element* out, int dy, int dx) const {
    return out + static_cast<std::ptrdiff_t>(dy - job_.shifts.dy_min) * job_.shifts.nx() +
           (dx - job_.shifts.dx_min);
  }

  template <typename Element>
  void fill(const Shifts& part, Element value, Element* out) const {
    for (int dy = part.dy_min; dy <= part.dy_max; ++dy)
      std::fill_n(cell(out, dy, part.dx_min), part.nx(), value);
  }

  // Computes the products of `part`, ny x nx, in worker.products; returns the window and the error bound.
  std::pair<Block<T>, double> multiply(Kernel<T>& kernel, const Available& a, const Shifts& part,
                                       Worker<T>& worker) const {
    const Block<T> window = fetch(a, part, kernel.read_ahead(), worker);
    worker.products.resize(static_cast<std::size_t>(part.count()));
    const double error = kernel.correlate(window, part.ny(), part.nx(), worker.products.data());
    return {window, error};
  }

  ScoreTile<T> score_tile_of(const Block<T>& window, const Shifts& part, Worker<T>& worker) const {
    return {.criterion = job_.criterion,
            .window = window,
            .mask = worker.mask,
            .size = job_.reference.size,
            .ny = part.ny(),
            .nx = part.nx(),
            .reference = worker.sums,
            .offset = worker.offset,
            .products = worker.products.data(),
            .stop = &job_.stop};
  }

  void score(const Block<T>& window, const Shifts& part, Sum<T> offset, double error, bool upper_bounds,
             Worker<T>& worker, float* out) const {
    ScoreTile<T> tile = score_tile_of(window, part, worker);
    tile.offset = offset;
    tile.error = error;
    tile.upper_bounds = upper_bounds;
    tile.least_score = job_.least_score.value_or(kUndefined);
    tile.scores = cell(out, part.dy_min, part.dx_min);
    tile.score_stride = job_.shifts.nx();
    scoring<T>().score(tile, worker.scratch);
  }

  // Computes the scores of a tile: within kScoreTolerance, or as upper bounds, which need no exact sums.
  void score_tile(std::int64_t k, std::int64_t tile, Worker<T>& worker, float* out, bool upper_bounds) {
    check_stop(job_.stop);
    const Pair pair = job_.pair(k);
    const Available a = available(job_, pair.window);
    const Shifts whole = tile_shifts(tile);
    const Shifts part = intersect(whole, inside(a));
    if (part != whole) fill(whole, kUndefined, out);
    if (part.count() == 0) return;
    take_reference(pair.reference, worker);
    worker.kernel->begin_part(k, part);
    const auto [window, error] = multiply(*worker.kernel, a, part, worker);
    score(window, part, worker.offset, error, upper_bounds, worker, out);
    if (error != 0 && !upper_bounds) recompute(part, std::numeric_limits<float>::infinity(), a, worker, out);
  }

  template <typename Out>
  void sum_tile(std::int64_t k, std::int64_t tile, Worker<T>& worker, Out* out) {
    check_stop(job_.stop);
    const Pair pair = job_.pair(k);
    const Available a = available(job_, pair.window);
    const Shifts whole = tile_shifts(tile);
    const Shifts part = intersect(whole, overlapping(a));
    if (part != whole) fill(whole, Out{}, out);
    if (part.count() == 0) return;
    take_reference(pair.reference, worker);
    worker.kernel->begin_part(k, part);
    const Block<T> window = multiply(*worker.kernel, a, part, worker).first;
    if (worker.offset != 0)
      scoring<T>().add_offset(score_tile_of(window, part, worker), worker.scratch, worker.products.data());
    const Sum<T>* products = worker.products.data();
    for (int dy = part.dy_min; dy <= part.dy_max; ++dy)
      for (Out* to = cell(out, dy, part.dx_min); to != cell(out, dy, part.dx_max) + 1; ++to)
        *to = static_cast<Out>(*products++);
  }

  // Recomputes scores of `part` that are NaN or not below `limit` from exact sums; returns the largest one.
  float recompute(const Shifts& part, float limit, const Available& a, Worker<T>& worker, float* out) {
    constexpr int kRows = 32, kColumns = 64;
    float largest = kUndefined;
    for (int dy = part.dy_min; dy <= part.dy_max; dy += kRows)
      for (int dx = part.dx_min; dx <= part.dx_max; dx += kColumns) {
        const Shifts block = {dx, std::min(dx + kColumns - 1, part.dx_max), dy,
                              std::min(dy + kRows - 1, part.dy_max)};
        largest = std::max(largest, recompute_block(block, limit, a, worker, out));
      }
    return largest;
  }

  float recompute_block(const Shifts& block, float limit, const Available& a, Worker<T>& worker, float* out) {
    check_stop(job_.stop);
    int count = 0;
    for (int dy = block.dy_min; dy <= block.dy_max; ++dy)
      for (const float* s = cell(out, dy, block.dx_min); s <= cell(out, dy, block.dx_max); ++s)
        count += !(*s < limit);
    constexpr int kShareOfBlock = 32;  // 32 shifts together take about as long as a single one
    const bool together = count > block.count() / kShareOfBlock;
    if (together) score_exactly(block, a, worker, out);
    float largest = kUndefined;
    for (int dy = block.dy_min; count > 0 && dy <= block.dy_max; ++dy)
      for (int dx = block.dx_min; dx <= block.dx_max; ++dx) {
        float& score = *cell(out, dy, dx);
        if (score < limit) continue;
        if (!together) score_exactly({dx, dx, dy, dy}, a, worker, out);
        largest = std::max(largest, score);
      }
    return largest;
  }

  void score_exactly(const Shifts& part, const Available& a, Worker<T>& worker, float* out) {
    if (!worker.exact_ready)
      worker.exact_offset = worker.exact->set_reference(worker.reference_block, worker.mask, worker.sums);
    worker.exact_ready = true;
    const Block<T> window = multiply(*worker.exact, a, part, worker).first;
    score(window, part, worker.exact_offset, 0, false, worker, out);
  }

  // The defined shifts of a pair and its window; nothing if its sums are exact or no shift is defined.
  std::optional<std::pair<Shifts, Available>> inexact_part(std::int64_t k, Worker<T>& worker) {
    if (!workers_[0].kernel->inexact()) return std::nullopt;
    const Pair pair = job_.pair(k);
    const Available a = available(job_, pair.window);
    const Shifts part = intersect(job_.shifts, inside(a));
    if (part.count() == 0) return std::nullopt;
    take_reference(pair.reference, worker);
    return std::pair{part, a};
  }

  // The peak of a surface of scores, with values that keep the sign of scores.
  Peak peak_of(const float* scores) const { return extract_peak(scores, job_.shifts, Criterion::zncc); }

  void recompute_around(const Peak& peak, const Shifts& part, const Available& a, Worker<T>& worker,
                        float* scores) {
    const Shifts around = {peak.dx - 1, peak.dx + 1, peak.dy - 1, peak.dy + 1};
    recompute(intersect(part, around), kUndefined, a, worker, scores);
  }

  // Makes scores within kScoreTolerance exact where they may be the best, and the best one's neighbours.
  void settle_scores(std::int64_t k, Worker<T>& worker, float* scores) {
    const auto inexact = inexact_part(k, worker);
    if (!inexact) return;
    const auto& [part, a] = *inexact;
    const float best = peak_of(scores).score;
    const float margin = job_.criterion == Criterion::ssd ? std::abs(best) : 1.0F;
    recompute(part, best - 2 * static_cast<float>(kScoreTolerance) * margin, a, worker, scores);
    if (const Peak peak = peak_of(scores); peak.found) recompute_around(peak, part, a, worker, scores);
  }

  // Makes marked bounds exact beside scores that reach job_.least_score, and where they may be the highest
  // score. All others lose their mark.
  void settle_marked(std::int64_t k, Worker<T>& worker, float* scores) {
    const auto inexact = job_.least_score ? inexact_part(k, worker) : std::nullopt;
    if (!inexact) return;
    const auto& [part, a] = *inexact;
    const float best = peak_of(scores).score;
    const auto is_beside_match = [&](int dy, int dx) {
      const Shifts around = intersect(part, {dx - 1, dx + 1, dy - 1, dy + 1});
      for (int y = around.dy_min; y <= around.dy_max; ++y)
        for (int x = around.dx_min; x <= around.dx_max; ++x)
          if (*cell(scores, y, x) >= *job_.least_score) return true;
      return false;
    };
    std::vector<std::pair<int, int>> wanted;
    for_marked(part, scores, [&](int dy, int dx, float marked) {
      const bool may_be_best = best < *job_.least_score && marked - kBoundMark >= best;
      if (may_be_best || is_beside_match(dy, dx)) wanted.emplace_back(dy, dx);
    });
    for (const auto& [dy, dx] : wanted) {
      check_stop(job_.stop);
      score_exactly({dx, dx, dy, dy}, a, worker, scores);
    }
    for_marked(part, scores,
               [&](int dy, int dx, float marked) { *cell(scores, dy, dx) = marked - kBoundMark; });
  }

  // Calls visit(dy, dx, value) for every marked bound.
  template <typename Visit>
  void for_marked(const Shifts& part, const float* scores, const Visit& visit) const {
    for (int dy = part.dy_min; dy <= part.dy_max; ++dy) {
      const float* row = cell(scores, dy, part.dx_min);
      for (int x = 0; x < part.nx(); ++x)
        if (is_marked_bound(row[x])) visit(dy, part.dx_min + x, row[x]);
    }
  }

  // Makes upper bounds of scores exact where they may be the best or the second best of a Peak, and the best
  // one's neighbours. All others keep bounds that are too low to matter.
  void settle_bounds(std::int64_t k, Worker<T>& worker, float* scores) {
    const auto inexact = inexact_part(k, worker);
    if (!inexact) return;
    const auto& [part, a] = *inexact;
    settle_largest({part}, peak_of(scores).score, a, worker, scores);
    const Peak peak = peak_of(scores);
    if (!peak.found) return;
    const int left = peak.dx - 2, right = peak.dx + 2, top = peak.dy - 2, bottom = peak.dy + 2;
    const Shifts& all = part;
    settle_largest({intersect(all, {all.dx_min, all.dx_max, all.dy_min, top - 1}),
                    intersect(all, {all.dx_min, all.dx_max, bottom + 1, all.dy_max}),
                    intersect(all, {all.dx_min, left - 1, top, bottom}),
                    intersect(all, {right + 1, all.dx_max, top, bottom})},
                   peak.second_score, a, worker, scores);
    recompute_around(peak, part, a, worker, scores);
  }

  // Makes the largest score of some parts exact, given their largest bound.
  void settle_largest(std::initializer_list<Shifts> parts, float largest_bound, const Available& a,
                      Worker<T>& worker, float* scores) {
    float best = kUndefined;
    for (const Shifts& part : parts) best = std::max(best, recompute(part, largest_bound, a, worker, scores));
    for (const Shifts& part : parts)
      if (best != kUndefined) recompute(part, best, a, worker, scores);
  }

  const Job& job_;
  PairRange pairs_;
  core::ThreadPool& pool_;
  std::vector<Worker<T>>& workers_;
  int tile_ny_ = 1, tile_nx_ = 1;
  std::int64_t tiles_x_ = 1, tiles_ = 1;
};

}  // namespace dic::correlate

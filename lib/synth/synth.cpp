#include "synth/synth.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <limits>
#include <numbers>
#include <string>

#include "synth/expose.hpp"
#include "synth/motion.hpp"
#include "synth/random.hpp"
#include "synth/speckle.hpp"

namespace dic {

using namespace synth;
namespace {

constexpr double kGap = -std::numeric_limits<double>::infinity();  // blob sum inside an open crack or a hole

SynthOptions checked(const SynthOptions& options) {
  const auto problems = options.validate();
  if (!problems.empty()) throw UsageError(problems.front());
  return options;
}

/// A body as a frame shows it: its texture over the visible reference positions.
struct View {
  int body;
  Box box;
};

/// Position of a reference pixel in the coordinates of texture and motion.
Position corrected(const SynthOptions& options, double x, double y) {
  if (!options.camera) return {x, y};
  const Camera::Point p = options.camera->undistort(x, y);
  return {p.x, p.y};
}

/// The material that a frame shows at a pixel; none inside an open crack or a hole.
std::optional<MaterialPoint> material_at(const SynthOptions& options, double amount, double x, double y) {
  const Position p = corrected(options, x, y);
  return reference_position(options.motion, amount, p.x, p.y);
}

constexpr int kGapBody = -1;  // number of the texture inside an open crack or a hole

/// The bodies that a frame shows, with the reference positions of all their pixels.
std::vector<View> views_of(const SynthOptions& options, double amount) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<View> views;
  const auto include = [&](int body, Position p) {
    auto view = std::ranges::find(views, body, &View::body);
    if (view == views.end())
      view = views.insert(view, {body, {kInfinity, -kInfinity, kInfinity, -kInfinity}});
    Box& b = view->box;
    b = {std::min(b.x_min, p.x), std::max(b.x_max, p.x), std::min(b.y_min, p.y), std::max(b.y_max, p.y)};
  };
  for (int y = 0; y < options.size.height; ++y)
    for (int x = 0; x < options.size.width; ++x) {
      const auto p = material_at(options, amount, x, y);
      if (p)
        include(p->body, *p);
      else if (options.motion.textured_gap)
        include(kGapBody, corrected(options, x, y));
    }
  // The margin covers samples beside the middle of a pixel, where material may be compressed to a tenth.
  for (View& v : views) v.box = {v.box.x_min - 8, v.box.x_max + 8, v.box.y_min - 8, v.box.y_max + 8};
  return views;
}

SpeckleSettings speckle_settings(const SynthOptions& options, int i, int body, double blur) {
  const bool dots = options.texture == Texture::dots, lattice = options.texture == Texture::lattice;
  const double usual = options.blob_sigma * (dots ? 4 : lattice ? 6 : 2);
  const double cell = options.density ? 1 / std::sqrt(*options.density) : usual;
  // Both sides of a crack were one piece.
  const bool own = body == kGapBody || (body > 0 && options.motion.kind == MotionKind::bodies);
  std::uint64_t seed = own ? mix(options.seed + static_cast<std::uint64_t>(body + 2)) : options.seed;
  if (options.unrelated && i > 0) seed = mix(seed + 0x5eed);
  const double repeat = options.faults.repeat;
  const double cells = repeat > 0 ? std::max(1.0, std::round(repeat / cell)) : 0;
  return {options.blob_sigma,  repeat > 0 ? repeat / cells : cell, seed, options.texture,
          options.size_spread, static_cast<std::int64_t>(cells),   blur};
}

/// Seed of what is random in frame i.
std::uint64_t key_of_frame(const SynthOptions& options, int i) {
  return mix(mix(options.seed) ^ mix(static_cast<std::uint64_t>(i)));
}

/// Position along x, px, that a pixel of frame i shows.
double seen_x(const SynthOptions& options, int i, double x, std::int64_t y) {
  if (options.faults.line_jitter == 0) return x;
  const std::uint64_t key = mix(key_of_frame(options, i) + 0x3107);
  return x - options.faults.line_jitter * normal_pair(key, static_cast<std::uint64_t>(y)).first;
}

/// Points inside a pixel around its middle (0, 0): a Fibonacci lattice, which covers areas evenly.
constexpr int kSamples = 987;
Position sample_of_pixel(const SynthOptions& options, int k) {
  const double side = std::sqrt(options.faults.fill_factor);
  return {side * ((k + 0.5) / kSamples - 0.5), side * ((610 * k % kSamples + 0.5) / kSamples - 0.5)};
}

/// Largest distance, px, of the material that a pixel shows from the material at its middle: that of the
/// farthest corner, with a margin for motions that bend.
double reach_of_pixel(const SynthOptions& options, double amount, double x, double y,
                      const MaterialPoint& middle) {
  double reach = 0;
  for (const double dy : {-0.5, 0.5})
    for (const double dx : {-0.5, 0.5})
      if (const auto p = material_at(options, amount, x + dx, y + dy); p && p->body == middle.body)
        reach = std::max(reach, 1.2 * std::hypot(p->x - middle.x, p->y - middle.y));
  return reach;
}

}  // namespace

Synthesizer::Synthesizer(const SynthOptions& options) : options_(checked(options)), pool_(options.threads) {
  std::vector<double> sums = blob_sums(0);
  std::erase(sums, kGap);
  if (sums.empty()) throw UsageError("The hole covers the whole image: choose a smaller radius.");
  const auto [low, high] = std::ranges::minmax(sums);
  darkest_ = low;
  contrast_ = high > low ? (options_.grey_max - options_.grey_min) / (high - low) : 0;
}

double Synthesizer::blur_of(int i) const {
  return options_.blur * i / static_cast<double>(std::max<std::size_t>(1, options_.amounts.size() - 1));
}

std::vector<double> Synthesizer::blob_sums(int i) {
  const double amount = options_.amounts[i];
  std::vector<std::pair<int, Speckle>> speckles;
  for (const View& view : views_of(options_, amount))
    speckles.emplace_back(view.body, Speckle(speckle_settings(options_, i, view.body, blur_of(i)), view.box));
  const auto speckle_of = [&](int body) -> const Speckle& {
    return std::ranges::find(speckles, body, &std::pair<int, Speckle>::first)->second;
  };
  // Share of a pixel's samples on its body that dots cover. Edges of the body itself are not resolved below a
  // pixel.
  const auto covered_share = [&](double x, double y, const MaterialPoint& seen,
                                 const std::vector<Blob>& dots) {
    int on_body = 0, covered = 0;
    for (int k = 0; k < kSamples; ++k) {
      const Position in = sample_of_pixel(options_, k);
      const auto p = material_at(options_, amount, x + in.x, y + in.y);
      if ((p ? p->body : kGapBody) != seen.body) continue;
      const Position place = p ? Position{p->x, p->y} : corrected(options_, x + in.x, y + in.y);
      ++on_body;
      covered +=
          std::ranges::any_of(dots, [&](const Blob& dot) { return Speckle::covers(dot, place.x, place.y); });
    }
    return static_cast<double>(covered) / on_body;
  };
  std::vector<double> sums(static_cast<std::size_t>(options_.size.width) * options_.size.height);
  pool_.parallel_for(options_.size.height, 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y)
      for (int column = 0; column < options_.size.width; ++column) {
        const double x = seen_x(options_, i, column, y);
        const auto p = material_at(options_, amount, x, static_cast<double>(y));
        double& sum = sums[y * options_.size.width + column] = kGap;
        if (!p && !options_.motion.textured_gap) continue;
        const MaterialPoint seen =
            p ? *p : MaterialPoint{corrected(options_, x, static_cast<double>(y)), kGapBody};
        const Speckle& speckle = speckle_of(seen.body);
        std::vector<Blob> dots;
        if (options_.texture == Texture::dots)
          dots = speckle.edges_near(seen.x, seen.y,
                                    reach_of_pixel(options_, amount, x, static_cast<double>(y), seen));
        sum =
            dots.empty() ? speckle.at(seen.x, seen.y) : -covered_share(x, static_cast<double>(y), seen, dots);
      }
  });
  return sums;
}

Image Synthesizer::frame(int i) {
  if (i < 0 || i >= static_cast<int>(options_.amounts.size()))
    throw UsageError("The sequence has no frame " + std::to_string(i) + ".");
  std::vector<double> grey = blob_sums(i);
  const int width = options_.size.width;
  core::for_each_row(pool_, options_.size.height, [&](int y) {
    for (int x = 0; x < width; ++x) {
      double& value = grey[static_cast<std::size_t>(y) * width + x];
      double above = value == kGap ? 0 : contrast_ * (value - darkest_);
      if (options_.motion.kind == MotionKind::hole)
        if (const auto p = material_at(options_, options_.amounts[i], seen_x(options_, i, x, y), y))
          above *= material_share(options_.motion, *p);
      value = options_.grey_min + above;
    }
  });
  return expose(options_, grey, i, key_of_frame(options_, i), pool_);
}

std::array<double, 2> image_displacement(const SynthOptions& options, int i, double x, double y) {
  const Position p = corrected(options, x, y);
  const auto [u, v] = options.motion.at(p.x, p.y, options.amounts[i]);
  if (!options.camera) return {u, v};
  const Camera::Point seen = options.camera->distort(p.x + u, p.y + v);
  return {seen.x - x, seen.y - y};
}

Measurable measurable(const SynthOptions& options, int i, double x, double y) {
  const double amount = options.amounts[i];
  const auto [u, v] = image_displacement(options, i, x, y);
  constexpr double rounding = 1e-6;  // rounding error of a rotation that maps the border onto itself
  const auto inside = [&](double beyond) {
    return x + u >= -beyond && y + v >= -beyond && x + u <= options.size.width - 1 + beyond &&
           y + v <= options.size.height - 1 + beyond;
  };
  if (!inside(0.5) || options.texture == Texture::gradient || (options.unrelated && i > 0))
    return Measurable::no;
  const Position p = corrected(options, x, y);
  if (!options.motion.visible(p.x, p.y, amount)) return Measurable::no;
  const bool white =
      options.grey_min + std::max(glare_at(options, x, y), glare_at(options, x + u, y + v)) >= 255;
  return white || !inside(rounding) ? Measurable::maybe : Measurable::yes;
}

Image synth_frame(const SynthOptions& options, int i) { return Synthesizer(options).frame(i); }

}  // namespace dic

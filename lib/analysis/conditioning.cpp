#include "analysis/conditioning.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <type_traits>
#include <unordered_set>

#include "core/dense_solvers.hpp"
#include "core/uncached_copy.hpp"

namespace dic::analysis {
namespace {

/// Types whose largest value tells that a camera saturates.
template <typename T>
constexpr bool has_ceiling = std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::uint16_t>;

// ---- the scale of the grey values ----

constexpr std::int64_t kLeastSaturated = 64;  ///< pixels that an image has at least at a ceiling of its own
constexpr int kBelow = 16;                    ///< grey levels below the ceiling that it is compared with
constexpr double kPile = 8;                   ///< pixels at a ceiling over those of a level below it
constexpr double kTwoValued = 0.95;           ///< share of pixels near the ends of a two-valued image
constexpr double kNearEnd = 0.06;             ///< width of such an end, in parts of the range
constexpr double kLeastOfValue = 0.05;        ///< share of the pixels that a value has at least
constexpr double kLargeOffset = 4;            ///< offset over range of the grey values

/// Numbers of pixels by grey value.
template <typename T>
std::vector<std::int64_t> histogram_of(ImageView image) {
  std::vector<std::int64_t> counts(std::size_t{std::numeric_limits<T>::max()} + 1);
  for (int y = 0; y < image.height; ++y) {
    const T* row = image.row<T>(y);
    for (int x = 0; x < image.width; ++x) ++counts[row[x]];
  }
  return counts;
}

/// True if nearly all pixels are black or white.
bool is_two_valued(const std::vector<std::int64_t>& counts, std::int64_t pixels, std::ptrdiff_t least,
                   std::ptrdiff_t most) {
  const auto width = static_cast<std::ptrdiff_t>(kNearEnd * static_cast<double>(most - least));
  std::int64_t black = 0, white = 0;
  for (std::ptrdiff_t k = 0; k <= width; ++k) black += counts[least + k], white += counts[most - k];
  const auto share = [pixels](std::int64_t some) {
    return static_cast<double>(some) / static_cast<double>(pixels);
  };
  return most > least && share(black) >= kLeastOfValue && share(white) >= kLeastOfValue &&
         share(black + white) >= kTwoValued;
}

/// True if pixels pile up at the largest value of an image, as they do where a camera saturates. Multiples of
/// a power of two (12 bits in 16) leave gaps below it.
bool is_ceiling(const std::vector<std::int64_t>& counts, std::ptrdiff_t most) {
  std::int64_t below = 0, levels = 0;
  for (std::ptrdiff_t k = most - 1; k >= 0 && levels < kBelow; --k) {
    if (counts[k] == 0 && most - k < 16 * kBelow) continue;
    below += counts[k];
    ++levels;
  }
  return levels > 0 && counts[most] >= kLeastSaturated &&
         static_cast<double>(counts[most] * levels) > kPile * static_cast<double>(below);
}

/// Values below and above which 1 in 500 pixels lies, from some of them.
template <typename T>
std::array<double, 2> usual_range(ImageView image) {
  constexpr int most = 200;  // rows and columns
  const int dx = std::max(1, image.width / most), dy = std::max(1, image.height / most);
  std::vector<double> values;
  for (int y = dy / 2; y < image.height; y += dy)
    for (int x = dx / 2; x < image.width; x += dx)
      if (const auto grey = static_cast<double>(image.row<T>(y)[x]); std::isfinite(grey))
        values.push_back(grey);
  if (values.empty()) return {};
  const auto rare = std::ssize(values) / 500;
  std::nth_element(values.begin(), values.begin() + rare, values.end());
  const double low = values[rare];
  std::nth_element(values.begin(), values.end() - 1 - rare, values.end());
  return {low, *(values.end() - 1 - rare)};
}

/// Grey value that is subtracted from images with a large offset, of which rules in parts of the largest grey
/// value would say that they have no contrast; 0 if the offset is small. Integers keep room for darker
/// frames.
template <typename T>
double pedestal_of(ImageView image) {
  const auto [low, high] = usual_range<T>(image);
  const double range = high - low;
  if (!(range > 0) || (high > 0 && high <= kLargeOffset * range)) return 0;
  if constexpr (std::is_floating_point_v<T>) return std::floor(low - range);
  return std::max(0.0, std::floor(low - std::max(2 * range, low / 10)));
}

// ---- defective pixels ----

constexpr double kStandsOut = 8;        ///< least deviation of a defect, in those of usual pixels
constexpr double kOfContrast = 0.5;     ///< least deviation, in standard deviations of the image
constexpr double kAboveGround = 0.35;   ///< the next, in parts of the deviation from the ground 2 px away
constexpr double kAlone = 0.5;          ///< part of its deviation by which a defect exceeds its neighbours
constexpr double kMostDefects = 0.03;   ///< share of the pixels; more are a texture
constexpr double kLargestHalo = 0.08;   ///< deviation of the neighbours over that of the pixel
constexpr std::size_t kJudgedHalo = 8;  ///< number of pixels from which their halos are judged
constexpr int kDefectsBeside = 1;       ///< defective neighbours that a defect may have
constexpr int kDefectsAround = 3;       ///< the same, in images that surely have defects
constexpr double kInGroup = 0.8;        ///< in place of kAlone and kAboveGround, for defects in groups
constexpr double kInGroupExcess = 2;    ///< least deviation of defects in groups over that of others
constexpr double kMostInGroups = 0.25;  ///< defects in groups over the others; more are a texture

struct Place {
  int x, y;
};

/// Reads grey values; beyond its edges, the image is continued by point reflection, which continues slopes.
template <typename T>
class Pixels {
 public:
  explicit Pixels(ImageView image) : image_(image) {}
  double at(int x, int y) const {
    if (x >= 0 && y >= 0 && x < image_.width && y < image_.height) return inside(x, y);
    const int edge_x = std::clamp(x, 0, image_.width - 1), edge_y = std::clamp(y, 0, image_.height - 1);
    const int from_x = std::clamp(2 * edge_x - x, 0, image_.width - 1),
              from_y = std::clamp(2 * edge_y - y, 0, image_.height - 1);
    return 2 * inside(edge_x, edge_y) - inside(from_x, from_y);
  }
  /// Deviation of a pixel from what its eight neighbours predict.
  double deviation(int x, int y) const {
    const double beside = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
    const double across = at(x - 1, y - 1) + at(x + 1, y - 1) + at(x - 1, y + 1) + at(x + 1, y + 1);
    return at(x, y) - 0.5 * beside + 0.25 * across;
  }

 private:
  double inside(int x, int y) const { return static_cast<double>(image_.row<T>(y)[x]); }

  ImageView image_;
};

double median_of(std::span<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Least deviation of a defect, grey levels; 0 if the image has no contrast.
template <typename T>
double least_deviation(const Pixels<T>& pixels, Size size) {
  constexpr int most = 64;  // rows and columns
  const int dx = std::max(1, size.width / most), dy = std::max(1, size.height / most);
  std::vector<double> deviations;
  double n = 0, sum = 0, squares = 0;
  for (int y = dy / 2; y < size.height; y += dy)
    for (int x = dx / 2; x < size.width; x += dx) {
      const double grey = pixels.at(x, y);
      const double deviation = std::abs(pixels.deviation(x, y));
      if (!std::isfinite(grey) || !std::isfinite(deviation)) continue;
      deviations.push_back(deviation);
      n += 1, sum += grey, squares += grey * grey;
    }
  if (deviations.empty()) return 0;
  const double contrast = std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
  return std::max(kStandsOut * median_of(deviations) / 0.6745, kOfContrast * contrast);
}

/// Median of the pixels at a distance of 2 px, along rows or columns: the ground on which a dot lies.
template <typename T>
double ground_around(const Pixels<T>& pixels, int x, int y) {
  std::array<double, 16> ring;
  std::size_t n = 0;
  for (int j = -2; j <= 2; ++j)
    for (int i = -2; i <= 2; ++i)
      if (std::max(std::abs(i), std::abs(j)) == 2) ring[n++] = pixels.at(x + i, y + j);
  return std::ranges::all_of(ring, [](double grey) { return std::isfinite(grey); }) ? median_of(ring) : NAN;
}

/// Number of the eight neighbours that must be defective, too, if a pixel is a defect that stands out of all
/// others; more than kDefectsAround if it is none.
template <typename T>
int defects_beside(const Pixels<T>& pixels, int x, int y, double least) {
  constexpr int none = kDefectsAround + 1;
  std::array<double, 8> around;
  for (std::size_t k = 0, n = 0; k < 9; ++k)
    if (k != 4) around[n++] = pixels.at(x + static_cast<int>(k) % 3 - 1, y + static_cast<int>(k) / 3 - 1);
  if (!std::ranges::all_of(around, [](double value) { return std::isfinite(value); })) return none;
  std::ranges::sort(around);
  const double grey = pixels.at(x, y), excess = grey - 0.5 * (around[3] + around[4]);
  if (std::abs(excess) < least) return none;
  const double sign = excess > 0 ? 1 : -1;
  const double above_ground = std::abs(grey - ground_around(pixels, x, y));
  const auto differs = [&](int beside, double of_excess, double of_ground) {
    const double alone = sign * (grey - around[excess > 0 ? 7 - beside : beside]);
    return alone >= of_excess * std::abs(excess) && alone >= of_ground * above_ground;
  };
  if (differs(kDefectsBeside, kAlone, kAboveGround)) return kDefectsBeside;
  if (std::abs(excess) < kInGroupExcess * least) return none;
  for (int beside = kDefectsBeside + 1; beside <= kDefectsAround; ++beside)
    if (differs(beside, kInGroup, kInGroup)) return beside;
  return none;
}

/// Deviation of the four nearest neighbours over that of the pixel: what optics spread around a real dot.
template <typename T>
double halo(const Pixels<T>& pixels, Place p) {
  std::array<double, 4> beside{pixels.at(p.x - 1, p.y), pixels.at(p.x + 1, p.y), pixels.at(p.x, p.y - 1),
                               pixels.at(p.x, p.y + 1)};
  std::ranges::sort(beside);
  const double ground = ground_around(pixels, p.x, p.y);
  return (0.5 * (beside[1] + beside[2]) - ground) / (pixels.at(p.x, p.y) - ground);
}

constexpr int kMarkedAtOnce = 64;  ///< pixels of a row

/// Marks pixels of a row that differ by at least `least` from four of their neighbours, upwards or downwards.
/// Pixels that differ by `least` from the median of all eight are among them. The compiler vectorizes the
/// loop.
template <typename T>
void mark_deviating(const std::array<const T*, 3>& rows, int first, int count, double least,
                    std::uint8_t* marks) {
  using Wide = std::conditional_t<has_ceiling<T>, int, double>;
  const Wide limit = has_ceiling<T> ? static_cast<Wide>(std::ceil(least)) : static_cast<Wide>(least);
  for (int i = 0; i < count; ++i) {
    const int x = first + i;
    const auto grey = static_cast<Wide>(rows[1][x]);
    int higher = 0, lower = 0;
    for (const T* row : rows)
      for (int beside = x - 1; beside <= x + 1; ++beside) {
        const Wide difference = grey - static_cast<Wide>(row[beside]);
        higher += difference >= limit;
        lower += difference <= -limit;
      }
    marks[i] = higher >= 4 || lower >= 4;
  }
}

/// Pixels that stand out, row by row.
struct Candidates {
  std::vector<Place> alone;      ///< at most kDefectsBeside of the neighbours stand out, too
  std::vector<Place> in_groups;  ///< more do

  void add(const Candidates& other) {
    alone.insert(alone.end(), other.alone.begin(), other.alone.end());
    in_groups.insert(in_groups.end(), other.in_groups.begin(), other.in_groups.end());
  }
};

template <typename T>
Candidates candidates_in(ImageView image, core::ThreadPool& pool) {
  const Pixels<T> pixels(image);
  const double least = least_deviation(pixels, image.size());
  if (!(least > 0) || image.width < 5 || image.height < 5) return {};
  std::vector<Candidates> rows(image.height);
  core::for_each_row(pool, image.height, [&](int y) {
    const auto judge = [&](int x) {
      const int beside = defects_beside(pixels, x, y, least);
      if (beside <= kDefectsAround)
        (beside <= kDefectsBeside ? rows[y].alone : rows[y].in_groups).push_back({x, y});
    };
    if (y == 0 || y == image.height - 1) {
      for (int x = 0; x < image.width; ++x) judge(x);
      return;
    }
    judge(0);
    const std::array around{image.row<T>(y - 1), image.row<T>(y), image.row<T>(y + 1)};
    std::array<std::uint8_t, kMarkedAtOnce> marks;
    for (int first = 1; first + 1 < image.width; first += kMarkedAtOnce) {
      const int count = std::min(kMarkedAtOnce, image.width - 1 - first);
      mark_deviating<T>(around, first, count, least, marks.data());
      for (int i = 0; i < count; ++i)
        if (marks[i]) judge(first + i);
    }
    judge(image.width - 1);
  });
  Candidates all;
  for (const Candidates& row : rows) all.add(row);
  return all;
}

/// Pixels that stand out; none if they are a texture.
template <typename T>
std::vector<Place> defects_of(ImageView image, core::ThreadPool& pool) {
  Candidates found = candidates_in<T>(image, pool);
  std::vector<Place>& places = found.alone;
  const double most = kMostDefects * image.width * image.height;
  if (static_cast<double>(places.size()) > most) return {};
  if (places.size() < kJudgedHalo) return places;
  std::vector<double> halos;
  for (const Place& place : places) halos.push_back(halo(Pixels<T>(image), place));
  if (!(median_of(halos) < kLargestHalo)) return {};
  const auto alone = static_cast<double>(places.size()),
             in_groups = static_cast<double>(found.in_groups.size());
  if (in_groups <= kMostInGroups * alone)
    places.insert(places.end(), found.in_groups.begin(), found.in_groups.end());
  return places;
}

// ---- defective lines ----

constexpr int kLinePart = 128;          ///< least length of a part of a line that is judged by itself, px
constexpr int kWidestLine = 2;          ///< px; a wider one cannot be interpolated
constexpr double kLineStandsOut = 8;    ///< least deviation of a line, in those of usual lines
constexpr double kStrongLine = 12;      ///< the same without regard to the lines next to it
constexpr double kLineHalo = 0.05;      ///< largest deviation of the lines beside it over its own
constexpr double kMostLines = 1.0 / 8;  ///< share of the lines; more are a texture

/// Mean grey values of columns, or of rows, in a part of the image.
using Profile = std::vector<double>;

double robust_deviation(Profile values) {
  for (double& value : values) value = std::abs(value);
  return median_of(values) / 0.6745;
}

/// Standard deviation of the steps from line to line, without the few of defective lines.
double usual_step(const Profile& means) {
  Profile steps;
  std::adjacent_difference(means.begin(), means.end(), std::back_inserter(steps));
  steps.front() = 0;
  return robust_deviation(steps);
}

/// Deviation of each line from the median of the nine lines around it; 0 at the ends.
Profile above_ground(const Profile& means) {
  constexpr std::ptrdiff_t reach = 4;
  Profile out(means.size());
  for (std::ptrdiff_t x = reach; x + reach < std::ssize(means); ++x) {
    Profile around(means.begin() + x - reach, means.begin() + x + reach + 1);
    out[x] = means[x] - median_of(around);
  }
  return out;
}

/// Deviation of `width` lines from the two lines beside them, by the first of them; 0 at the ends.
Profile bends_of(const Profile& means, int width) {
  Profile out(means.size());
  for (std::ptrdiff_t x = 1; x + width < std::ssize(means); ++x)
    out[x] = 0.5 * (means[x] + means[x + width - 1] - means[x - 1] - means[x + width]);
  return out;
}

/// Marks lines that stand out of the nine lines around them more than those of any texture do.
void mark_strong(const Profile& means, std::vector<std::uint8_t>& marks) {
  const Profile above = above_ground(means);
  const double usual = std::max(robust_deviation(above), usual_step(means));
  const auto is_beside = [&](std::ptrdiff_t x, double line) {
    return std::abs(above[x]) <= kLineHalo * std::abs(line) + 2 * usual;
  };
  for (std::ptrdiff_t x = 1, end = 1; x + 1 < std::ssize(means); x = end + 1) {
    for (end = x; end + 1 < std::ssize(means) && std::abs(above[end]) > kStrongLine * usual;) ++end;
    if (end > x && end - x <= kWidestLine && is_beside(x - 1, above[x]) && is_beside(end, above[end - 1]))
      std::fill(marks.begin() + x, marks.begin() + end, 1);
  }
}

/// Marks fainter lines, of this width, whose edges are sharper than those of a texture: on both sides, the
/// next two lines are alike.
void mark_faint(const Profile& means, int width, std::vector<std::uint8_t>& marks) {
  const Profile bends = bends_of(means, width);
  const double step = usual_step(means), usual = std::max(robust_deviation(bends), step);
  for (std::ptrdiff_t x = 2; x + width + 1 < std::ssize(means); ++x) {
    const double bend = std::abs(bends[x]), left = means[x - 1], right = means[x + width];
    const auto are_alike = [&](double a, double b, double part) {
      return std::abs(a - b) <= part * bend + 2.5 * step;
    };
    if (bend > kLineStandsOut * usual && are_alike(left, means[x - 2], kLineHalo) &&
        are_alike(right, means[x + width + 1], kLineHalo) && are_alike(left, right, 2 * kLineHalo) &&
        are_alike(means[x], means[x + width - 1], 0.5))
      std::fill_n(marks.begin() + x, width, 1);
  }
}

/// Numbers of the lines that are defective by their mean grey values, in order.
std::vector<int> defective_lines(const Profile& means) {
  std::vector<std::uint8_t> marks(means.size());
  mark_strong(means, marks);
  for (int width = 1; width <= kWidestLine; ++width) mark_faint(means, width, marks);
  std::vector<int> lines;
  for (int x = 0; x < std::ssize(marks); ++x)
    if (marks[x] != 0) lines.push_back(x);
  const bool are_texture = static_cast<double>(lines.size()) > kMostLines * static_cast<double>(means.size());
  return are_texture ? std::vector<int>{} : lines;
}

/// Mean grey values of the columns in some rows.
template <typename T>
Profile means_of_columns(ImageView image, int first, int end) {
  Profile means(image.width);
  for (int y = first; y < end; ++y) {
    const T* row = image.row<T>(y);
    for (int x = 0; x < image.width; ++x) means[x] += static_cast<double>(row[x]) / (end - first);
  }
  return means;
}

/// Mean grey values of the rows in some columns.
template <typename T>
Profile means_of_rows(ImageView image, int first, int end) {
  Profile means;
  for (int y = 0; y < image.height; ++y) {
    const T* row = image.row<T>(y);
    means.push_back(std::accumulate(row + first, row + end, 0.0) / (end - first));
  }
  return means;
}

/// Calls visit(first, end) for the whole length of lines, and for the parts of it.
template <typename Visit>
void visit_parts(int length, const Visit& visit) {
  visit(0, length);
  const int parts = length / kLinePart;
  for (int k = 0; parts > 1 && k < parts; ++k) visit(k * length / parts, (k + 1) * length / parts);
}

/// Columns of an image, or its rows, which it then has as columns.
template <typename T>
struct LinesOf {
  ImageView image;
  bool are_rows;

  int count() const { return are_rows ? image.height : image.width; }
  int length() const { return are_rows ? image.width : image.height; }
  Place place(int line, int at) const { return are_rows ? Place{at, line} : Place{line, at}; }
  double grey(int line, int at) const {
    const Place p = place(line, at);
    return static_cast<double>(image.row<T>(p.y)[p.x]);
  }
  Profile means(int first, int end) const {
    return are_rows ? means_of_rows<T>(image, first, end) : means_of_columns<T>(image, first, end);
  }
};

/// True if the pixels of a line deviate from those on both sides about as much as its mean does, more than by
/// chance, and from each side about equally. Where a part of the image is mostly background, lines of a
/// texture stand out by their means, too, and lines at the straight outline of a body do so from one side.
template <typename T>
bool is_steady(const LinesOf<T>& lines, int line, const Profile& means, int first, int end) {
  constexpr int beside = kWidestLine;  // the line next to it may be a defective one
  constexpr double least = 0.5;        // of the deviation of its mean
  constexpr double one_sided = 0.5;    // difference of the sides over the deviation from them
  constexpr double stands_out =
      10;  // standard errors, if all pixels were independent: those of a texture are not
  if (line < beside || line + beside >= lines.count()) return false;
  const double mean = means[line] - 0.5 * (means[line - beside] + means[line + beside]);
  Profile bends, differences;
  for (int at = first; at < end; ++at) {
    const double before = lines.grey(line - beside, at), after = lines.grey(line + beside, at);
    bends.push_back(lines.grey(line, at) - 0.5 * (before + after));
    differences.push_back(after - before);
  }
  const double median = median_of(bends);
  for (double& bend : bends) bend -= median;
  const double error = robust_deviation(bends) / std::sqrt(end - first);
  return median * mean > 0 && std::abs(median) >= std::max(least * std::abs(mean), stands_out * error) &&
         std::abs(median_of(differences)) <= one_sided * std::abs(median);
}

/// Appends the pixels of lines that a sensor or a scanner adds: dead, or dirty.
template <typename T>
void append_defective(const LinesOf<T>& lines, std::vector<Place>& places) {
  visit_parts(lines.length(), [&](int first, int end) {
    const Profile means = lines.means(first, end);
    for (const int line : defective_lines(means))
      if (is_steady(lines, line, means, first, end))
        for (int at = first; at < end; ++at) places.push_back(lines.place(line, at));
  });
}

template <typename T>
std::vector<Place> defective_lines_of(ImageView image) {
  std::vector<Place> places;
  if (std::min(image.width, image.height) < kLinePart) return places;
  append_defective(LinesOf<T>{image, false}, places);
  append_defective(LinesOf<T>{image, true}, places);
  return places;
}

/// Weights of the pixels around a defect that give the value there of the quadratic surface through them.
/// counts(dx, dy): whether a pixel is good. Zeros if there are too few.
template <typename Counts>
std::array<float, 25> interpolation_weights(const Counts& counts) {
  constexpr double width = 1.2;  // standard deviation of the weights of the fit, px
  const auto terms = [](int i, int j) {
    const double x = i, y = j;
    return Eigen::Matrix<double, 6, 1>{1, x, y, x * x, x * y, y * y};
  };
  const auto weight = [](int i, int j) { return std::exp(-(i * i + j * j) / (2 * width * width)); };
  Eigen::Matrix<double, 6, 6> normal = Eigen::Matrix<double, 6, 6>::Identity() * 1e-9;
  int good = 0;
  for (int j = -2; j <= 2; ++j)
    for (int i = -2; i <= 2; ++i) {
      if (!counts(i, j)) continue;
      normal += weight(i, j) * terms(i, j) * terms(i, j).transpose();
      ++good;
    }
  std::array<float, 25> weights{};
  if (good < 9) return weights;
  const Eigen::Matrix<double, 6, 1> at_centre =
      core::solve_symmetric(normal, Eigen::Matrix<double, 6, 1>::Unit(0));
  for (int j = -2; j <= 2; ++j)
    for (int i = -2; i <= 2; ++i)
      if (counts(i, j))
        weights[(j + 2) * 5 + i + 2] = static_cast<float>(weight(i, j) * at_centre.dot(terms(i, j)));
  return weights;
}

}  // namespace

Conditioning::Conditioning(ImageView reference, bool keep_scale, core::ThreadPool& pool) : pool_(pool) {
  visit_scalar(reference.type, [&](auto element) {
    choose_map<decltype(element)>(reference, keep_scale);
    tabulate_map<decltype(element)>();
  });
  find_defects(reference);
}

/// Chooses the map of the grey values. A ceiling becomes the largest value of the type, which the measurement
/// leaves out; in two-valued images, whose edges are all there is, no value does.
template <typename T>
void Conditioning::choose_map(ImageView reference, bool keep_scale) {
  if constexpr (has_ceiling<T>) {
    const std::vector<std::int64_t> counts = histogram_of<T>(reference);
    most_ = std::numeric_limits<T>::max();
    const auto is_there = [](std::int64_t n) { return n > 0; };
    const auto least = std::ranges::find_if(counts, is_there) - counts.begin();
    const auto most =
        std::ssize(counts) - 1 - (std::find_if(counts.rbegin(), counts.rend(), is_there) - counts.rbegin());
    if (is_two_valued(counts, std::int64_t{reference.width} * reference.height, least, most)) {
      maps_ = two_valued_ = true;
      most_ -= 1;
      return;
    }
    const double base = pedestal_of<T>(reference);
    const bool is_saturated = most < std::ssize(counts) - 1 && is_ceiling(counts, most);
    if (is_saturated && !(keep_scale && base > 0)) {
      maps_ = true;
      const auto ceiling = static_cast<double>(most);
      gain_ = keep_scale ? 1 : std::floor(most_ / (ceiling - base));
      offset_ = most_ - gain_ * ceiling;
      return;
    }
  }
  if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, std::uint16_t>) {
    offset_ = -pedestal_of<T>(reference);
    maps_ = offset_ != 0;
  }
}

/// Integer types have few values, and rounding each pixel would take longer than everything else.
template <typename T>
void Conditioning::tabulate_map() {
  if constexpr (has_ceiling<T>) {
    if (!maps_) return;
    mapped_levels_.resize(std::size_t{std::numeric_limits<T>::max()} + 1);
    for (std::size_t k = 0; k < mapped_levels_.size(); ++k)
      mapped_levels_[k] = in_range<T>(gain_ * static_cast<double>(k) + offset_);
  }
}

void Conditioning::find_defects(ImageView reference) {
  const std::vector<Place> places = visit_scalar(reference.type, [&](auto element) {
    using T = decltype(element);
    std::vector<Place> all = defects_of<T>(reference, pool_);
    // In an image of two values, each edge of the texture is sharp.
    const std::vector<Place> lines = two_valued_ ? std::vector<Place>{} : defective_lines_of<T>(reference);
    all.insert(all.end(), lines.begin(), lines.end());
    return all;
  });
  std::unordered_set<std::int64_t> defective;
  const auto index = [&](int x, int y) { return std::int64_t{y} * reference.width + x; };
  std::vector<Place> different;
  for (const Place& p : places)
    if (defective.insert(index(p.x, p.y)).second) different.push_back(p);
  std::map<std::uint32_t, std::array<float, 25>>
      weights;  // by the good pixels, since those of lines are alike
  for (const Place& p : different) {
    const auto counts = [&](int dx, int dy) {
      const int x = p.x + dx, y = p.y + dy;
      return x >= 0 && y >= 0 && x < reference.width && y < reference.height &&
             !defective.contains(index(x, y));
    };
    std::uint32_t good = 0;
    for (int k = 0; k < 25; ++k) good = 2 * good + (counts(k % 5 - 2, k / 5 - 2) ? 1 : 0);
    auto known = weights.find(good);
    if (known == weights.end()) known = weights.emplace(good, interpolation_weights(counts)).first;
    defects_.push_back({p.x, p.y, known->second});
  }
}

/// The value of the type that is nearest to a grey level of corrected images.
template <typename T>
T Conditioning::in_range(double grey) const {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(grey);
  const double most = has_ceiling<T> ? most_ : static_cast<double>(std::numeric_limits<T>::max());
  return static_cast<T>(
      std::lround(std::clamp(grey, static_cast<double>(std::numeric_limits<T>::lowest()), most)));
}

template <typename T>
T Conditioning::mapped(T grey) const {
  if constexpr (has_ceiling<T>) return static_cast<T>(mapped_levels_[grey]);
  return in_range<T>(gain_ * static_cast<double>(grey) + offset_);
}

template <typename T>
void Conditioning::map_row(const T* from, T* to, int width) const {
  if (maps_)
    std::transform(from, from + width, to, [this](T grey) { return mapped(grey); });
  else
    std::copy_n(from, width, to);
}

void Conditioning::for_rows(ImageView image,
                            const std::function<void(std::int64_t begin, std::int64_t end)>& rows) const {
  const auto row_bytes = static_cast<std::int64_t>(image.width * size_of(image.type));
  const std::int64_t rows_at_once = (1 << 18) / row_bytes + 1;
  constexpr int most_threads = 8;  // more do not copy faster
  pool_.parallel_for(
      image.height, rows_at_once, [&](std::int64_t begin, std::int64_t end, int) { rows(begin, end); },
      most_threads);
}

template <typename T, typename Row>
void Conditioning::replace_defects(const Row& row) const {
  for (const Defect& defect : defects_) {
    double sum = 0, weights = 0;
    for (int k = 0; k < Defect::kSide * Defect::kSide; ++k) {
      const float weight = defect.weights[k];
      if (weight == 0) continue;
      const int y = defect.y + k / Defect::kSide - Defect::kReach;
      const int x = defect.x + k % Defect::kSide - Defect::kReach;
      sum += weight * static_cast<double>(row(y)[x]);
      weights += weight;
    }
    if (weights > 0) row(defect.y)[defect.x] = in_range<T>(sum / weights);
  }
}

core::ObjectPool<Image>::Handle Conditioning::operator()(ImageView image) const {
  auto out = images_.acquire();  // a new image each time would cost more than the copy
  if (out->empty()) *out = Image::uninitialized(image.size(), image.type);
  visit_scalar(image.type, [&](auto element) {
    using T = decltype(element);
    for_rows(image, [&](std::int64_t begin, std::int64_t end) {
      for (int y = static_cast<int>(begin); y < end; ++y)
        map_row(image.row<T>(y), out->row<T>(y), image.width);
    });
    replace_defects<T>([&](int y) { return out->row<T>(y); });
  });
  return out;
}

template <typename T>
void Conditioning::write_rows_uncached(ImageView image, std::int64_t begin, std::int64_t end, std::byte* to,
                                       std::size_t pitch) const {
  const std::size_t row_bytes = image.width * sizeof(T);
  const auto first = static_cast<int>(begin);
  to += begin * pitch;
  if (!maps_)
    return core::copy_rows_uncached(to, pitch, image.row<std::byte>(first), image.row_bytes, row_bytes,
                                    end - begin);
  std::vector<T> mapped_row(image.width);
  for (int y = first; y < end; ++y, to += pitch) {
    map_row(image.row<T>(y), mapped_row.data(), image.width);
    core::copy_rows_uncached(to, pitch, reinterpret_cast<const std::byte*>(mapped_row.data()), 0, row_bytes,
                             1);
  }
}

void Conditioning::write_uncached(ImageView image, std::byte* to, std::size_t pitch) const {
  visit_scalar(image.type, [&](auto element) {
    using T = decltype(element);
    for_rows(image, [&](std::int64_t begin, std::int64_t end) {
      write_rows_uncached<T>(image, begin, end, to, pitch);
    });
    replace_defects<T>([&](int y) { return reinterpret_cast<T*>(to + y * pitch); });
  });
}

}  // namespace dic::analysis

// Sums and sums of squares over the window under the reference, at every shift of a tile.
//
// scoring.cpp includes this file once per SIMD target, inside that target's namespace, where `hn` is Highway.
// There is no include guard, because every target compiles its own copy.

// ---- Column sums ----

// Loads elements of T, widened to ColumnSum<T>. Floats are relative to `origin`, an element of the window, so
// that a flat window gives exact zeros.
template <typename T>
struct Widen {
  using D = hn::ScalableTag<ColumnSum<T>>;
  using V = hn::Vec<D>;
  V origin;

  explicit Widen(T value) : origin(hn::Set(D(), static_cast<ColumnSum<T>>(value))) {}

  V load(const T* p) const {
    const hn::Rebind<T, D> narrow;
    const auto v = hn::LoadU(narrow, p);
    if constexpr (std::is_same_v<T, double>)
      return hn::Sub(v, origin);
    else if constexpr (std::is_same_v<T, float>)
      return hn::Sub(hn::PromoteTo(D(), v), origin);
    else if constexpr (std::is_same_v<T, std::uint8_t>)
      return hn::PromoteTo(D(), v);
    else if constexpr (std::is_same_v<T, std::uint16_t>)
      return hn::PromoteTo(D(), hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), v));
    else
      return hn::BitCast(D(), hn::PromoteTo(hn::RebindToSigned<D>(), v));
  }
  ColumnSum<T> load_one(T value) const {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<double>(value) - hn::GetLane(origin);
    else
      return static_cast<ColumnSum<T>>(value);
  }
};

// Computes the sums of kVectors vectors of columns that begin at column x.
template <int kVectors, typename T>
HWY_INLINE void column_block(const Block<T>& window, int first, int rows, const Widen<T>& widen, int x,
                             ColumnSum<T>* sums, ColumnSum<T>* squares) {
  const hn::ScalableTag<ColumnSum<T>> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kVectors], square[kVectors];
  for (int k = 0; k < kVectors; ++k) sum[k] = square[k] = hn::Zero(d);
  for (int i = first; i < first + rows; ++i)
    for (int k = 0; k < kVectors; ++k) {
      const auto v = widen.load(window.row(i) + x + k * lanes);
      sum[k] = hn::Add(sum[k], v);
      square[k] = hn::Add(square[k], hn::Mul(v, v));
    }
  for (int k = 0; k < kVectors; ++k) {
    hn::StoreU(sum[k], d, sums + x + k * lanes);
    hn::StoreU(square[k], d, squares + x + k * lanes);
  }
}

// Computes sums[x] and squares[x] over rows first .. first + rows - 1 of the window.
template <typename T>
void column_sums(const Block<T>& window, int first, int rows, const Widen<T>& widen, ColumnSum<T>* sums,
                 ColumnSum<T>* squares) {
  const hn::ScalableTag<ColumnSum<T>> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  if (window.width < lanes) {
    for (int x = 0; x < window.width; ++x) {
      sums[x] = squares[x] = 0;
      for (int i = first; i < first + rows; ++i) {
        const ColumnSum<T> v = widen.load_one(window.row(i)[x]);
        sums[x] += v;
        squares[x] += v * v;
      }
    }
    return;
  }
  int x = 0;
  for (; x + 4 * lanes <= window.width; x += 4 * lanes)
    column_block<4, T>(window, first, rows, widen, x, sums, squares);
  for (; x < window.width; x += lanes)  // the last vector overlaps the previous one
    column_block<1, T>(window, first, rows, widen, std::min(x, window.width - lanes), sums, squares);
}

// Moves exact integer column sums down by one row.
template <typename T>
void slide_down(const T* HWY_RESTRICT leaving, const T* HWY_RESTRICT entering, int width,
                ColumnSum<T>* HWY_RESTRICT sums, ColumnSum<T>* HWY_RESTRICT squares) {
  using S = ColumnSum<T>;
  for (int x = 0; x < width; ++x) {
    const S out = static_cast<S>(leaving[x]), in = static_cast<S>(entering[x]);
    sums[x] += in - out;
    squares[x] += in * in - out * out;
  }
}

// ---- Box sums: over a reference's width, for each dx ----

inline double sum_of(const double* values, int n) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  int j = 0;
  for (; j + lanes <= n; j += lanes) sums = hn::Add(sums, hn::LoadU(d, values + j));
  double sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; j < n; ++j) sum += values[j];
  return sum;
}

template <typename T>
void box_row(const ColumnSum<T>* HWY_RESTRICT columns, int width, int nx, Sum<T>* HWY_RESTRICT out) {
  if constexpr (std::is_floating_point_v<T>) {
    // Running sums are not used: an element that is subtracted would leave its rounding error behind.
    for (int dx = 0; dx < nx; ++dx) out[dx] = sum_of(columns + dx, width);
  } else {
    std::uint64_t sum = 0;
    for (int j = 0; j < width; ++j) sum += columns[j];
    out[0] = static_cast<Sum<T>>(sum);
    for (int dx = 1; dx < nx; ++dx) {
      sum += std::uint64_t{columns[dx + width - 1]} - columns[dx - 1];
      out[dx] = static_cast<Sum<T>>(sum);
    }
  }
}

// A reference's mask as bit patterns for vectors of widened elements: all bits are set for elements inside
// the mask. A row's last vector overlaps the previous one; an element of both is set in only one of them.
template <typename T>
class WideMask {
 public:
  static std::size_t size(const Block<std::uint8_t>& mask) {
    return static_cast<std::size_t>(mask.height) * vectors(mask) * kLanes;
  }

  // memory: size(mask) elements, which must outlive this object.
  WideMask(const Block<std::uint8_t>& mask, ColumnSum<T>* memory) : mask_(mask), bits_(memory) {
    ColumnSum<T> all;
    std::memset(&all, 0xff, sizeof all);
    for (int i = 0; i < mask.height; ++i)
      for (int k = 0; k < vectors(mask); ++k)
        for (int x = first(k); x < first(k) + kLanes; ++x) {
          const bool counts = x >= k * kLanes && x < mask.width && mask.row(i)[x];
          *memory++ = counts ? all : ColumnSum<T>{};
        }
  }

  // Sums of the elements of `at` (as large as the mask) inside the mask, and of their squares.
  void sums(const Block<T>& at, const Widen<T>& widen, Sum<T>& sum, Sum<T>& square) const {
    Total total{}, squares{};
    if (mask_.width < kLanes) {
      for (int i = 0; i < mask_.height; ++i)
        for (int x = 0; x < mask_.width; ++x) {
          const auto v = mask_.row(i)[x] ? static_cast<Total>(widen.load_one(at.row(i)[x])) : Total{};
          total += v;
          squares += v * v;
        }
    } else {
      for (int row = 0; row < mask_.height; row += kRows)
        add_rows(at, row, std::min(row + kRows, mask_.height), widen, total, squares);
    }
    sum = static_cast<Sum<T>>(total);
    square = static_cast<Sum<T>>(squares);
  }

 private:
  using D = hn::ScalableTag<ColumnSum<T>>;
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  static constexpr int kRows = 8;  // rows of 32,768 squares of u8 in 4 lanes stay below 2^32

  static int vectors(const Block<std::uint8_t>& mask) { return (mask.width + kLanes - 1) / kLanes; }
  int first(int k) const { return std::max(0, std::min(k * kLanes, mask_.width - kLanes)); }

  void add_rows(const Block<T>& at, int begin, int end, const Widen<T>& widen, Total& total,
                Total& squares) const {
    const D d;
    const int across = vectors(mask_);
    const ColumnSum<T>* bits = bits_ + static_cast<std::ptrdiff_t>(begin) * across * kLanes;
    auto sum = hn::Zero(d), square = hn::Zero(d);
    for (int i = begin; i < end; ++i)
      for (int k = 0; k < across; ++k, bits += kLanes) {
        const auto v = hn::And(widen.load(at.row(i) + first(k)), hn::LoadU(d, bits));
        sum = hn::Add(sum, v);
        square = hn::Add(square, hn::Mul(v, v));
      }
    ColumnSum<T> lanes[2][kLanes];
    hn::StoreU(sum, d, lanes[0]);
    hn::StoreU(square, d, lanes[1]);
    for (int k = 0; k < kLanes; ++k) total += lanes[0][k], squares += lanes[1][k];
  }

  Block<std::uint8_t> mask_;
  const ColumnSum<T>* bits_;
};

// ---- Masked sums of integers, from row to row: only the ends of the mask's runs change them ----

inline void find_mask_runs(const Block<std::uint8_t>& mask, std::vector<MaskRun>& runs) {
  runs.clear();
  for (int x = 0; x < mask.width; ++x)
    for (int y = 0; y < mask.height;) {
      const int begin = y;
      while (y < mask.height && mask.row(y)[x]) ++y;
      if (y > begin) runs.push_back({x, begin, y});
      ++y;
    }
}

// Updates the sums of kVectors vectors of shifts that begin at dx from row dy - 1 to row dy, except for the
// first `skip` shifts.
template <int kVectors, typename T>
HWY_INLINE void slide_run_ends(const Block<T>& window, std::span<const MaskRun> runs, int dy, int dx,
                               int skip, Sum<T>* HWY_RESTRICT sums, Sum<T>* HWY_RESTRICT squares) {
  using Difference = std::make_signed_t<ColumnSum<T>>;
  const auto add = [](Sum<T>& to, ColumnSum<T> difference) {  // sums of i32 wrap
    to = static_cast<Sum<T>>(static_cast<std::uint64_t>(to) +
                             static_cast<std::uint64_t>(static_cast<Difference>(difference)));
  };
  const hn::ScalableTag<ColumnSum<T>> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const Widen<T> widen(T{0});
  hn::Vec<decltype(d)> sum[kVectors], square[kVectors];
  for (int k = 0; k < kVectors; ++k) sum[k] = square[k] = hn::Zero(d);
  for (const MaskRun& run : runs) {
    const T* leaving = window.row(dy - 1 + run.begin) + dx + run.column;
    const T* entering = window.row(dy - 1 + run.end) + dx + run.column;
    for (int k = 0; k < kVectors; ++k) {
      const auto in = widen.load(entering + k * lanes), out = widen.load(leaving + k * lanes);
      const auto difference = hn::Sub(in, out);
      sum[k] = hn::Add(sum[k], difference);
      square[k] = hn::Add(square[k], hn::Mul(difference, hn::Add(in, out)));
    }
  }
  ColumnSum<T> differences[2][kVectors * hn::MaxLanes(d)];
  for (int k = 0; k < kVectors; ++k) {
    hn::StoreU(sum[k], d, differences[0] + k * lanes);
    hn::StoreU(square[k], d, differences[1] + k * lanes);
  }
  for (int i = skip; i < kVectors * lanes; ++i) {
    add(sums[dx + i], differences[0][i]);
    add(squares[dx + i], differences[1][i]);
  }
}

// True if elements are integers and nx shifts fill a vector.
template <typename T>
bool can_slide_masked(int nx) {
  return std::is_integral_v<T> && nx >= static_cast<int>(hn::Lanes(hn::ScalableTag<ColumnSum<T>>()));
}

// Updates the sums of all nx shifts from row dy - 1 to row dy.
template <typename T>
void slide_masked(const Block<T>& window, std::span<const MaskRun> runs, int dy, int nx, Sum<T>* sums,
                  Sum<T>* squares) {
  constexpr std::size_t kMostRuns = 32768;  // each run changes a u8 sum of squares by at most 255^2
  const int lanes = static_cast<int>(hn::Lanes(hn::ScalableTag<ColumnSum<T>>()));
  for (std::size_t i = 0; i < runs.size(); i += kMostRuns) {
    const auto some = runs.subspan(i, std::min(kMostRuns, runs.size() - i));
    int dx = 0;
    for (; dx + 4 * lanes <= nx; dx += 4 * lanes)
      slide_run_ends<4, T>(window, some, dy, dx, 0, sums, squares);
    for (; dx < nx; dx += lanes) {  // the last vector overlaps the previous one
      const int at = std::min(dx, nx - lanes);
      slide_run_ends<1, T>(window, some, dy, at, dx - at, sums, squares);
    }
  }
}

// ---- Sums for a tile ----

// Looks at the token now and then: the rows of a large tile, and the shifts of a large mask, take long.
template <typename T>
void check_stop_at(const ScoreTile<T>& t, int row_or_shift) {
  constexpr int kBetween = 16;
  if (t.stop && row_or_shift % kBetween == kBetween - 1) check_stop(*t.stop);
}

// Calls take(dy, sums, squares) with the sums over the window for every row of shifts.
template <typename T, typename Take>
void for_window_sums(const ScoreTile<T>& t, T origin, ScoringScratch& scratch, const Take& take) {
  static_assert(sizeof(Sum<T>) == sizeof(double) && sizeof(ColumnSum<T>) <= sizeof(double));
  const std::size_t rest = t.mask.data ? WideMask<T>::size(t.mask) : 2 * t.window.width;
  scratch.memory.resize(2 * static_cast<std::size_t>(t.nx) + rest);
  Sum<T>* sums = reinterpret_cast<Sum<T>*>(scratch.memory.data());
  Sum<T>* squares = sums + t.nx;
  auto* columns = reinterpret_cast<ColumnSum<T>*>(squares + t.nx);
  const Widen<T> widen(origin);
  if (t.mask.data) {
    const WideMask<T> mask(t.mask, columns);
    const bool slides = can_slide_masked<T>(t.nx);
    if (slides && t.ny > 1) find_mask_runs(t.mask, scratch.runs);
    for (int dy = 0; dy < t.ny; ++dy) {
      check_stop_at(t, dy);
      if (dy == 0 || !slides) {
        for (int dx = 0; dx < t.nx; ++dx) {
          check_stop_at(t, dx);
          mask.sums(t.window.at(dy, dx, t.size.height, t.size.width), widen, sums[dx], squares[dx]);
        }
      } else if constexpr (std::is_integral_v<T>) {
        slide_masked<T>(t.window, scratch.runs, dy, t.nx, sums, squares);
      }
      take(dy, sums, squares);
    }
    return;
  }
  auto* column_squares = columns + t.window.width;
  for (int dy = 0; dy < t.ny; ++dy) {
    check_stop_at(t, dy);
    if (dy == 0 || std::is_floating_point_v<T>)
      column_sums<T>(t.window, dy, t.size.height, widen, columns, column_squares);
    else
      slide_down<T>(t.window.row(dy - 1), t.window.row(dy + t.size.height - 1), t.window.width, columns,
                    column_squares);
    box_row<T>(columns, t.size.width, t.nx, sums);
    box_row<T>(column_squares, t.size.width, t.nx, squares);
    take(dy, sums, squares);
  }
}

// The cpu-direct kernel. direct.cpp includes this file once per SIMD target, inside that target's namespace,
// where `hn` is Highway. There is no include guard, because every target compiles its own copy. With
// DIC_DIRECT_VNNI the target has AVX-512 VNNI, which Highway 1.0 does not offer as an operation.
//
// Lanes are columns of the reference. A block of DY x DX shifts stays in registers while the loop goes down
// the rows: each load of a window row serves DY shifts, each load of a reference row DX.

// ---- Arithmetic per element type ----
// Members of each arithmetic: D: lanes of the prepared reference; Stored: their type; kSums: accumulators per
// shift; max_steps: vectors that an accumulator takes before it, or the total of its lanes, could overflow.

#if DIC_DIRECT_VNNI
// u8: four u8 x s8 products per 32-bit lane, with the reference shifted to -128 .. 127.
template <class DBytes>
struct BytesDot {
  using D = DBytes;
  using Stored = std::int8_t;
  using Window = hn::Vec<hn::RebindToUnsigned<D>>;
  using Accumulator = hn::Vec<hn::Repartition<std::int32_t, D>>;
  static constexpr std::int64_t kOffset = 128;
  static constexpr int kSums = 1;
  static std::int64_t max_steps() { return 65536 / static_cast<std::int64_t>(hn::Lanes(D())); }

  static Window load(const std::uint8_t* p) { return hn::LoadU(hn::RebindToUnsigned<D>(), p); }
  static void add(hn::Vec<D> r, Window w, Accumulator* sums) {
    if constexpr (sizeof(w) == 64)
      sums->raw = _mm512_dpbusd_epi32(sums->raw, w.raw, r.raw);
    else
      sums->raw = _mm256_dpbusd_epi32(sums->raw, w.raw, r.raw);
  }
  static std::int64_t total(const Accumulator* sums) {
    return hn::GetLane(hn::SumOfLanes(hn::Repartition<std::int32_t, D>(), *sums));
  }
};
#endif

// u8: pairs of products of values widened to i16.
template <class D16>
struct BytePairs {
  using D = D16;
  using D32 = hn::RepartitionToWide<D>;
  using Stored = std::int16_t;
  using Window = hn::Vec<D>;
  using Accumulator = hn::Vec<D32>;
  static constexpr std::int64_t kOffset = 0;
  static constexpr int kSums = 2;
  static std::int64_t max_steps() { return 32768 / static_cast<std::int64_t>(hn::Lanes(D())); }

  static Window load(const std::uint8_t* p) {
    return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<std::uint8_t, D>(), p));
  }
  static void add(hn::Vec<D> r, Window w, Accumulator* sums) {
    sums[0] = hn::ReorderWidenMulAccumulate(D32(), r, w, sums[0], sums[1]);
  }
  static std::int64_t total(const Accumulator* sums) {
    return hn::GetLane(hn::SumOfLanes(D32(), hn::Add(sums[0], sums[1])));
  }
};

// u16: the reference is shifted to -32768 .. 32767, the window split into its low and high bytes.
template <class D16>
struct WordPairs {
  using D = D16;
  using D32 = hn::RepartitionToWide<D>;
  using D64 = hn::RepartitionToWide<D32>;
  using Stored = std::int16_t;
  struct Window {
    hn::Vec<D> low, high;
  };
  using Accumulator = hn::Vec<D32>;
  static constexpr std::int64_t kOffset = 32768;
  static constexpr int kSums = 4;
  // 128 * 2 * 32768 * 255 < 2^31; totals are taken in 64 bits.
  static std::int64_t max_steps() { return 128; }

  static Window load(const std::uint16_t* p) {
    const hn::RebindToUnsigned<D> du;
    const auto v = hn::LoadU(du, p);
    return {hn::BitCast(D(), hn::And(v, hn::Set(du, 0xFF))), hn::BitCast(D(), hn::ShiftRight<8>(v))};
  }
  static void add(hn::Vec<D> r, const Window& w, Accumulator* sums) {
    sums[0] = hn::ReorderWidenMulAccumulate(D32(), r, w.low, sums[0], sums[1]);
    sums[2] = hn::ReorderWidenMulAccumulate(D32(), r, w.high, sums[2], sums[3]);
  }
  static std::int64_t total(const Accumulator* sums) {
    const auto low = hn::Add(wide(sums[0]), wide(sums[1]));
    const auto high = hn::Add(wide(sums[2]), wide(sums[3]));
    return hn::GetLane(hn::SumOfLanes(D64(), hn::Add(low, hn::ShiftLeft<8>(high))));
  }

 private:
  static hn::Vec<D64> wide(Accumulator v) {
    const hn::Half<D32> half;
    return hn::Add(hn::PromoteTo(D64(), hn::LowerHalf(half, v)),
                   hn::PromoteTo(D64(), hn::UpperHalf(half, v)));
  }
};

// i32: products in 64-bit lanes; intermediate sums wrap modulo 2^64.
template <class D64>
struct Integers {
  using D = D64;
  using Stored = std::int64_t;
  using Window = hn::Vec<D>;
  using Accumulator = hn::Vec<D>;
  static constexpr std::int64_t kOffset = 0;
  static constexpr int kSums = 1;
  static std::int64_t max_steps() { return std::int64_t{1} << 40; }

  static Window load(const std::int32_t* p) {
    return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<std::int32_t, D>(), p));
  }
  static void add(hn::Vec<D> r, Window w, Accumulator* sums) {
    const hn::RepartitionToNarrow<D> d32;
    *sums = hn::Add(*sums, hn::MulEven(hn::BitCast(d32, r), hn::BitCast(d32, w)));
  }
  static std::int64_t total(const Accumulator* sums) { return hn::GetLane(hn::SumOfLanes(D(), *sums)); }
};

// f32 and f64: products in float64 lanes, which are exact for f32.
template <class D64>
struct Reals {
  using D = D64;
  using Stored = double;
  using Window = hn::Vec<D>;
  using Accumulator = hn::Vec<D>;
  static constexpr int kSums = 1;
  static std::int64_t max_steps() { return std::int64_t{1} << 40; }

  static Window load(const double* p) { return hn::LoadU(D(), p); }
  static Window load(const float* p) { return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<float, D>(), p)); }
  static void add(hn::Vec<D> r, Window w, Accumulator* sums) { *sums = hn::MulAdd(r, w, *sums); }
  static double total(const Accumulator* sums) { return hn::GetLane(hn::SumOfLanes(D(), *sums)); }
};

template <typename T>
struct ArithmeticOf;
template <>
struct ArithmeticOf<std::uint8_t> {
#if DIC_DIRECT_VNNI
  using Full = BytesDot<hn::ScalableTag<std::int8_t>>;
  using Half = BytesDot<hn::Half<Full::D>>;
#else
  using Full = BytePairs<hn::ScalableTag<std::int16_t>>;
  using Half = BytePairs<hn::Half<Full::D>>;
#endif
};
template <>
struct ArithmeticOf<std::uint16_t> {
  using Full = WordPairs<hn::ScalableTag<std::int16_t>>;
  using Half = Full;
};
template <>
struct ArithmeticOf<std::int32_t> {
  using Full = Integers<hn::ScalableTag<std::int64_t>>;
  using Half = Full;
};
template <>
struct ArithmeticOf<float> {
  using Full = Reals<hn::ScalableTag<double>>;
  using Half = Full;
};
template <>
struct ArithmeticOf<double> : ArithmeticOf<float> {};

// ---- A block of shifts ----

// Some columns of the prepared reference: `chunks` vectors per row.
template <class A>
struct Panel {
  const typename A::Stored* data = nullptr;
  int rows = 0;
  int chunks = 0;
};

// Adds the sums of DY x DX shifts over one panel to `sums` (row length kMaxBlock).
template <class A, int DY, int DX, typename T>
HWY_NOINLINE void add_block(const Panel<A>& panel, int stride, const Block<T>& window, int sums_stride,
                            Sum<T>* HWY_RESTRICT sums) {
  using V = hn::Vec<typename A::D>;
  const typename A::D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  typename A::Accumulator acc[DY][DX][A::kSums];
  for (auto& row : acc)
    for (auto& shift : row)
      for (auto& sum : shift) sum = hn::Zero(hn::DFromV<typename A::Accumulator>());

  for (int c = 0; c < panel.chunks; ++c) {
    const typename A::Stored* HWY_RESTRICT reference = panel.data + c * lanes;
    V r[DY];  // r[k]: reference row y - k, for window row y
    for (V& row : r) row = hn::Zero(d);
    for (int y = 0; y < panel.rows + DY - 1; ++y) {
#pragma GCC unroll 8
      for (int k = DY - 1; k > 0; --k) r[k] = r[k - 1];
      r[0] = y < panel.rows ? hn::LoadU(d, reference + static_cast<std::ptrdiff_t>(y) * stride) : hn::Zero(d);
      const T* HWY_RESTRICT row = window.row(y) + c * lanes;
#pragma GCC unroll 8
      for (int dx = 0; dx < DX; ++dx) {
        const typename A::Window w = A::load(row + dx);
#pragma GCC unroll 8
        for (int dy = 0; dy < DY; ++dy) A::add(r[dy], w, acc[dy][dx]);
      }
    }
  }
  for (int dy = 0; dy < DY; ++dy)
    for (int dx = 0; dx < DX; ++dx) sums[dy * sums_stride + dx] += A::total(acc[dy][dx]);
}

// ---- The kernel ----

template <typename T>
class DirectKernel final : public Kernel<T> {
  using Full = typename ArithmeticOf<T>::Full;
  using Half = typename ArithmeticOf<T>::Half;
  using Stored = typename Full::Stored;
  // 25 accumulators, 5 reference rows and a window vector fill 32 registers; 9, 3 and 1 fill 16.
  static constexpr int kBlock = (HWY_TARGET <= HWY_AVX3 && Full::kSums <= 2) ? 5 : 3;

 public:
  void begin(const CorrelateShape& shape) override {
    criterion_ = shape.criterion;
    const int lanes = static_cast<int>(hn::Lanes(typename Full::D()));
    const int half = static_cast<int>(hn::Lanes(typename Half::D()));
    const int rest = shape.reference.width % lanes;
    full_chunks_ = shape.reference.width / lanes + (rest > half || (rest > 0 && half == lanes) ? 1 : 0);
    half_chunks_ = rest > 0 && rest <= half && half < lanes ? 1 : 0;
    full_stride_ = full_chunks_ * lanes;
    half_stride_ = half_chunks_ * half;
    read_ahead_ = full_stride_ + half_stride_ - shape.reference.width;
    const std::size_t needed =
        static_cast<std::size_t>(shape.reference.height) * (full_stride_ + half_stride_);
    if (needed > capacity_) {
      stored_ = hwy::AllocateAligned<Stored>(needed);
      capacity_ = needed;
    }
    std::fill_n(stored_.get(), needed, Stored{0});  // columns beyond the reference's width stay zero
    height_ = shape.reference.height;
  }

  TileSize tile() const override { return {64, 64}; }
  int read_ahead() const override { return read_ahead_; }

  Sum<T> set_reference(const Block<T>& reference, const Block<std::uint8_t>& mask,
                       const ReferenceSums<T>& sums) override {
    Sum<T> offset = centring_offset(sums, criterion_);
    if constexpr (std::is_integral_v<T>) offset = Full::kOffset;
    Stored* half = half_panel();
    for (int i = 0; i < height_; ++i) {
      const std::uint8_t* counts = mask.data ? mask.row(i) : nullptr;
      store_row(reference.row(i), counts, 0, full_stride_, reference.width, offset,
                stored_.get() + static_cast<std::ptrdiff_t>(i) * full_stride_);
      store_row(reference.row(i), counts, full_stride_, half_stride_, reference.width, offset,
                half + static_cast<std::ptrdiff_t>(i) * half_stride_);
    }
    return offset;
  }

  double correlate(const Block<T>& window, int ny, int nx, Sum<T>* out) override {
    for (int dy = 0; dy < ny;) {
      const int by = block_size(ny - dy);
      for (int dx = 0; dx < nx;) {
        const int bx = block_size(nx - dx);
        add_shifts(window.at(dy, dx, height_ + by - 1, 0), {by, bx},
                   {out + static_cast<std::ptrdiff_t>(dy) * nx + dx, nx});
        dx += bx;
      }
      dy += by;
    }
    return 0;
  }

 private:
  static int block_size(int left) { return left >= kBlock ? kBlock : (left >= 2 ? 2 : 1); }

  Stored* half_panel() { return stored_.get() + static_cast<std::ptrdiff_t>(height_) * full_stride_; }

  static void store_row(const T* HWY_RESTRICT row, const std::uint8_t* HWY_RESTRICT counts, int first, int n,
                        int width, Sum<T> offset, Stored* HWY_RESTRICT to) {
    const int inside = std::min(n, width - first);
    for (int j = 0; j < inside; ++j) to[j] = static_cast<Stored>(row[first + j] - offset);
    if (counts)
      for (int j = 0; j < inside; ++j) to[j] = counts[first + j] ? to[j] : Stored{0};
  }

  // Neighbouring shifts that are computed together.
  struct ShiftBlock {
    int ny, nx;
  };
  // Sums of a block; rows are `stride` elements apart.
  struct Sums {
    Sum<T>* first;
    int stride;
  };
  // Some columns of the stored reference, in whole vectors.
  struct StoredColumns {
    const Stored* first;
    int chunks, stride;
    int first_column;  // in the reference
  };

  void add_shifts(const Block<T>& window, const ShiftBlock& shifts, const Sums& out) {
    for (int y = 0; y < shifts.ny; ++y)
      std::fill_n(out.first + static_cast<std::ptrdiff_t>(y) * out.stride, shifts.nx, Sum<T>{0});
    add_panels<Full>({stored_.get(), full_chunks_, full_stride_, 0}, window, shifts, out);
    if (half_chunks_ > 0)
      add_panels<Half>({half_panel(), half_chunks_, half_stride_, full_stride_}, window, shifts, out);
  }

  // Cuts the reference into panels whose sums fit the accumulators.
  template <class A>
  void add_panels(const StoredColumns& columns, const Block<T>& window, const ShiftBlock& shifts,
                  const Sums& out) {
    const auto [reference, chunks, stride, first_column] = columns;
    const int lanes = static_cast<int>(hn::Lanes(typename A::D()));
    for (int c = 0; c < chunks;) {
      const int some = static_cast<int>(std::min<std::int64_t>(chunks - c, A::max_steps()));
      const int rows = static_cast<int>(std::min<std::int64_t>(height_, A::max_steps() / some));
      for (int i = 0; i < height_; i += rows) {
        const Panel<A> panel = {reference + static_cast<std::ptrdiff_t>(i) * stride + c * lanes,
                                std::min(rows, height_ - i), some};
        block_function<A>(shifts.ny, shifts.nx)(panel, stride, window.at(i, first_column + c * lanes, 0, 0),
                                                out.stride, out.first);
      }
      c += some;
    }
  }

  template <class A>
  static auto block_function(int by, int bx) {
    using F = void (*)(const Panel<A>&, int, const Block<T>&, int, Sum<T>*);
    static constexpr F kTable[3][3] = {
        {add_block<A, 1, 1, T>, add_block<A, 1, 2, T>, add_block<A, 1, kBlock, T>},
        {add_block<A, 2, 1, T>, add_block<A, 2, 2, T>, add_block<A, 2, kBlock, T>},
        {add_block<A, kBlock, 1, T>, add_block<A, kBlock, 2, T>, add_block<A, kBlock, kBlock, T>}};
    return kTable[std::min(by, 3) - 1][std::min(bx, 3) - 1];
  }

  hwy::AlignedFreeUniquePtr<Stored[]> stored_;
  std::size_t capacity_ = 0;
  Criterion criterion_ = Criterion::zncc;
  int height_ = 0;
  int full_chunks_ = 0, half_chunks_ = 0, full_stride_ = 0, half_stride_ = 0, read_ahead_ = 0;
};

#include "correlate/cpu/kernel.hpp"
#include "correlate/cpu/variants.hpp"

// The reference implementation: it computes one shift after the other, straight from the definition.
namespace dic::correlate {
namespace {

template <typename T>
class NaiveKernel final : public Kernel<T> {
 public:
  void begin(const CorrelateShape& shape) override { criterion_ = shape.criterion; }
  TileSize tile() const override { return {64, 64}; }

  Sum<T> set_reference(const Block<T>& reference, const Block<std::uint8_t>& mask,
                       const ReferenceSums<T>& sums) override {
    reference_ = reference;
    mask_ = mask;
    offset_ = centring_offset(sums, criterion_);
    return offset_;
  }

  double correlate(const Block<T>& window, int ny, int nx, Sum<T>* out) override {
    for (int dy = 0; dy < ny; ++dy)
      for (int dx = 0; dx < nx; ++dx) *out++ = sum_at(window, dy, dx);
    return 0;
  }

 private:
  Sum<T> sum_at(const Block<T>& window, int dy, int dx) const {
    // Partial sums of i32 products may exceed 2^63 and come back: only unsigned arithmetic may wrap.
    std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t> sum = 0;
    for (int i = 0; i < reference_.height; ++i)
      for (int j = 0; j < reference_.width; ++j)
        if (!mask_.data || mask_.row(i)[j])
          sum += (static_cast<Sum<T>>(reference_.row(i)[j]) - offset_) *
                 static_cast<Sum<T>>(window.row(i + dy)[j + dx]);
    return static_cast<Sum<T>>(sum);
  }

  Block<T> reference_;
  Block<std::uint8_t> mask_;
  Sum<T> offset_ = 0;
  Criterion criterion_ = Criterion::zncc;
};

}  // namespace

CpuVariant naive_variant() {
  return {.info = {.name = "cpu-naive",
                   .backend = "cpu",
                   .pairings = all_pairings(),
                   .types = all_types(),
                   .criteria = all_criteria(),
                   .masks = true,
                   .idea = "one shift after the other, exact integers or float64: the reference"},
          .make = make_kernel<NaiveKernel>,
          .unsupported_reason = always_supported};
}

}  // namespace dic::correlate

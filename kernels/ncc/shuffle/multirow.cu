#include "ncc/shuffle/shuffle_tiles.cuh"
#include "ncc/shuffle/variants.hpp"

namespace dic::kernels {
namespace {

struct Right : ShuffleTile {
  static constexpr int shifts = 8;
};
struct RightMultimatRight : ShuffleTile {
  static constexpr int fixed = 4, shifts = 2;
};
struct Both : ShuffleTile {
  static constexpr int shifts = 8, rows = 4;
};
struct BothMultimatRight : ShuffleTile {
  static constexpr int fixed = 4, shifts = 4, rows = 4;
};
struct BothMultimatBoth : ShuffleTile {
  static constexpr int moving = 2, fixed = 2, shifts = 8, rows = 4;
};

}  // namespace

void launch_multirow_right(const NccJob& job, void* out, StreamHandle stream) {
  launch_whole_tiles<Right, ImageTypes>(job, out, stream);
}
void launch_multirow_right_multimat_right(const NccJob& job, void* out, StreamHandle stream) {
  launch_whole_tiles<RightMultimatRight, ImageTypes>(job, out, stream);
}
void launch_multirow_both(const NccJob& job, void* out, StreamHandle stream) {
  launch_whole_tiles<Both, ImageTypes>(job, out, stream);
}
void launch_multirow_both_multimat_right(const NccJob& job, void* out, StreamHandle stream) {
  launch_whole_tiles<BothMultimatRight, ImageTypes>(job, out, stream);
}
void launch_multirow_both_multimat_both(const NccJob& job, void* out, StreamHandle stream) {
  launch_whole_tiles<BothMultimatBoth, ImageTypes>(job, out, stream);
}

}  // namespace dic::kernels

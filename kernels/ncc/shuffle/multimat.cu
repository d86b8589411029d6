#include "ncc/shuffle/shuffle_tiles.cuh"
#include "ncc/shuffle/variants.hpp"

namespace dic::kernels {
namespace {

struct FewWindows : ShuffleTile {
  static constexpr int fixed = 4;
};
struct ManyWindows : ShuffleTile {
  static constexpr int fixed = 8;
};
struct Both : ShuffleTile {
  static constexpr int moving = 4, fixed = 4;
};

bool has_few_windows(const NccJob& job) {
  return make_job_view(job).windows_per_reference <= FewWindows::fixed;
}

void launch_right_split(RowSplit split, const NccJob& job, void* out, StreamHandle stream) {
  if (has_few_windows(job))
    launch_split_tiles<FewWindows, AllTypes>(split, job, out, stream);
  else
    launch_split_tiles<ManyWindows, AllTypes>(split, job, out, stream);
}

}  // namespace

void launch_multimat_right(const NccJob& job, void* out, StreamHandle stream) {
  if (has_few_windows(job))
    launch_whole_tiles<FewWindows, AllTypes>(job, out, stream);
  else
    launch_whole_tiles<ManyWindows, AllTypes>(job, out, stream);
}
void launch_multimat_right_rectangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_right_split(RowSplit::rectangle, job, out, stream);
}
void launch_multimat_right_triangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_right_split(RowSplit::triangle, job, out, stream);
}

void launch_multimat_both(const NccJob& job, void* out, StreamHandle stream) {
  launch_whole_tiles<Both, ImageTypes>(job, out, stream);
}
void launch_multimat_both_rectangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_split_tiles<Both, ImageTypes>(RowSplit::rectangle, job, out, stream);
}
void launch_multimat_both_triangle(const NccJob& job, void* out, StreamHandle stream) {
  launch_split_tiles<Both, ImageTypes>(RowSplit::triangle, job, out, stream);
}

}  // namespace dic::kernels

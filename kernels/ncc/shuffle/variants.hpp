#pragma once

#include <dic/kernels/ncc.hpp>

/// The launches of the warp-shuffle family, for the registry. The planner chooses none of them.
namespace dic::kernels {

void launch_basic(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_shuffle(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_shuffle_rectangle(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_shuffle_triangle(const NccJob& job, void* out, StreamHandle stream);
void launch_multimat_right(const NccJob& job, void* out, StreamHandle stream);
void launch_multimat_right_rectangle(const NccJob& job, void* out, StreamHandle stream);
void launch_multimat_right_triangle(const NccJob& job, void* out, StreamHandle stream);
void launch_multimat_both(const NccJob& job, void* out, StreamHandle stream);
void launch_multimat_both_rectangle(const NccJob& job, void* out, StreamHandle stream);
void launch_multimat_both_triangle(const NccJob& job, void* out, StreamHandle stream);
void launch_multirow_right(const NccJob& job, void* out, StreamHandle stream);
void launch_multirow_right_multimat_right(const NccJob& job, void* out, StreamHandle stream);
void launch_multirow_both(const NccJob& job, void* out, StreamHandle stream);
void launch_multirow_both_multimat_right(const NccJob& job, void* out, StreamHandle stream);
void launch_multirow_both_multimat_both(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_rectangle(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_triangle(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_shared(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_shared_continuous(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_shared_multimat_right(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_shared_columns(const NccJob& job, void* out, StreamHandle stream);

}  // namespace dic::kernels

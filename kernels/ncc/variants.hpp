#pragma once

#include <dic/kernels/ncc.hpp>

/// The launches that the registry lists. Each expects a job that `refusal` accepts and that has outputs.
namespace dic::kernels {

void launch_basic(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_shuffle(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_shuffle_rectangle(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_shuffle_triangle(const NccJob& job, void* out, StreamHandle stream);
void launch_multimat_right(const NccJob& job, void* out, StreamHandle stream);
void launch_multimat_right_triangle(const NccJob& job, void* out, StreamHandle stream);
void launch_block_per_shift(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_simple(const NccJob& job, void* out, StreamHandle stream);

}  // namespace dic::kernels

#pragma once

#include <dic/kernels/ncc.hpp>

/// The launches that the registry lists. Each expects a job that `refusal` accepts and that has outputs.
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
void launch_block_per_shift(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_simple(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_rectangle(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_triangle(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_shared(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_shared_continuous(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_shared_multimat_right(const NccJob& job, void* out, StreamHandle stream);
void launch_warp_per_shift_shared_columns(const NccJob& job, void* out, StreamHandle stream);
void launch_registers(const NccJob& job, void* out, StreamHandle stream);

std::string refuses_masked(const NccJob& job);

std::string refuses_f32_scores(const NccJob& job);
bool f32_scores_fit(const NccJob& job, bool peaks);
int f32_scores_shared_bytes(const NccJob& job);
void launch_f32_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                       Workspace& workspace, StreamHandle stream);
void launch_f32_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                      StreamHandle stream);

std::string refuses_few_shifts(const NccJob& job);
bool few_shifts_fit(const NccJob& job, bool peaks);
void launch_few_shifts_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                              Workspace& workspace, StreamHandle stream);
void launch_few_shifts_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                             StreamHandle stream);

std::string refuses_fft(const NccJob& job);
void launch_fft(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
std::string refuses_fft_split(const NccJob& job);
void launch_fft_split(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
std::string refuses_fft_fused(const NccJob& job);
void launch_fft_fused(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);

std::string refuses_u8_tensor(const NccJob& job);
void launch_u8_tensor(const NccJob& job, void* out, StreamHandle stream);
bool u8_tensor_scores_fit(const NccJob& job, bool peaks);
void launch_u8_tensor_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                             Workspace& workspace, StreamHandle stream);
void launch_u8_tensor_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                            StreamHandle stream);

std::string refuses_u16_tensor(const NccJob& job);
void launch_u16_tensor(const NccJob& job, void* out, StreamHandle stream);
int u16_tensor_shared_bytes(const NccJob& job);
bool u16_tensor_scores_fit(const NccJob& job, bool peaks);
void launch_u16_tensor_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                              Workspace& workspace, StreamHandle stream);
void launch_u16_tensor_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                             StreamHandle stream);

std::string refuses_f16_tensor(const NccJob& job);
int f16_tensor_shared_bytes(const NccJob& job);
bool f16_tensor_scores_fit(const NccJob& job, bool peaks);
void launch_f16_tensor_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                              Workspace& workspace, StreamHandle stream);
void launch_f16_tensor_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                             StreamHandle stream);

std::string refuses_f32_tensor(const NccJob& job);
int f32_tensor_shared_bytes(const NccJob& job);
bool f32_tensor_scores_fit(const NccJob& job, bool peaks);
void launch_f32_tensor_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                              Workspace& workspace, StreamHandle stream);
void launch_f32_tensor_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                             StreamHandle stream);

}  // namespace dic::kernels

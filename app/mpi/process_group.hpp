#pragma once

#include <dic/stereo_files.hpp>
#include <dic/track_files.hpp>
#include <memory>
#include <stop_token>
#include <string>

#include "mpi/mpi_calls.hpp"

/// `mpirun -n 8 dic track ...` and `dic stereo`: processes that measure one sequence together.
namespace dic::app {

/// The processes that mpirun or a scheduler started together with this one.
class ProcessGroup {
 public:
  /// Null if this process was started alone. Throws UsageError if several were started and MPI cannot be
  /// used.
  static std::unique_ptr<ProcessGroup> join();
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  bool leads() const { return calls_.rank == 0; }
  int size() const { return calls_.size; }
  int rank() const { return calls_.rank; }
  /// Divides the cores and GPUs of a machine among its processes; each process gets one GPU, if there are
  /// any.
  void share_machine(TrackOptions& options) const;
  /// Maximum of `value` over all processes; waits for all.
  int largest(int value) const { return calls_.largest(value); }
  /// Prints the reason and ends all processes.
  [[noreturn]] void abort(const std::string& why, int exit_code) const;

 private:
  explicit ProcessGroup(const MpiCalls& calls) : calls_(calls) {}

  const MpiCalls& calls_;
};

/// Measures the job with all processes of the group. Returns the summary of the whole run in the leader of
/// the group, and an empty one in the other processes.
TrackSummary track_together(const TrackJob& job, const ProcessGroup& group, const ProgressCallback& progress,
                            const std::stop_token& stop);
StereoSummary stereo_together(const StereoJob& job, const ProcessGroup& group,
                              const ProgressCallback& progress, const std::stop_token& stop);

}  // namespace dic::app

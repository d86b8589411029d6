#pragma once

#include <dic/track_files.hpp>
#include <memory>
#include <stop_token>
#include <string>

#include "mpi/mpi_calls.hpp"

/// `mpirun -n 8 dic track ...`: processes that measure one sequence together.
namespace dic::app {

/// The processes that mpirun, or a scheduler, has started with this one.
class ProcessGroup {
 public:
  /// Null where this process was started alone. Throws UsageError where it was not, and MPI cannot be used.
  static std::unique_ptr<ProcessGroup> join();
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  bool leads() const { return calls_.rank == 0; }
  int size() const { return calls_.size; }
  int rank() const { return calls_.rank; }
  /// Cores and GPUs of a machine are divided among its processes: a GPU each, if there are any.
  void share_machine(TrackOptions& options) const;
  /// Of all processes; waits for all.
  int largest(int value) const { return calls_.largest(value); }
  /// Prints why, and ends all processes.
  [[noreturn]] void abort(const std::string& why, int exit_code) const;

 private:
  explicit ProcessGroup(const MpiCalls& calls) : calls_(calls) {}

  const MpiCalls& calls_;
};

/// Measures the job with all processes of the group. The summary is that of the whole run where the group's
/// leader calls it, empty elsewhere.
TrackSummary track_together(const TrackJob& job, const ProcessGroup& group, const ProgressCallback& progress,
                            const std::stop_token& stop);

}  // namespace dic::app

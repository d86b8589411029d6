#include <mpi.h>

#include <dic/export.hpp>

#include "mpi/mpi_calls.hpp"

namespace dic::app {
namespace {

int largest(int value) {
  int all = 0;
  MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

void abort_all(int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }
void end() { MPI_Finalize(); }

}  // namespace

/// Initializes MPI; the same thread must make all later calls. Null if MPI cannot be initialized.
extern "C" DIC_EXPORT const MpiCalls* dic_mpi_begin() {
  static MpiCalls calls{.largest = largest, .abort = abort_all, .end = end};
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) return nullptr;
  MPI_Comm_rank(MPI_COMM_WORLD, &calls.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &calls.size);
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, calls.rank, MPI_INFO_NULL, &machine);
  MPI_Comm_rank(machine, &calls.local_rank);
  MPI_Comm_size(machine, &calls.local_size);
  MPI_Comm_free(&machine);
  return &calls;
}

}  // namespace dic::app

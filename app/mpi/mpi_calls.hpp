#pragma once

namespace dic::app {

/// Interface between the program and the module that is linked with MPI.
struct MpiCalls {
  int rank = 0, size = 1;                  ///< this process and their number, over all processes
  int local_rank = 0, local_size = 1;      ///< this process and their number, on this machine
  int (*largest)(int value) = nullptr;     ///< maximum of `value` over all processes; waits for all
  void (*abort)(int exit_code) = nullptr;  ///< ends all processes
  void (*end)() = nullptr;                 ///< waits for all
};

/// Name of the function of the module that returns its calls, and the type of that function.
inline constexpr const char* kMpiBegin = "dic_mpi_begin";
using MpiBegin = const MpiCalls* (*)();

}  // namespace dic::app

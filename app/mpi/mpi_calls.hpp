#pragma once

namespace dic::app {

/// What the program needs of MPI: the only thing that it and the module with MPI share.
struct MpiCalls {
  int rank = 0, size = 1;                  ///< of all processes
  int local_rank = 0, local_size = 1;      ///< of those on this machine
  int (*largest)(int value) = nullptr;     ///< of all processes; waits for all
  void (*abort)(int exit_code) = nullptr;  ///< ends all processes
  void (*end)() = nullptr;                 ///< waits for all
};

/// The function of the module by which it is found.
inline constexpr const char* kMpiBegin = "dic_mpi_begin";
using MpiBegin = const MpiCalls* (*)();

}  // namespace dic::app

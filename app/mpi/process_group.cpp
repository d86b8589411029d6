#include "mpi/process_group.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/info.hpp>
#include <dic/stereo_parts.hpp>
#include <dic/track_parts.hpp>
#include <dic/visible_gpus.hpp>
#include <thread>
#include <vector>

#include "commands.hpp"

namespace dic::app {
namespace {

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : 0;
}

/// True if Open MPI, Slurm (with PMIx or PMI) or MPICH started several processes, by their environment
/// variables.
bool was_started_with_others() {
  for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (number_in(size) > 1) return true;
  return std::getenv("PMIX_RANK") && number_in("SLURM_NTASKS") > 1;
}

std::string problem_of_loading() {
  const char* problem = dlerror();
  return problem ? problem : "";
}

std::string name_of_machine() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

/// Visible GPUs as the user's CUDA_VISIBLE_DEVICES names them; without that variable, their numbers.
std::vector<std::string> visible_gpus() {
  if (auto named = dic::visible_gpus()) return *std::move(named);
  std::vector<std::string> gpus;
  for (std::size_t k = 0; k < build_info().devices.size(); ++k) gpus.push_back(std::to_string(k));
  return gpus;
}

/// Runs the task; an exception ends all processes.
template <typename Task>
auto or_abort(const ProcessGroup& group, const Task& task) {
  try {
    return task();
  } catch (const UsageError& error) {
    group.abort(error.what(), wrong_usage);
  } catch (const std::exception& error) {
    group.abort(error.what(), failed);
  }
}

/// Measures a job with all processes of the group. plan: divides it, and returns no parts if the result is
/// complete. planned: returns the parts. measure: measures one, and returns true if it was interrupted.
template <typename Summary, typename Plan, typename Planned, typename Measure, typename Join>
Summary together(const ProcessGroup& group, const Plan& plan, const Planned& planned, const Measure& measure,
                 const Join& join) {
  bool nothing_left = false;
  if (group.leads()) nothing_left = or_abort(group, [&] { return plan().empty(); });
  Summary summary;
  summary.was_complete = group.largest(nothing_left) > 0;
  if (summary.was_complete) return summary;

  bool interrupted = false;
  or_abort(group, [&] {
    const auto parts = planned();
    const std::size_t n = parts.size(), rank = group.rank(), size = group.size();
    for (std::size_t k = rank * n / size; k < (rank + 1) * n / size && !interrupted; ++k) {
      try {
        interrupted = measure(parts[k]);
      } catch (const Cancelled&) {
        interrupted = true;
      }
    }
  });
  summary.interrupted = group.largest(interrupted) > 0;
  if (summary.interrupted || !group.leads()) return summary;
  return or_abort(group, join);
}

}  // namespace

std::unique_ptr<ProcessGroup> ProcessGroup::join() {
  if (!was_started_with_others()) return nullptr;
  // The RUNPATH of the program finds the module. RTLD_GLOBAL, because modules of Open MPI look for its
  // symbols.
  void* module = dlopen(DIC_MPI_FILE, RTLD_NOW | RTLD_GLOBAL);
  void* begin = module ? dlsym(module, kMpiBegin) : nullptr;
  if (!begin)
    throw UsageError("Several processes were started together, but this dic cannot use MPI (" +
                     problem_of_loading() + "): build it where Open MPI is installed, or start one process.");
  const MpiCalls* calls = reinterpret_cast<MpiBegin>(begin)();
  if (!calls)
    throw UsageError("MPI could not be started: start one process, or check the installation of MPI.");
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(*calls));
}

ProcessGroup::~ProcessGroup() { calls_.end(); }

void ProcessGroup::share_machine(TrackOptions& options) const {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (options.threads == 0) options.threads = std::max(1, cores / calls_.local_size);
  const std::vector<std::string> gpus = options.device == "cpu" ? std::vector<std::string>() : visible_gpus();
  if (gpus.size() > 1) setenv("CUDA_VISIBLE_DEVICES", gpus[calls_.local_rank % gpus.size()].c_str(), 1);
}

void ProcessGroup::abort(const std::string& why, int exit_code) const {
  std::fprintf(stderr, "dic: process %d of %d on %s: %s\n", calls_.rank, calls_.size,
               name_of_machine().c_str(), why.c_str());
  std::fflush(stderr);
  calls_.abort(exit_code);
  std::_Exit(exit_code);
}

TrackSummary track_together(const TrackJob& job, const ProcessGroup& group, const ProgressCallback& progress,
                            const std::stop_token& stop) {
  return together<TrackSummary>(
      group, [&] { return plan_parts(job, group.size()); }, [&] { return planned_parts(job); },
      [&](const TrackJob& part) { return track_files(part, progress, stop).interrupted; },
      [&] { return join_parts(job); });
}

StereoSummary stereo_together(const StereoJob& job, const ProcessGroup& group,
                              const ProgressCallback& progress, const std::stop_token& stop) {
  return together<StereoSummary>(
      group, [&] { return plan_stereo_parts(job, group.size()); }, [&] { return planned_stereo_parts(job); },
      [&](const StereoJob& part) { return stereo_files(part, progress, stop).interrupted; },
      [&] { return join_stereo_parts(job); });
}

}  // namespace dic::app

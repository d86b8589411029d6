#include "fft/cufft.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <dic/kernels/workspace.hpp>
#include <dic/shared/error.hpp>
#include <string>

namespace dic::kernels {
namespace {

constexpr const char* library_name = "libcufft.so.12";  // version of CUDA 13
constexpr std::size_t most_plans = 32;

/// Functions of cuFFT that are used, as <cufft.h> declares them: handle, result and kind are ints. The header
/// is needed neither to build nor to run.
struct Cufft {
  int (*create)(int* plan);
  int (*set_auto_allocation)(int plan, int on);
  int (*make_plan_many)(int plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                        int ostride, int odist, int kind, int batch, std::size_t* work_bytes);
  int (*set_work_area)(int plan, void* area);
  int (*set_stream)(int plan, StreamHandle stream);
  int (*execute_r2c)(int plan, void* in, void* out);
  int (*execute_c2r)(int plan, void* in, void* out);
  int (*execute_d2z)(int plan, void* in, void* out);
  int (*execute_z2d)(int plan, void* in, void* out);
  int (*destroy)(int plan);
  std::string problem;  ///< empty: all functions were found
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Cufft load() {
  Cufft f{};
  void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);  // stays loaded until the program ends
  if (const char* file = std::getenv("DIC_CUFFT"); !library && file)
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    f.problem = std::string("cuFFT was not found (") + dlerror() +
                "): install the CUDA toolkit's libcufft, name it in DIC_CUFFT, or choose another kernel.";
    return f;
  }
  const bool complete =
      find(library, "cufftCreate", f.create) &&
      find(library, "cufftSetAutoAllocation", f.set_auto_allocation) &&
      find(library, "cufftMakePlanMany", f.make_plan_many) &&
      find(library, "cufftSetWorkArea", f.set_work_area) && find(library, "cufftSetStream", f.set_stream) &&
      find(library, "cufftExecR2C", f.execute_r2c) && find(library, "cufftExecC2R", f.execute_c2r) &&
      find(library, "cufftExecD2Z", f.execute_d2z) && find(library, "cufftExecZ2D", f.execute_z2d) &&
      find(library, "cufftDestroy", f.destroy);
  if (!complete) f.problem = std::string(library_name) + " lacks functions of cuFFT: choose another kernel.";
  return f;
}

const Cufft& cufft() {
  static const Cufft functions = load();
  return functions;
}

std::string describe(const FftShape& shape) {
  return std::to_string(shape.batch) + " transforms of " + std::to_string(shape.ny) + "x" +
         std::to_string(shape.nx);
}

void check_fft(int result, const std::string& what, const FftShape& shape) {
  if (result == 0) return;
  throw DeviceError(what + " " + describe(shape) + " failed: cuFFT's error " + std::to_string(result) +
                    "; use another kernel, or --device cpu if this persists.");
}

int run(const FftShape& shape, int plan, void* data) {
  switch (shape.kind) {
    case FftKind::f32_forward:
      return cufft().execute_r2c(plan, data, data);
    case FftKind::f32_inverse:
      return cufft().execute_c2r(plan, data, data);
    case FftKind::f64_forward:
      return cufft().execute_d2z(plan, data, data);
    case FftKind::f64_inverse:
      break;
  }
  return cufft().execute_z2d(plan, data, data);
}

}  // namespace

std::string cufft_problem() { return cufft().problem; }

FftPlans::~FftPlans() {
  for (const Plan& plan : plans_) cufft().destroy(plan.handle);
}

void FftPlans::execute(const FftShape& shape, void* data, StreamHandle stream) {
  const int plan = plan_for(shape).handle;
  check_fft(cufft().set_work_area(plan, work_area_.data()), "Preparing", shape);
  check_fft(cufft().set_stream(plan, stream), "Preparing", shape);
  check_fft(run(shape, plan, data), "Queueing", shape);
}

const FftPlans::Plan& FftPlans::plan_for(const FftShape& shape) {
  const auto known = std::ranges::find(plans_, shape, &Plan::shape);
  if (known == plans_.end())
    make_plan(shape);
  else
    plans_.splice(plans_.begin(), plans_, known);
  return plans_.front();
}

void FftPlans::make_plan(const FftShape& shape) {
  Plan plan;
  check_fft(cufft().create(&plan.handle), "Planning", shape);
  plans_.push_front(plan);  // the destructor now destroys it, even after an exception; lookups find it once
                            // its shape is set
  check_fft(cufft().set_auto_allocation(plan.handle, 0), "Planning", shape);
  const bool forward = shape.kind == FftKind::f32_forward || shape.kind == FftKind::f64_forward;
  const int spectrum_nx = shape.nx / 2 + 1;
  int n[] = {shape.ny, shape.nx};
  int real_rows[] = {shape.ny, 2 * spectrum_nx}, spectrum_rows[] = {shape.ny, spectrum_nx};
  const int real_step = 2 * shape.ny * spectrum_nx, spectrum_step = shape.ny * spectrum_nx;
  std::size_t work_bytes = 0;
  check_fft(cufft().make_plan_many(plan.handle, 2, n, forward ? real_rows : spectrum_rows, 1,
                                   forward ? real_step : spectrum_step, forward ? spectrum_rows : real_rows,
                                   1, forward ? spectrum_step : real_step, static_cast<int>(shape.kind),
                                   shape.batch, &work_bytes),
            "Planning", shape);
  work_area_.reserve(std::max<std::size_t>(work_bytes, 1));
  plans_.front().shape = shape;
  if (plans_.size() <= most_plans) return;
  cufft().destroy(plans_.back().handle);
  plans_.pop_back();
}

}  // namespace dic::kernels

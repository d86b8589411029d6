#include "options.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <dic/track_options.hpp>

namespace dic::python {

namespace {

void set(TrackJob& job, const std::string& name, const std::string& value) {
  try {
    track_option(name).set(job, value);
  } catch (const UsageError& e) {
    std::string text = e.what();  // begins with the name, which has no dashes in Python
    if (text.starts_with(name)) std::replace(text.begin(), text.begin() + std::ssize(name), '-', '_');
    throw UsageError(text + ".");
  }
}

}  // namespace

TrackJob job_with(const OptionValues& values, const std::optional<Array>& roi) {
  TrackJob job;
  for (const auto& [name, value] : values) set(job, name, value);
  if (roi) job.roi.mask = copy_of(view_of(*roi));
  return job;
}

TrackJob job_for(const Array& reference, const OptionValues& values, const std::optional<Array>& roi) {
  TrackJob job = job_with(values, roi);
  if (const auto gpu = gpu_of(reference); gpu && job.options.device == "auto")
    job.options.device = "cuda:" + std::to_string(*gpu);
  return job;
}

Memory memory_for(const std::string& device) {
  return device.starts_with("cuda") ? Memory::any : Memory::host;
}

OptionValues values_of(const TrackJob& job) {
  OptionValues values;
  for (const TrackOption& option : track_options()) values.emplace_back(option.name, option.get(job));
  return values;
}

}  // namespace dic::python

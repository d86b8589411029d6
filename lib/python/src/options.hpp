#pragma once

#include <dic/track_files.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace dic::python {

/// Values of options by the names of dic/track_options.hpp.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

/// A job with these options. roi: a mask, instead of the option "roi". Throws UsageError, FileError.
TrackJob job_with(const OptionValues& values, const std::optional<Array>& roi);

/// The job of a measurement with this reference: images in the memory of a GPU are measured on that one,
/// unless the device is chosen.
TrackJob job_for(const Array& reference, const OptionValues& values, const std::optional<Array>& roi);
/// Memory that an image may lie in for a measurement on this device.
Memory memory_for(const std::string& device);

/// The values of all options of a job.
OptionValues values_of(const TrackJob& job);

}  // namespace dic::python

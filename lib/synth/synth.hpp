#pragma once

#include <dic/export.hpp>
#include <dic/image.hpp>
#include <dic/synth.hpp>
#include <vector>

#include "core/parallel.hpp"

namespace dic::synth {

/// Makes the frames of one sequence. The map from blob sum to grey is computed once, from the reference.
class Synthesizer {
 public:
  /// Throws UsageError.
  DIC_INTERNAL_API explicit Synthesizer(const SynthOptions& options);
  DIC_INTERNAL_API Image frame(int i);

 private:
  std::vector<double> blob_sums(int i);

  SynthOptions options_;
  core::ThreadPool pool_;
  double blur_of(int i) const;

  double darkest_ = 0;   // smallest blob sum of the reference
  double contrast_ = 0;  // grey levels of 255 per blob
};

}  // namespace dic::synth

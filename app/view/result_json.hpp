#pragma once

#include <dic/result.hpp>
#include <string>
#include <vector>

#include "view/json.hpp"
#include "view/measurement.hpp"

namespace dic::app {

/// Description of a test by the user, for the page Report: what no program can know.
struct TestDescription {
  std::string title, camera, lens, lighting, pattern, specimen, operated_by, note;
};

/// The arrays that the page uses, as far as the result has them: it computes the others.
std::vector<std::string> page_arrays(const Result& result);

/// Description of a result for the page, without the arrays. frames: numbers of its frames, from 0.
Json result_json(const Result& result, const TestDescription& description, const std::vector<int>& frames);

/// Description of some frames of a result for the page. frames: their numbers, from 0.
Json frames_json(const Result& result, const std::vector<int>& frames);
/// True if the run.json of the result says that the run has not ended: more frames may come.
bool is_growing(const Result& result);

/// Description of the last field of a run under way, in the form of a result with one frame.
Json live_json(const LiveField& live, Size image);
/// Values of that field, in the unit of the run, in the form of `field_bytes`.
std::string live_bytes(const LiveField& live, const std::string& array);

/// Values of all nodes: f32, little-endian; u8 for the status.
std::string field_bytes(const Result& result, const std::string& array, int frame);

}  // namespace dic::app

#pragma once

#include <dic/result.hpp>
#include <string>
#include <vector>

#include "view/json.hpp"
#include "view/measurement.hpp"

namespace dic::app {

/// Description of a test by the user, for the page Report: what no program can know.
struct TestDescription {
  std::string title, camera, lens, lighting, pattern, specimen, note;
};

/// The arrays that the page uses, as far as the result has them: it computes the others.
std::vector<std::string> page_arrays(const Result& result);

/// All that the page has to know of a result, but its arrays. frames: which, by number from 0.
Json result_json(const Result& result, const TestDescription& description, const std::vector<int>& frames);

/// Of these frames what the page has to know, by number from 0.
Json frames_json(const Result& result, const std::vector<int>& frames);
/// True if the run.json of the result says that the run has not ended: more frames may come.
bool is_growing(const Result& result);

/// Of a field of a run under way: as a result of one frame.
Json live_json(const LiveField& live, Size image);
/// Its values, in the unit of the run, as `field_bytes` gives them.
std::string live_bytes(const LiveField& live, const std::string& array);

/// f32 values of all nodes, little-endian; u8 of the status.
std::string field_bytes(const Result& result, const std::string& array, int frame);

}  // namespace dic::app

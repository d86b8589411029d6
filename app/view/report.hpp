#pragma once

#include <string>
#include <vector>

#include "view/page_image.hpp"
#include "view/result_json.hpp"

namespace dic::app {

/// The page of `dic view` with a result inside, as one HTML file that asks for nothing else. Values are
/// rounded to 16 bits between the smallest and the largest of a frame, and not finer than a twentieth of
/// their own predicted standard deviation.
///
/// frames: from 1, empty for all. images: of the test; empty shows the fields alone. project: what the page
/// is to show, as its script saves it; null for its own choice. Throws UsageError for a
/// frame that is not there, FileError.
std::string report_html(const Result& result, const TestDescription& description, const NamedImages& images,
                        const std::vector<int>& frames, const Json& project = nullptr);

}  // namespace dic::app

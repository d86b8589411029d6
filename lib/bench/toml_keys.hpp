#pragma once

#include <string>
#include <string_view>

namespace dic::bench {

/// Throws UsageError if a key in a TOML text has more than 16 parts ("a.b.c" has 3). toml++ puts the table of
/// each part into that of the part before and frees them by recursion, which 100,000 parts would crash.
/// `where` ends the message.
void refuse_deep_keys(std::string_view text, const std::string& where);

}  // namespace dic::bench

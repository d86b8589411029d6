#include <dic/refine.hpp>

namespace dic {

std::vector<std::string> RefineOptions::validate() const {
  std::vector<std::string> out;
  if (subset < 7 || subset > 255 || subset % 2 == 0)
    out.push_back("The subset is " + std::to_string(subset) +
                  " px, but must be an odd number from 7 to 255.");
  if (order < 0 || order > 2)
    out.push_back("The shape function's order is " + std::to_string(order) + ", but must be 0, 1 or 2.");
  if (max_iterations < 1) out.push_back("The refinement needs at least 1 iteration.");
  if (!(tolerance > 0)) out.push_back("The tolerance of the refinement must be above 0 px.");
  if (!(min_zncc >= -1 && min_zncc <= 1))
    out.push_back("The lowest accepted zncc must lie between -1 and 1.");
  if (!(smoothing >= 0)) out.push_back("The smoothing of the images must be 0 px (none) or more.");
  return out;
}

}  // namespace dic

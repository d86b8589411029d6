#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dic::run {

/// Finds what is drawn into the images rather than seen by the camera: a date, a scale bar, a logo. A subset
/// there matches itself perfectly, and says that the specimen does not move.
///
/// Such points stand still in every frame while the points around them move, and their pixels differ less
/// from those of the reference than the noise of the images allows. Parts of a scene that really stand still
/// have noise. Up to eight frames are looked at, so that a long run costs no more.
class StillPoints {
 public:
  /// Looks at a measured frame. noise: standard deviation of the images' noise, grey levels. image: reads the
  /// pixels of the frame; called only if points stand still while others move.
  void add(const Field& field, ImageView reference, double noise, int subset,
           const std::function<ImageView()>& image);
  /// A sentence about the points found and what to do; empty if there are none.
  std::string warning() const;

 private:
  using Group = std::vector<std::size_t>;

  std::vector<Group> groups() const;
  bool moves_around(const Group& group) const;
  std::string box_of(const Group& group) const;

  std::shared_ptr<const Grid> grid_;
  std::vector<std::size_t> still_;  ///< nodes that stood still in every frame looked at
  std::vector<double> last_;        ///< displacement of every node in the last of them, px; NaN if not ok
  double motion_ = 0;               ///< median of these
  int frames_ = 0;
};

}  // namespace dic::run

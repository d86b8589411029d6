#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "match/image_pyramid.hpp"
#include "match/pose_refinement.hpp"
#include "match/pose_template.hpp"
#include "match/search_limit.hpp"

/// The interface of the pose search's backends (CPU, CUDA): what many candidates need. `PoseSearch` decides
/// which candidates stay, and measures those on the host.
namespace dic::match {

/// The poses that are compared at the coarsest level: all angles at all scales, by scale, then angle.
struct CoarsePoses {
  std::vector<double> angles = {0}, scales = {1};  ///< radians and factors
  bool by_angle = false, by_scale = false;         ///< a local maximum is one among its neighbours, too
  bool full_circle = false;                        ///< the last angle is beside the first one

  int turns() const { return static_cast<int>(angles.size()); }
  int sizes() const { return static_cast<int>(scales.size()); }
  int count() const { return turns() * sizes(); }
  double angle(int pose) const { return angles[pose % turns()]; }
  double scale(int pose) const { return scales[pose / turns()]; }
};

/// A local maximum of the coarse scores.
struct CoarseMaximum {
  int pose = 0, x = 0, y = 0;  ///< place of the template's centre, px of the coarsest level
  float score = 0;
};

/// The search of one template at the coarsest level.
struct CoarseSearch {
  const PoseTemplate* source = nullptr;
  const CoarsePoses* poses = nullptr;
  std::span<const int> wanted;              ///< poses, ascending
  std::span<const CoarsePattern> patterns;  ///< one per pose; made for `image` where wanted
  const CoarseImage* image = nullptr;
  CoarseRules rules;
  float threshold = 0;
  std::size_t most = 0;  ///< number of the highest maxima that count
  std::vector<CoarseMaximum>
      found{};  ///< result, in any order; lower ones may lack if there are more than `most`
};

/// A fit of one template at one level.
struct LevelStart {
  const PoseTemplate* source = nullptr;
  pose::Warp start;                      ///< in pixels of the image's level
  const RefinementPlan* plan = nullptr;  ///< of many starts; gain and offset are those below
  double gain = 0, offset = 0;

  RefinementPlan own_plan() const {
    RefinementPlan own = *plan;
    own.gain = gain, own.offset = offset;
    return own;
  }
};
struct LevelFit {
  pose::Fit fit;
  double structure = 1;  ///< correlation of the gradients; only of level 1
};

/// Fits at full resolution, for one thread at a time.
class FullFits {
 public:
  virtual ~FullFits() = default;
  /// See PoseRefiner. pixels: of the template; start and result: in pixels of the image.
  virtual PoseFit refine(const PixelList& pixels, const pose::Warp& start, const RefinementPlan& plan) = 0;
  /// Adds standard deviations to the fit that the last `refine`, of the same pixels, returned.
  virtual void with_sigmas(const PixelList& pixels, const RefinementPlan& plan, PoseFit& fit) = 0;
};

class PoseBackend {
 public:
  virtual ~PoseBackend() = default;
  /// Sets the image, which must live until the next call, and makes its levels up to `top`.
  virtual void set_image(ImagePyramid& image, int top) = 0;
  /// Largest number of templates of a call that leaves work for others: threads search further templates by
  /// calls of their own at the same time.
  virtual int templates_together() const { return std::numeric_limits<int>::max(); }
  virtual void find_maxima(std::span<CoarseSearch> searches, const SearchLimit& limit) = 0;
  /// Fits a level above 0 of templates to a level of the image, see PoseTemplate::image_level(). Those that
  /// the limit leaves out are not valid.
  virtual void fit(int level, int image_level, std::span<const LevelStart> starts, std::span<LevelFit> fits,
                   const SearchLimit& limit) = 0;
  /// Fits of a template at full resolution; none if the host shall do them. Any thread may ask; it waits
  /// until the fits of other threads are destroyed.
  virtual std::unique_ptr<FullFits> full_fits(const PoseTemplate&) { return nullptr; }
};

/// pool: lives longer than the backend.
std::unique_ptr<PoseBackend> open_cpu_poses(core::ThreadPool& pool);
/// Opens a GPU. Searches that do not fit into its memory are done on the CPU. Builds without CUDA define it
/// in cuda/pose_backend_cuda_stub.cpp. Throws DeviceError.
std::unique_ptr<PoseBackend> open_cuda_poses(int ordinal, core::ThreadPool& pool);

}  // namespace dic::match

#include <algorithm>
#include <cmath>
#include <cstring>
#include <dic/kernels/pose.hpp>
#include <map>
#include <mutex>

#include "match/cuda/device_full_fits.hpp"
#include "match/cuda/device_pixels.hpp"
#include "match/pose_backend.hpp"

// The CUDA backend. The image's pyramid is made on the device; patterns and pixels of the templates stay
// there.
namespace dic::match {
namespace {

using kernels::CoarsePatterns;
using kernels::CoarsePeak;
using kernels::DeviceBuffer;

constexpr std::size_t kMostScores = std::size_t{6} << 30;  ///< bytes of score planes at the same time
/// Expected scores per local maximum, and more maxima: lists that are too short cost another search.
constexpr std::size_t kPlacesPerPeak = 256, kMorePeaks = 4096;

struct PeakCounts {
  std::int32_t every, highest;
};

/// The patterns of one template on the host.
struct HostPatterns {
  std::vector<CoarsePatterns::Offset> offsets;
  std::vector<std::int32_t> begin;
  std::vector<CoarsePatterns::Extent> extents;
  std::vector<float> t;
  std::vector<CoarsePatterns::Part> parts;  ///< [pose][part]
  std::vector<float> contrast;              ///< one per pose
  int reach = 0;
  int shape = 0;  ///< number of the first template whose patterns cover the same pixels

  void add(const CoarsePattern& pattern, std::ptrdiff_t stride) {
    const auto first = static_cast<std::int32_t>(offsets.size());
    const auto count = static_cast<double>(std::max<std::size_t>(1, pattern.elements.size()));
    // Grey values in units of their deviation: half floats keep their digits.
    const double power = pattern.energy / count, unit = power > 0 ? std::sqrt(power) : 1;
    for (const std::size_t k : pattern.element_begin) begin.push_back(first + static_cast<std::int32_t>(k));
    for (const CoarsePattern::Element& e : pattern.elements) {
      const std::ptrdiff_t y = (e.offset + stride / 2 + stride * stride) / stride - stride;
      offsets.push_back({static_cast<std::int16_t>(e.offset - y * stride), static_cast<std::int16_t>(y)});
      t.push_back(static_cast<float>(e.t / unit));
    }
    const auto narrow = [](int value) { return static_cast<std::int16_t>(value); };
    extents.push_back(
        {narrow(pattern.left), narrow(pattern.right), narrow(pattern.top), narrow(pattern.bottom)});
    reach = std::max({reach, -pattern.left, pattern.right, -pattern.top, pattern.bottom});
    for (const CoarsePattern::Part& p : pattern.parts)
      parts.push_back(CoarsePatterns::Part::of(p.weight, p.t / unit, p.tt / (unit * unit)));
    contrast.push_back(CoarsePattern::kLeastContrast * static_cast<float>(power / (unit * unit)));
  }
  bool covers_the_same(const HostPatterns& other) const {
    const auto same = [](const CoarsePatterns::Offset& a, const CoarsePatterns::Offset& b) {
      return a.x == b.x && a.y == b.y;
    };
    return begin == other.begin && std::ranges::equal(offsets, other.offsets, same);
  }
};

HostPatterns patterns_of(const PoseTemplate& source, const CoarsePoses& poses) {
  constexpr std::ptrdiff_t kStride = 1 << 15;  // wider than any pattern, so that offsets tell places
  HostPatterns all;
  for (int p = 0; p < poses.count(); ++p)
    all.add(source.coarse_pattern(poses.angle(p), poses.scale(p), kStride), kStride);
  return all;
}

/// The patterns of some templates on the device.
class DevicePatterns {
 public:
  DevicePatterns(const std::vector<const HostPatterns*>& all, int poses, const kernels::Stream& stream) {
    const HostPatterns& first = *all.front();
    const int count = static_cast<int>(all.size()), whole = CoarsePatterns::kLanes;
    const int lanes = count == 1 ? 1 : (count + whole - 1) / whole * whole;
    std::vector<float> t(first.t.size() * lanes), contrast(first.contrast.size() * lanes);
    std::vector<CoarsePatterns::Part> parts(first.parts.size() * lanes);
    for (int lane = 0; lane < count; ++lane) {
      const HostPatterns& one = *all[lane];
      for (std::size_t k = 0; k < one.t.size(); ++k) t[k * lanes + lane] = one.t[k];
      for (std::size_t k = 0; k < one.contrast.size(); ++k) contrast[k * lanes + lane] = one.contrast[k];
      for (std::size_t k = 0; k < one.parts.size(); ++k) parts[k * lanes + lane] = one.parts[k];
    }
    patterns_ = {.poses = poses,
                 .templates = count,
                 .lanes = lanes,
                 .reach = first.reach,
                 .offsets = upload(buffers_[0], first.offsets, stream),
                 .begin = upload(buffers_[1], first.begin, stream),
                 .extents = upload(buffers_[2], first.extents, stream),
                 .t = upload(buffers_[3], t, stream),
                 .parts = upload(buffers_[4], parts, stream),
                 .contrast = upload(buffers_[5], contrast, stream)};
    if (count > 1) add_pairs(first, stream);
  }

  int templates() const { return patterns_.templates; }
  /// The patterns of some templates. first: a multiple of kLanes.
  CoarsePatterns some(int first, int count) const {
    CoarsePatterns some = patterns_;
    some.templates = count;
    some.parts += first, some.contrast += first, some.factors += first;
    some.halves += kernels::pattern_words_before(first);
    return some;
  }

 private:
  void add_pairs(const HostPatterns& first, const kernels::Stream& stream) {
    const kernels::PatternPairs pairs = kernels::pattern_pairs(first.offsets, first.begin, first.reach);
    patterns_.shifts = upload(buffers_[10], pairs.pixels, stream);
    auto* factors = buffers_[11].reserve<CoarsePatterns::Factor>(kernels::pattern_factors(patterns_));
    kernels::launch_pattern_factors(patterns_, CoarseRules::kLeastVisible, factors, stream.handle());
    patterns_.factors = factors;
    patterns_.pairs = upload(buffers_[6], pairs.shifts, stream);
    patterns_.steps = upload(buffers_[7], pairs.begin, stream);
    const std::int64_t words = kernels::pattern_words(pairs, patterns_.lanes);
    auto* halves = buffers_[8].reserve<std::uint32_t>(words);
    kernels::launch_pattern_halves(patterns_.t, patterns_.lanes, upload(buffers_[9], pairs.elements, stream),
                                   words, halves, stream.handle());
    patterns_.halves = halves;
  }

  CoarsePatterns patterns_;
  DeviceBuffer buffers_[12];
};

/// The pixels of all levels of a template on the device.
class DeviceLevels {
 public:
  DeviceLevels(const PoseTemplate& source, const kernels::Stream& stream) {
    for (int level = 1; level <= source.top(); ++level)
      levels_.emplace_back(source.level(level).pixels, stream);
  }
  const kernels::PosePixels& level(int level) const { return levels_[level - 1].pixels(); }

 private:
  std::vector<DevicePixels> levels_;
};

/// The pyramid of an image on the device, from level 1 on.
class DevicePyramid {
 public:
  void make(const ImagePyramid& image, int top, int device, core::ThreadPool& pool,
            const kernels::Stream& stream) {
    const ImageView& view = image.image();
    const std::size_t row = view.width * size_of(view.type);
    void* pixels = pixels_.reserve(row * view.height);
    upload_rows(view, static_cast<std::byte*>(pixels), device, pool, stream);
    values_.make({pixels, static_cast<std::ptrdiff_t>(row), view.width, view.height}, top,
                 [&](const kernels::DeviceImage& in, float* out, bool is_first) {
                   kernels::launch_pose_reduced(in, is_first ? view.type : ScalarType::f32, out,
                                                stream.handle());
                 });
    const FloatImage* mask = image.mask(0);
    has_mask_ = mask != nullptr;
    if (!mask) return;
    const float* counts = upload(mask_, mask->values, stream);
    const auto bytes = static_cast<std::ptrdiff_t>(mask->width * sizeof(float));
    masks_.make({counts, bytes, mask->width, mask->height}, top,
                [&](const kernels::DeviceImage& in, float* out, bool) {
                  kernels::launch_pose_reduced_mask(in, out, stream.handle());
                });
  }
  /// The image itself, and its mask if it has one.
  const kernels::DeviceImage& full() const { return values_.levels[0]; }
  const float* full_mask() const {
    return has_mask_ ? static_cast<const float*>(masks_.levels[0].data) : nullptr;
  }
  kernels::PoseLevel level(int level) const {
    const kernels::DeviceImage& values = values_.levels[level];
    return {static_cast<const float*>(values.data),
            has_mask_ ? static_cast<const float*>(masks_.levels[level].data) : nullptr, values.width,
            values.height};
  }

 private:
  /// Copies by pinned memory, which several threads fill: the driver alone reads pageable memory at a few
  /// GB/s. The stream must have read the former image.
  void upload_rows(const ImageView& view, std::byte* pixels, int device, core::ThreadPool& pool,
                   const kernels::Stream& stream) {
    const std::size_t row = view.width * size_of(view.type);
    auto* pinned = static_cast<std::byte*>(pinned_.reserve(row * view.height));
    constexpr std::size_t kPart = 1 << 19;  // bytes
    const auto rows =
        static_cast<std::int64_t>(std::max<std::size_t>(1, kPart / std::max<std::size_t>(1, row)));
    pool.parallel_for(view.height, rows, [&](std::int64_t begin, std::int64_t end, int) {
      const kernels::DeviceScope scope(device);
      const std::size_t first = begin * row, bytes = (end - begin) * row;
      for (std::int64_t y = begin; y < end; ++y)
        std::memcpy(pinned + y * row, static_cast<const std::byte*>(view.data) + y * view.row_bytes, row);
      kernels::upload(pixels + first, pinned + first, bytes, stream);
    });
  }

  struct Planes {
    std::vector<DeviceBuffer> buffers;
    std::vector<kernels::DeviceImage> levels;

    template <typename Reduce>
    void make(const kernels::DeviceImage& first, int top, const Reduce& reduce) {
      levels.assign(1, first);
      if (std::ssize(buffers) < top) buffers.resize(top);
      for (int level = 1; level <= top; ++level) {
        const kernels::DeviceImage& from = levels.back();
        const int width = from.width / 2, height = from.height / 2;
        auto* out = buffers[level - 1].reserve<float>(
            std::max<std::size_t>(1, static_cast<std::size_t>(width) * height));
        reduce(from, out, level == 1);
        levels.push_back({out, static_cast<std::ptrdiff_t>(width * sizeof(float)), width, height});
      }
    }
  };

  DeviceBuffer pixels_, mask_;
  kernels::PinnedBuffer pinned_;
  Planes values_, masks_;
  bool has_mask_ = false;
};

/// The image of a coarsest level on the device.
class DeviceCoarse {
 public:
  /// Begins another image of the same level.
  void forget() { is_there_ = false; }
  void require(const CoarseImage& image, const kernels::Stream& stream) {
    if (is_there_ && image.margin == plane_.margin) return;
    is_there_ = true;
    const std::ptrdiff_t origin = image.place(0, 0);
    plane_ = {.values = upload(values_, image.values, stream) + origin,
              .counts = upload(counts_, image.counts, stream) + origin,
              .stride = static_cast<int>(image.stride),
              .margin = image.margin,
              .width = image.width,
              .height = image.height,
              .has_mask = image.has_mask};
  }
  const kernels::CoarsePlane& plane() const { return plane_; }

 private:
  DeviceBuffer values_, counts_;
  kernels::CoarsePlane plane_;
  bool is_there_ = false;
};

/// Several threads may search maxima and fit, one at a time each. Fits go first, so that the host gets work
/// while the device searches maxima of other templates.
class CudaPoses final : public PoseBackend {
 public:
  CudaPoses(int device, core::ThreadPool& pool)
      : device_(kernels::find_device(device).index),
        most_reach_(kernels::most_coarse_reach()),
        pool_(pool),
        on_cpu_(open_cpu_poses(pool)),
        full_(device_) {}

  void set_image(ImagePyramid& image, int top) override {
    const kernels::DeviceScope scope(device_);
    stream_.synchronize("the search of poses");  // a search that was cancelled may have left work
    fit_stream_.synchronize("fits of poses");
    pyramid_.make(image, top, device_, pool_, stream_);
    full_.set_image(pyramid_.full(), image.image().type, pyramid_.full_mask());
    for (auto& [level, coarse] : coarse_) coarse.forget();
    on_cpu_->set_image(image, top);  // the device works meanwhile
    stream_.synchronize("the pyramid of an image");
  }

  int templates_together() const override { return 2 * CoarsePatterns::kLanes; }

  void find_maxima(std::span<CoarseSearch> searches, const SearchLimit& limit) override {
    const std::scoped_lock lock(maxima_mutex_);
    const kernels::DeviceScope scope(device_);
    make_patterns(searches);
    std::vector<char> is_done(searches.size(), 0);
    for (std::size_t k = 0; k < searches.size(); ++k) {
      if (is_done[k] || limit.is_over()) continue;
      std::vector<CoarseSearch*> same;
      for (std::size_t j = k; j < searches.size(); ++j)
        if (!is_done[j] && are_alike(searches[k], searches[j])) is_done[j] = 1, same.push_back(&searches[j]);
      if (!find_together(same))
        for (CoarseSearch* search : same) on_cpu_->find_maxima({search, 1}, limit);
    }
  }

  void fit(int level, int image_level, std::span<const LevelStart> starts, std::span<LevelFit> fits,
           const SearchLimit& limit) override {
    if (starts.empty() || limit.is_over()) {
      std::ranges::fill(fits, LevelFit{});
      return;
    }
    const std::scoped_lock lock(fit_mutex_);
    const kernels::DeviceScope scope(device_);
    const auto count = std::ssize(starts);
    auto* tasks = pinned_tasks_.reserve<kernels::PoseTask>(count);
    std::vector<kernels::PosePixels> pixels;
    std::map<const PoseTemplate*, int> indices;
    int most_padded = 0, last = 0;
    bool shears = false;
    for (std::int64_t k = 0; k < count; ++k) {
      if (k == 0 || starts[k].source != starts[k - 1].source) {
        const auto [at, is_new] = indices.try_emplace(starts[k].source, static_cast<int>(pixels.size()));
        if (is_new) pixels.push_back(levels_of(*starts[k].source).level(level));
        last = at->second;
        most_padded = std::max(most_padded, pixels[last].padded);
        shears |= starts[k].plan->freedom == pose::Freedom::affine;
      }
      tasks[k].pixels = last;
    }
    if (most_padded > kernels::most_pose_pixels())
      return on_cpu_->fit(level, image_level, starts, fits, limit);
    core::for_each_index(pool_, count, [&](std::int64_t k) {
      const LevelStart& start = starts[k];
      tasks[k].start = start.start;
      tasks[k].plan = *start.plan;
      tasks[k].plan.gain = start.gain, tasks[k].plan.offset = start.offset;
      tasks[k].with_structure = level == 1;
    });
    auto* on_device = tasks_.reserve<kernels::PoseTask>(count);
    kernels::upload(on_device, tasks, count * sizeof(kernels::PoseTask), fit_stream_);
    auto* results = results_.reserve<kernels::PoseResult>(count);
    kernels::launch_pose_fits({.image = pyramid_.level(image_level),
                               .pixels = upload(pixels_, pixels, fit_stream_),
                               .tasks = on_device,
                               .count = static_cast<int>(count),
                               .shear = shears,
                               .results = results},
                              most_padded, fit_stream_.handle());
    auto* found = pinned_results_.reserve<kernels::PoseResult>(count);
    kernels::download(found, results, count * sizeof(kernels::PoseResult), fit_stream_);
    fit_stream_.synchronize("fits of poses");
    core::for_each_index(pool_, count, [&](std::int64_t k) {
      fits[k] = {found[k].fit, level == 1 ? found[k].structure : 1};
    });
  }

  std::unique_ptr<FullFits> full_fits(const PoseTemplate& source) override {
    // The host does short lists in less time than a device needs to answer.
    return source.many().count > 0 ? full_.open() : nullptr;
  }

 private:
  void make_patterns(std::span<const CoarseSearch> searches) {
    std::vector<std::pair<const CoarseSearch*, HostPatterns*>> missing;
    for (const CoarseSearch& search : searches)
      if (const auto [at, is_new] = patterns_.try_emplace(search.source); is_new)
        missing.emplace_back(&search, &at->second);
    pool_.parallel_for(std::ssize(missing), 1, [&](std::int64_t k, std::int64_t, int) {
      *missing[k].second = patterns_of(*missing[k].first->source, *missing[k].first->poses);
    });
    for (const auto& [search, patterns] : missing) {
      const auto same = std::ranges::find_if(
          shapes_, [&](const HostPatterns* other) { return patterns->covers_the_same(*other); });
      patterns->shape = static_cast<int>(same - shapes_.begin());
      if (same == shapes_.end()) shapes_.push_back(patterns);
    }
  }
  /// True for searches of the same pixels in the same image.
  bool are_alike(const CoarseSearch& a, const CoarseSearch& b) const {
    return &a == &b || (a.image == b.image && a.poses->turns() == b.poses->turns() &&
                        a.poses->sizes() == b.poses->sizes() && a.threshold == b.threshold &&
                        a.most == b.most && a.rules.any_polarity == b.rules.any_polarity &&
                        patterns_.at(a.source).shape == patterns_.at(b.source).shape);
  }

  /// False if the searches do not fit.
  bool find_together(const std::vector<CoarseSearch*>& searches) {
    const CoarseSearch& first = *searches.front();
    const CoarsePoses& poses = *first.poses;
    const int width = first.image->width, height = first.image->height;
    const auto bytes =
        static_cast<std::size_t>(kernels::coarse_places(width, height)) * poses.count() * sizeof(float);
    const int lanes = searches.size() == 1 ? 1 : CoarsePatterns::kLanes;
    const std::size_t wanted = std::min(kMostScores, bytes * ((searches.size() + lanes - 1) / lanes * lanes));
    const std::size_t most_bytes =  // to ask the device takes longer than a search of few templates
        scores_.size() >= wanted ? kMostScores
                                 : std::min(kMostScores, (scores_.size() + kernels::free_memory()) / 2);
    if (static_cast<int>(first.wanted.size()) != poses.count() ||
        patterns_.at(first.source).reach > most_reach_ || bytes * lanes > most_bytes)
      return false;
    const int together = static_cast<int>(std::min<std::size_t>(most_bytes / bytes / lanes, 1 << 20)) * lanes;
    const DevicePatterns& patterns = on_device(searches);
    DeviceCoarse& image = coarse_[first.image];
    image.require(*first.image, stream_);
    const auto all = bytes / sizeof(float) * searches.size();
    kernels::PeakList every, highest;
    every.capacity = capacity_of(every_, all / kPlacesPerPeak + kMorePeaks);
    highest.capacity = capacity_of(peaks_, 2 * first.most * searches.size() + kMorePeaks);
    for (;;) {
      const PeakCounts found = queue(first, image.plane(), patterns, together, every, highest);
      if (found.every <= every.capacity && found.highest <= highest.capacity)
        return take_peaks(searches, found.highest);
      every.capacity = std::max(every.capacity, found.every);
      highest.capacity = std::max(highest.capacity, found.highest);
    }
  }

  static int capacity_of(const DeviceBuffer& buffer, std::size_t least) {
    constexpr std::size_t most = 1 << 30;
    return static_cast<int>(std::min(most, std::max(buffer.size() / sizeof(CoarsePeak), least)));
  }

  /// Finds maxima; their numbers may be larger than the capacities. The highest ones come to the host.
  PeakCounts queue(const CoarseSearch& first, const kernels::CoarsePlane& image,
                   const DevicePatterns& patterns, int together, kernels::PeakList every,
                   kernels::PeakList highest) {
    const CoarsePoses& poses = *first.poses;
    const auto places = static_cast<std::size_t>(kernels::coarse_places(image.width, image.height));
    const int templates = patterns.templates();
    auto* scores = scores_.reserve<float>(places * poses.count() * std::min(together, templates));
    const std::size_t bin_count = static_cast<std::size_t>(kernels::kScoreBins) * templates;
    auto* bins = bins_.reserve<std::int32_t>(bin_count);
    auto* counts = counts_.reserve<PeakCounts>(1);
    every.peaks = every_.reserve<CoarsePeak>(every.capacity), every.count = &counts->every;
    highest.peaks = peaks_.reserve<CoarsePeak>(highest.capacity), highest.count = &counts->highest;
    kernels::fill(counts, 0, sizeof(*counts), stream_.handle());
    kernels::fill(bins, 0, bin_count * sizeof(*bins), stream_.handle());
    const kernels::CoarseDemands demands{first.rules.least_variance, CoarseRules::kLeastVisible,
                                         first.rules.any_polarity};
    for (int k = 0; k < templates; k += together) {
      const CoarsePatterns some = patterns.some(k, std::min(together, templates - k));
      kernels::launch_coarse_scores(image, some, demands, scores, stream_.handle());
      const kernels::CoarsePlanes planes{
          .scores = scores,
          .width = image.width,
          .height = image.height,
          .templates = some.templates,
          .neighbours = {poses.turns(), poses.sizes(), poses.by_angle, poses.by_scale, poses.full_circle},
          .threshold = first.threshold};
      kernels::launch_coarse_maxima(planes, k, every, bins, stream_.handle());
    }
    kernels::launch_highest_maxima(every, bins, templates, static_cast<int>(first.most), first.threshold,
                                   cuts_.reserve<float>(templates), highest, stream_.handle());
    auto* found = pinned_counts_.reserve<PeakCounts>(1);
    kernels::download(found, counts, sizeof(*found), stream_);
    kernels::download(pinned_peaks_.reserve<CoarsePeak>(highest.capacity), highest.peaks,
                      highest.capacity * sizeof(CoarsePeak), stream_);
    stream_.synchronize("the search of poses");
    return *found;
  }

  bool take_peaks(const std::vector<CoarseSearch*>& searches, int count) {
    for (CoarseSearch* search : searches) search->found.clear();
    const auto* peaks = static_cast<const CoarsePeak*>(pinned_peaks_.data());
    for (const CoarsePeak& p : std::span(peaks, count))
      searches[p.template_index]->found.push_back({p.pose, p.x, p.y, p.score});
    return true;
  }

  const DevicePatterns& on_device(const std::vector<CoarseSearch*>& searches) {
    std::vector<const PoseTemplate*> sources;
    std::vector<const HostPatterns*> all;
    for (const CoarseSearch* search : searches) {
      sources.push_back(search->source);
      all.push_back(&patterns_.at(search->source));
    }
    const auto known = groups_.find(sources);
    if (known != groups_.end()) return known->second;
    return groups_.try_emplace(sources, all, searches.front()->poses->count(), stream_).first->second;
  }

  const DeviceLevels& levels_of(const PoseTemplate& source) {
    return levels_.try_emplace(&source, source, fit_stream_).first->second;
  }

  int device_;
  int most_reach_;
  core::ThreadPool& pool_;
  std::unique_ptr<PoseBackend> on_cpu_;
  std::mutex maxima_mutex_, fit_mutex_;
  kernels::Stream stream_, fit_stream_{kernels::Priority::high};
  DevicePyramid pyramid_;
  DeviceFullFits full_;
  std::map<const CoarseImage*, DeviceCoarse> coarse_;
  std::map<const PoseTemplate*, HostPatterns> patterns_;
  std::vector<const HostPatterns*> shapes_;  ///< of those in patterns_, by HostPatterns::shape
  std::map<std::vector<const PoseTemplate*>, DevicePatterns> groups_;
  std::map<const PoseTemplate*, DeviceLevels> levels_;
  DeviceBuffer scores_, bins_, cuts_, every_, peaks_, counts_, pixels_, tasks_, results_;
  kernels::PinnedBuffer pinned_counts_, pinned_peaks_, pinned_tasks_, pinned_results_;
};

}  // namespace

std::unique_ptr<PoseBackend> open_cuda_poses(int ordinal, core::ThreadPool& pool) {
  const kernels::DeviceScope scope(kernels::find_device(ordinal).index);
  return std::make_unique<CudaPoses>(ordinal, pool);
}

}  // namespace dic::match

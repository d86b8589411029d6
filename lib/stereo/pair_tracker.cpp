#include "stereo/pair_tracker.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dic/error.hpp>
#include <utility>

#include "stereo/camera_pair.hpp"
#include "stereo/epipolar_line.hpp"
#include "stereo/sigma_check.hpp"
#include "stereo/surface.hpp"

namespace dic::stereo {
namespace {

const TrackOptions& checked(const StereoOptions& options) {
  for (const std::string& problem : options.validate()) throw UsageError(problem);
  return options.track;
}

void check_equal(ImageView left, ImageView right) {
  if (left.size() != right.size() || left.type != right.type)
    throw UsageError(
        "The left and the right image differ in size or depth: both cameras need images of one kind.");
}

void check_size(ImageView image, const CameraRig& rig, std::size_t camera, const char* name) {
  if (camera >= rig.cameras.size()) return;
  const Size known = rig.cameras[camera].camera.image;
  if (image.size() == known) return;
  const auto text = [](Size size) {
    return std::to_string(size.width) + " x " + std::to_string(size.height);
  };
  throw UsageError(std::string("The ") + name + " image has " + text(image.size()) +
                   " px, and the calibration is one of images of " + text(known) +
                   " px: use the images of the calibrated cameras as they were taken.");
}

/// Nodes beside the found ones that support these, although the references lost them.
constexpr int kMargin = 4;
/// The same in right images, whose camera does not see most of them: each costs searches in every pair. With
/// one node, the outermost points of a body have too few neighbours: most are measured with parts of their
/// subsets or lost.
constexpr int kMarginInRight = 2;

using Efforts = std::vector<track::Effort>;

/// Efforts for frames to come: `found` where this field has values. Nodes far from these are lost for good:
/// what the references lost has no position, and a background costs the longest searches.
Efforts efforts_for(const Field& field, track::Effort found, int margin) {
  const Grid& grid = field.grid();
  Efforts efforts(field.status.size(), track::Effort::none);
  for (std::size_t k = 0; k < efforts.size(); ++k) {
    if (!has_values(field.status[k])) continue;
    const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    for (int y = std::max(j - margin, 0); y <= std::min(j + margin, grid.ny - 1); ++y)
      for (int x = std::max(i - margin, 0); x <= std::min(i + margin, grid.nx - 1); ++x) {
        track::Effort& effort = efforts[static_cast<std::size_t>(y) * grid.nx + x];
        effort = std::max(effort, track::Effort::support);
      }
    efforts[k] = std::max(efforts[k], found);
  }
  return efforts;
}

double largest_turn(const RigCorrection& correction) {
  const auto& [x, y, z] = correction.rotation_deg;
  return std::max(std::hypot(x, y, z), correction.direction_deg);
}

/// A rig that turns by more was not moved by accident: another one took the images.
bool is_small(const RigCorrection& correction) {
  constexpr double kLargest = 1;  // degree
  return largest_turn(correction) <= kLargest;
}

/// True if a small turn explains distances from the epipolar lines.
bool explains(const RigCorrection& correction) {
  constexpr double kMostLeft = 0.1;  // px
  return is_small(correction) && correction.epipolar_after_px < kMostLeft;
}

std::string degrees_of(const RigCorrection& correction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", largest_turn(correction));
  return text;
}

std::string text_of(const RigCorrection& correction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", correction.epipolar_after_px);
  return "A right camera that has turned by " + degrees_of(correction) +
         " degrees since its calibration would leave " + text + " px.";
}

/// Joins the states of the left and the right sequence; empty if one of them has none.
std::vector<std::byte> joined(std::span<const std::byte> left, std::span<const std::byte> right) {
  if (left.empty() || right.empty()) return {};
  const std::uint64_t bytes = left.size();
  std::vector<std::byte> state(sizeof bytes);
  std::memcpy(state.data(), &bytes, sizeof bytes);
  state.insert(state.end(), left.begin(), left.end());
  state.insert(state.end(), right.begin(), right.end());
  return state;
}

/// The states of both sequences; nothing if these are not such bytes.
std::optional<std::array<std::span<const std::byte>, 2>> parts_of(std::span<const std::byte> state) {
  std::uint64_t bytes = 0;
  if (state.size() < sizeof bytes) return {};
  std::memcpy(&bytes, state.data(), sizeof bytes);
  state = state.subspan(sizeof bytes);
  if (bytes > state.size()) return {};
  return std::array{state.first(bytes), state.subspan(bytes)};
}

/// Leaves points to their neighbours that a search by whole pixels cannot recognize, since the other camera
/// sees their subsets too distorted: their loss would cause searches of whole images. The least distorted
/// quarter of the points is always searched, so that large motions are noticed.
void leave_distorted(const LocalMaps& maps, int subset, Efforts& efforts) {
  constexpr float kMostDistorted = 1.5;  // root mean square over the subset, px
  constexpr std::size_t kSearched = 4;   // one in so many
  const float to_square = (static_cast<float>(subset) * static_cast<float>(subset) - 1) / 12;
  const auto square_of = [&](std::size_t k) {
    const float* const m = maps.data() + 4 * k;
    const float xx = m[0] - 1, yy = m[3] - 1;
    return to_square * (xx * xx + m[1] * m[1] + m[2] * m[2] + yy * yy);
  };
  std::vector<float> squares;
  for (std::size_t k = 0; k < efforts.size(); ++k)
    if (efforts[k] == track::Effort::search) squares.push_back(square_of(k));
  if (squares.empty()) return;
  const auto quarter = squares.begin() + static_cast<std::ptrdiff_t>(squares.size() / kSearched);
  std::ranges::nth_element(squares, quarter);
  const float most = std::max(*quarter, kMostDistorted * kMostDistorted);
  for (std::size_t k = 0; k < efforts.size(); ++k)
    if (efforts[k] == track::Effort::search && square_of(k) > most) efforts[k] = track::Effort::neighbours;
}

TrackOptions tracker_options(TrackOptions options) {
  options.bending_in_sigma = options.automatic_order || options.refine.order != 1;
  return options;
}

/// Returns a sequence whose sigmas the epipolar distances check: the bends of a surface would count as
/// scatter between two cameras.
std::unique_ptr<track::Sequence> make_sequence(const TrackOptions& options, ImageView reference,
                                               const Roi& roi) {
  auto sequence = std::make_unique<track::Sequence>(options, reference, roi);
  sequence->leave_sigmas();
  return sequence;
}

}  // namespace

PairTracker::PairTracker(const StereoOptions& given, const CameraRig& rig, ImageView left, ImageView right,
                         const Roi& region, const std::stop_token& stop)
    : largest_epipolar_(given.largest_epipolar),
      options_(tracker_options(checked(given))),
      left_reference_(copy_of(left)),
      roi_(region),
      pool_(options_.threads),
      right_order_(options_.refine.order),
      right_(make_sequence(right_options(), left, region)),
      surface_(std::make_unique<Surface>(with_chosen(given), rig,
                                         std::make_shared<const Grid>(right_->grid()), left_reference_.view(),
                                         pool_)) {
  check_equal(left, right);
  check_size(left, rig, 0, "left");
  check_size(right, rig, 1, "right");
  right_->look_near([cameras = camera_pair_of(rig), size = right.size()](double x, double y, double spacing) {
    return epipolar_line(cameras, size, x, y, spacing);
  });
  Match across = match_references(right, stop);  // which chooses the order
  right_->look_near({});                         // the material moves
  right_sigma_factors_ = sigma_factors(across.field(), rig, pool_);
  multiply_sigmas(across.field(), right_sigma_factors_);
  reference_ = surface_->reference(std::move(across), right_order_);
  correct(rig, given.correct_rig);
  reference_.seconds.prepare += right_->prepare_seconds();
  refuse_foreign_calibration();
  Efforts efforts = efforts_of_found(kMarginInRight);
  leave_distorted(surface_->maps_across(), right_->options().refine.subset, efforts);
  right_->limit_effort(efforts);
  use_gpu();
}

PairTracker::~PairTracker() = default;

Efforts PairTracker::efforts_of_found(int margin) const {
  return efforts_for(reference_.field, track::Effort::search, margin);
}

StereoOptions PairTracker::with_chosen(StereoOptions given) const {
  given.track = right_->options();
  return given;
}

/// A search range is meant for the motion: the distance between both images of a point is far larger.
TrackOptions PairTracker::right_options() const {
  TrackOptions across = options_;
  across.search.reset();
  across.refine.order = right_order_;
  if (right_order_ == 2) across.bending_in_sigma = true;
  return across;
}

Match PairTracker::match_reference(Sequence& sequence, ImageView image, const std::stop_token& stop) const {
  return surface_->matched(sequence.measure(sequence.take(image), stop)->fetch(), right_order_);
}

/// Matches the right reference, with order 2 if the surface bends so much that order 1 is worse. Order 2
/// looks only where order 1 found something, and starts there.
Match PairTracker::match_references(ImageView image, const std::stop_token& stop) {
  constexpr double kMostBent = 0.1;    // share of the points
  constexpr double kLeastFound = 0.9;  // share of the points that order 1 finds
  Match first = match_reference(*right_, image, stop);
  if (right_order_ != 1 || options_.automatic_order || first.neighbours.bent <= kMostBent) return first;
  right_order_ = 2;
  auto quadratic = make_sequence(right_options(), left_reference_.view(), roi_);
  quadratic->start_from(*right_);
  quadratic->limit_effort(efforts_for(first.field(), track::Effort::neighbours, kMargin));
  Match second = match_reference(*quadratic, image, stop);
  const auto found = [](const Match& match) {
    return static_cast<double>(match.field().counts()[static_cast<int>(Status::ok)]);
  };
  if (found(second) < kLeastFound * found(first)) {
    right_order_ = 1;
    return first;
  }
  second.result.seconds += first.result.seconds;
  right_ = std::move(quadratic);
  return second;
}

void PairTracker::correct(const CameraRig& rig, bool is_wanted) {
  constexpr double kDoubtful = 0.05;  // px
  if (!is_wanted && !(reference_.epipolar_median > kDoubtful)) return;
  correction_ = surface_->correction_of(rig);
  if (!is_wanted) return;
  if (!correction_)
    throw UsageError(
        "The rig cannot be corrected: fewer than 20 points of the left reference were found in the right "
        "one.");
  if (!is_small(*correction_))
    throw UsageError("The rig cannot be corrected: the right camera would have to turn by " +
                     degrees_of(*correction_) +
                     " degrees, more than by an accident. Check that left and right are not swapped, or "
                     "calibrate again.");
  reference_ = surface_->reference_with(correction_->rig);
}

void PairTracker::refuse_foreign_calibration() const {
  constexpr std::int64_t kFewPoints = 20;
  const auto counts = reference_.field.counts();
  const std::int64_t matched = counts[static_cast<int>(Status::ok)] +
                               counts[static_cast<int>(Status::outlier)] +
                               counts[static_cast<int>(Status::epipolar)];
  if (matched < kFewPoints || !(reference_.epipolar_median > largest_epipolar_)) return;
  char distance[32];
  std::snprintf(distance, sizeof distance, "%.3g", reference_.epipolar_median);
  throw UsageError("The calibration does not belong to these images: their " + std::to_string(matched) +
                   " matches lie " + distance +
                   " px from their epipolar lines (median); a fitting one leaves some hundredths of a px. " +
                   (correction_ && explains(*correction_)
                        ? text_of(*correction_) +
                              " If that may be so, let the rig be corrected; otherwise calibrate again."
                        : "Check that left and right are not swapped, or calibrate again."));
}

/// Lets the first of the GPUs that match the images compute the surfaces, and match both images at once.
void PairTracker::use_gpu() {
  const std::string name = device(), kind = "cuda:";
  int ordinal = 0;
  if (!name.starts_with(kind)) return;
  std::from_chars(name.data() + kind.size(), name.data() + name.size(), ordinal);
  surface_->use_gpu(ordinal);
  left_worker_ = std::make_unique<core::Worker>();
}

std::unique_ptr<track::Sequence> PairTracker::make_left() const {
  auto sequence = make_sequence(options_, left_reference_.view(), roi_);
  sequence->limit_effort(efforts_of_found(kMargin));
  return sequence;
}

TakenPair PairTracker::take(ImageView left, ImageView right) {
  if (!left_) left_ = make_left();
  left_reference_ = {};
  // Both are taken before one is matched: an image of another size must not move one of the sequences on.
  TakenPair pair;
  pair.left = left_->take(left), pair.right = right_->take(right);
  return pair;
}

MatchedPair PairTracker::match(TakenPair pair, const std::stop_token& stop,
                               const std::function<TakenPair()>& next) {
  MatchedPair matched;
  const auto next_left = [&] { return next ? next().left : nullptr; };
  const auto next_right = [&] { return next ? next().right : nullptr; };
  const auto match_left = [&] { matched.left = left_->measure(std::move(pair.left), stop, next_left); };
  const auto match_right = [&] { matched.right = right_->measure(std::move(pair.right), stop, next_right); };
  if (!left_worker_) {
    match_left(), match_right();
    return matched;
  }
  std::future<void> left = left_worker_->submit(match_left);
  try {
    match_right();
  } catch (...) {
    left.wait();  // it uses variables of this function
    throw;
  }
  left.get();
  return matched;
}

StereoFrame PairTracker::finish(MatchedPair pair) {
  FrameResult left = pair.left->fetch(), right = pair.right->fetch();
  std::vector<std::byte> state = joined(left.state, right.state);
  multiply_sigmas(right.field, right_sigma_factors_);
  StereoFrame frame = surface_->frame(std::move(left), std::move(right));
  frame.state = std::move(state);
  return frame;
}

bool PairTracker::restore(std::span<const std::byte> state, const StereoTracker::ReadImage& read) {
  const auto parts = parts_of(state);
  if (!parts) return false;
  // The left sequence measures from the second pair on.
  const auto reader = [&](std::int64_t first, int camera) -> TrackStream::ReadFrame {
    if (!read) return {};
    return [&read, first, camera](std::int64_t k) { return read(first + k, camera); };
  };
  auto restored = make_left();
  if (!restored->restore((*parts)[0], reader(1, 0)) || !right_->restore((*parts)[1], reader(0, 1)))
    return false;
  left_ = std::move(restored);
  return true;
}

TrackOptions PairTracker::options() const {
  TrackOptions options = right_->options();
  options.refine.order = options_.refine.order;
  options.search = options_.search;
  return options;
}

}  // namespace dic::stereo

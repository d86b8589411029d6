#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/match.hpp>

namespace dic {
namespace {

/// Pixels around the searched range: the spline's memory of the cut decays by 0.43 per pixel, here below 1 %.
constexpr int kContext = 6;
constexpr int kSmallestSearch = 16;  ///< least search range, px, if it follows from the template's size
constexpr int kMostDoublings = 16;   ///< doublings of the range, which then covers every image

struct Window {
  ImageView image;
  int x = 0, y = 0;  ///< position of its top-left pixel in the whole image
};

/// The part of the image within `reach` px of a place, in x and in y.
Window around(ImageView image, double center_x, double center_y, double reach) {
  const auto clamp = [](double value, int size) {
    return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(size)));
  };
  const int left = clamp(std::floor(center_x - reach), image.width);
  const int top = clamp(std::floor(center_y - reach), image.height);
  Window window{image, left, top};
  window.image.width = clamp(std::ceil(center_x + reach) + 1, image.width) - left;
  window.image.height = clamp(std::ceil(center_y + reach) + 1, image.height) - top;
  window.image.data = static_cast<const std::byte*>(image.data) + top * image.row_bytes +
                      static_cast<std::ptrdiff_t>(left * size_of(image.type));
  return window;
}

Match moved(Match match, double x, double y) {
  match.x += x, match.y += y;
  match.center_x += x, match.center_y += y;
  return match;
}

}  // namespace

TemplateTracker::TemplateTracker(Matcher& matcher, std::optional<int> search)
    : matcher_(matcher), search_(search), tracks_(matcher.templates()) {
  if (search && *search < 1) throw UsageError("The search range of a track must be at least 1 px.");
}

std::vector<TrackedMatch> TemplateTracker::next(ImageView image, std::stop_token stop) {
  ++image_;
  std::vector<TrackedMatch> found;
  for (int k = 0; k < matcher_.templates(); ++k) {
    if (tracks_[k].empty()) {
      std::ranges::move(begin(k, image, stop), std::back_inserter(found));
      continue;
    }
    for (Track& track : tracks_[k]) found.push_back(follow(track, image, stop));
  }
  return found;
}

std::vector<TrackedMatch> TemplateTracker::begin(int template_index, ImageView image, std::stop_token stop) {
  MatchResult result = matcher_.find_template(template_index, image, stop);
  if (result.matches.empty()) return {{.template_index = template_index, .best_score = result.best_score}};
  std::vector<TrackedMatch> found;
  for (Match& match : result.matches) {
    match.image = image_;
    tracks_[template_index].push_back({.number = begun_, .first = match, .last = match});
    found.push_back(
        {.template_index = template_index, .track = begun_++, .match = match, .best_score = match.score});
  }
  return found;
}

TrackedMatch TemplateTracker::follow(Track& track, ImageView image, std::stop_token stop) {
  const Match& last = track.last;
  const int search = search_.value_or(std::max(kSmallestSearch, std::min(last.width, last.height) / 2));
  const double range = std::ldexp(search, std::min(track.lost, kMostDoublings));
  const MatchOptions& options = matcher_.options();
  const double largest =
      options.scale_range ? options.scale_range->max : *std::ranges::max_element(options.scales);
  const double scale = last.refined ? last.scale : largest;
  const double half_diagonal = scale * std::hypot(last.width, last.height) / 2;
  const Window window = around(image, last.center_x, last.center_y, half_diagonal + range + kContext);
  MatchResult result = matcher_.find_again(last, window.image, stop);
  TrackedMatch tracked{
      .template_index = last.template_index, .track = track.number, .best_score = result.best_score};
  if (result.matches.empty()) {
    ++track.lost;
    return tracked;
  }
  track.lost = 0;
  track.last = moved(result.matches.front(), window.x, window.y);
  track.last.image = image_;
  tracked.match = track.last;
  tracked.dx = track.last.center_x - track.first.center_x;
  tracked.dy = track.last.center_y - track.first.center_y;
  return tracked;
}

}  // namespace dic

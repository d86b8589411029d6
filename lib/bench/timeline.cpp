#include <algorithm>
#include <chrono>
#include <cmath>
#include <dic/draw.hpp>
#include <dic/error.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "draw/palette.hpp"
#include "draw/ticks.hpp"

namespace dic::bench {
namespace {

constexpr const char* kStages[] = {"decode", "copy",   "upload",   "prefilter", "search",
                                   "refine", "strain", "download", "write"};
constexpr int kFramesShown = 8;
constexpr int kWidth = 1200, kLeft = 90, kRight = 110, kTop = 60, kBottom = 60;  // px
constexpr double kFont = 12.5, kLargeFont = 15, kSmallFont = 8;
constexpr double kLane = 22, kThinLane = 9, kGap = 8;  // heights, px

using Time = StageSpan::Time;

double milliseconds(Time::duration span) { return 1e3 * std::chrono::duration<double>(span).count(); }

/// The part of a run that is drawn.
struct Window {
  Time begin;
  double length;  ///< ms

  double at(Time time) const { return std::clamp(milliseconds(time - begin), 0.0, length); }
};

struct Bar {
  std::size_t frame;
  double begin, end;  ///< ms
};

/// A row of bars that do not overlap.
using Lane = std::vector<Bar>;

const StageSpan* find(const FrameSummary& frame, const std::string& stage) {
  const auto found = std::ranges::find(frame.spans, stage, &StageSpan::stage);
  return found == frame.spans.end() ? nullptr : &*found;
}

/// Some frames around the middle of the run.
Window middle_window(const std::vector<FrameSummary>& frames) {
  std::vector<Time> written;
  for (const FrameSummary& frame : frames)
    if (const StageSpan* write = find(frame, "write")) written.push_back(write->end);
  check_timeline(std::ssize(written));
  const std::size_t first = (written.size() - kFramesShown) / 2;
  return {written[first], milliseconds(written[first + kFramesShown] - written[first])};
}

std::vector<Lane> lanes_of(const std::vector<FrameSummary>& frames, const std::string& stage,
                           const Window& window) {
  std::vector<Bar> bars;
  for (std::size_t k = 0; k < frames.size(); ++k)
    if (const StageSpan* span = find(frames[k], stage))
      if (const Bar bar{k, window.at(span->begin), window.at(span->end)}; bar.begin < bar.end)
        bars.push_back(bar);
  std::ranges::stable_sort(bars, {}, &Bar::begin);
  std::vector<Lane> lanes;
  for (const Bar& bar : bars) {
    const auto is_free = [&](const Lane& lane) { return lane.back().end <= bar.begin; };
    auto lane = std::ranges::find_if(lanes, is_free);
    if (lane == lanes.end()) lane = lanes.insert(lane, Lane{});
    lane->push_back(bar);
  }
  return lanes;
}

/// A stage and the position of its lanes.
struct Row {
  std::string stage;
  std::vector<Lane> lanes;
  double top, lane_height;

  double bottom() const { return top + static_cast<double>(lanes.size()) * lane_height; }
  double busy() const {
    double sum = 0;
    for (const Lane& lane : lanes)
      for (const Bar& bar : lane) sum += bar.end - bar.begin;
    return sum;
  }
};

std::vector<Row> rows_of(const std::vector<FrameSummary>& frames, const Window& window) {
  std::vector<Row> rows;
  double top = kTop;
  for (const char* stage : kStages) {
    Row row{stage, lanes_of(frames, stage, window), top, kLane};
    if (row.lanes.empty()) continue;
    if (row.lanes.size() > 1) row.lane_height = kThinLane;
    top = row.bottom() + kGap;
    rows.push_back(std::move(row));
  }
  return rows;
}

class Drawing {
 public:
  Drawing(const std::vector<FrameSummary>& frames, const Window& window)
      : window_(window),
        rows_(rows_of(frames, window)),
        bottom_(rows_.back().bottom()),
        canvas_(png_canvases()(kWidth, bottom_ + kBottom)) {}

  void write(const std::filesystem::path& path, const std::string& title) {
    text(title, {kLeft, 28}, kLargeFont);
    text("busy", {kWidth - kRight + 12, kTop - 8});
    draw_axis();
    for (const Row& row : rows_) draw(row);
    canvas_->write(path);
  }

 private:
  void text(const std::string& words, Canvas::Point at, double size = kFont,
            Canvas::Align align = Canvas::Align::left) {
    canvas_->text(words, at, size, draw::kInk, align);
  }

  double x_of(double ms) const { return kLeft + (kWidth - kLeft - kRight) * ms / window_.length; }

  void draw_axis() {
    const double power = std::pow(10, std::floor(std::log10(window_.length)));
    const double step = power / (window_.length / power < 2.5 ? 5 : window_.length / power < 5 ? 2 : 1);
    for (int k = 0; k * step <= window_.length; ++k) {
      const double x = x_of(k * step);
      const Canvas::Point ends[] = {{x, kTop}, {x, bottom_}};
      canvas_->polyline(ends, draw::kGridLine, 1);
      text(draw::short_number(k * step), {x, bottom_ + 18}, kFont, Canvas::Align::centre);
    }
    text("ms; numbers and colours: frames", {kLeft, bottom_ + 42});
  }

  void draw(const Row& row) {
    const double middle = (row.top + row.bottom()) / 2 + 4;
    text(row.stage, {kLeft - 10, middle}, kFont, Canvas::Align::right);
    for (std::size_t k = 0; k < row.lanes.size(); ++k)
      for (const Bar& bar : row.lanes[k]) draw(bar, row.top + static_cast<double>(k) * row.lane_height, row);
    const double lanes = static_cast<double>(row.lanes.size());
    std::string share = std::to_string(std::lround(100 * row.busy() / (lanes * window_.length))) + " %";
    if (row.lanes.size() > 1) share += " of " + std::to_string(row.lanes.size());
    text(share, {kWidth - kRight + 12, middle});
  }

  void draw(const Bar& bar, double top, const Row& row) {
    const double left = x_of(bar.begin), right = x_of(bar.end), bottom = top + row.lane_height - 2;
    const Canvas::Point corners[] = {{left, top}, {right, top}, {right, bottom}, {left, bottom}};
    canvas_->polygon(corners, draw::series_colour(bar.frame));
    const std::string number = std::to_string(bar.frame + 1);
    const double size = row.lanes.size() > 1 ? kSmallFont : kFont;
    if (canvas_->width_of(number, size) + 4 < right - left)
      canvas_->text(number, {(left + right) / 2, (top + bottom) / 2 + 0.4 * size}, size, draw::kPaper,
                    Canvas::Align::centre);
  }

  const Window window_;
  const std::vector<Row> rows_;
  const double bottom_;
  std::unique_ptr<Canvas> canvas_;
};

}  // namespace

void check_timeline(std::int64_t frames) {
  if (frames <= kFramesShown)
    throw UsageError("A timeline needs a longer sequence: " + std::to_string(kFramesShown + 1) +
                     " measured frames or more.");
}

void write_timeline(const std::filesystem::path& path, const std::vector<FrameSummary>& frames,
                    const std::string& title) {
  Drawing(frames, middle_window(frames)).write(path, title);
}

}  // namespace dic::bench

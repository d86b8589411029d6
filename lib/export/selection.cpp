#include "export/selection.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <filesystem>
#include <set>

namespace dic::exporting {
namespace {

std::vector<ResultArray> chosen_arrays(const Result& result, const std::vector<std::string>& names) {
  std::vector<ResultArray> arrays;
  for (const std::string& name : names) {
    if (result.array(name).components != 1)
      throw UsageError("The array " + name + " has several components: export u and v instead.");
    arrays.push_back(result.array(name));
  }
  if (!names.empty()) return arrays;
  std::ranges::copy_if(result.arrays(), std::back_inserter(arrays),
                       [](const ResultArray& array) { return array.components == 1; });
  // In the order of the schema: displacements, quality, strain.
  std::ranges::stable_sort(arrays, {}, [](const ResultArray& array) {
    return std::ranges::find(kFieldArrays, array.name, &FieldArray::name) - kFieldArrays.begin();
  });
  return arrays;
}

std::vector<int> chosen_frames(const Result& result, const std::vector<int>& numbers) {
  std::vector<int> frames;
  for (int f = 0; f < result.frame_count(); ++f)
    if (numbers.empty() || std::ranges::find(numbers, result.frame_numbers()[f]) != numbers.end())
      frames.push_back(f);
  for (const int number : numbers)
    if (std::ranges::none_of(frames, [&](int f) { return result.frame_numbers()[f] == number; }))
      throw UsageError("'" + result.path().string() + "' has no frame " + std::to_string(number) +
                       ": 1 is the first after the reference; a frame that could not be read is not there.");
  if (frames.empty()) throw UsageError("'" + result.path().string() + "' has no frames.");
  return frames;
}

template <typename T>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<int>& frames) {
  std::vector<T> some;
  for (const int f : frames) some.push_back(all[f]);
  return some;
}

}  // namespace

Selection::Selection(const Result& stored, const ExportJob& job)
    : result(stored), arrays(chosen_arrays(stored, job.arrays)), frames(chosen_frames(stored, job.frames)) {}

std::vector<double> Selection::frame_numbers() const {
  std::vector<double> numbers;
  for (const int f : frames) numbers.push_back(result.frame_numbers()[f]);
  return numbers;
}
std::vector<double> Selection::times() const { return chosen(result.times(), frames); }
std::vector<std::string> Selection::files() const { return chosen(result.frame_names(), frames); }

std::vector<double> Selection::x() const {
  std::vector<double> x;
  for (int i = 0; i < result.grid().nx; ++i) x.push_back(result.grid().x(i) * result.info().length_factor());
  return x;
}
std::vector<double> Selection::y() const {
  std::vector<double> y;
  for (int j = 0; j < result.grid().ny; ++j) y.push_back(result.grid().y(j) * result.info().length_factor());
  return y;
}

std::vector<std::size_t> Selection::nodes() const {
  std::vector<std::size_t> nodes;
  const auto& inside = result.grid().inside;
  for (std::size_t k = 0; k < inside.size(); ++k)
    if (inside[k] != 0) nodes.push_back(k);
  return nodes;
}

Position Selection::position(std::size_t node) const {
  const Grid& grid = result.grid();
  const double factor = result.info().length_factor();
  if (const auto& positions = result.positions())
    return {positions->x[node] * factor, positions->y[node] * factor};
  const std::size_t nx = grid.nx;
  return {grid.x(static_cast<int>(node % nx)) * factor, grid.y(static_cast<int>(node / nx)) * factor};
}

std::vector<std::string> Selection::stems() const {
  std::vector<std::string> stems;
  std::set<std::string> taken;
  for (const std::string& file : files()) {
    std::string stem = std::filesystem::path(file).stem().string();
    for (char& c : stem)
      if (static_cast<unsigned char>(c) < ' ' || c == '/') c = '_';
    const std::string first = stem.empty() ? "frame" : stem;
    stem = first;
    for (int number = 2; !taken.insert(stem).second; ++number) stem = first + "_" + std::to_string(number);
    stems.push_back(stem);
  }
  return stems;
}

NodeFrame::NodeFrame(const Selection& selection, int frame) {
  const Result& result = selection.result;
  u = result.values("u", frame), v = result.values("v", frame);
  exx = result.values("exx", frame), eyy = result.values("eyy", frame), exy = result.values("exy", frame);
  status = result.values<std::uint8_t>("status", frame);
}

void Steps::next() {
  if (stop_.stop_requested()) throw Cancelled("Interrupted: nothing was written.");
  if (progress_) progress_({"write", std::min(++done_, count_), count_, 0, 0});
}

}  // namespace dic::exporting

#include <array>
#include <charconv>
#include <cmath>

#include "core/number_text.hpp"
#include "export/mesh.hpp"
#include "export/selection.hpp"
#include "io/pending_file.hpp"
#include "io/text_rows.hpp"

namespace dic::exporting {
namespace {

void append_value(std::string& row, double value) {
  char number[40];
  const auto end = std::to_chars(number, number + sizeof number, value, std::chars_format::general, 10).ptr;
  row.append("; ").append(number, end);
}

/// A value in the header that crackpy reads as a number: "# time : value_element : 2.5".
std::string nodemap_header(const Selection& selection, std::size_t f, const std::string& stem) {
  const ResultInfo& info = selection.result.info();
  const bool in_space = is_surface(selection.result);
  const std::string unit = in_space ? "mm" : info.length_unit();
  std::string text =
      "# Process data:\n# specimen : " + stem + "\n# software : dic " + info.version +
      "\n# strain_measure : " + std::string(to_string(info.strain.measure)) + "\n# axes : x right, y up, " +
      (in_space ? "z towards the cameras" : "origin in the bottom left pixel") + "\n# SIGNALS:\n";
  if (selection.has_seconds())
    text += "# time : value_element : " + core::number_text(selection.times()[f]) + "\n";
  text += "# frame : value_element : " + core::number_text(selection.frame_numbers()[f]) + "\n# ID";
  for (const char* name : {"x_undef", "y_undef", "z_undef", "u", "v", "w"})
    text += std::string("; ") + name + " [" + unit + "]";
  return text + "; epsx [%]; epsy [%]; epsxy [1]; epseqv [%]\n";
}

/// Position and displacement of the nodes of a frame, y up.
class Motions {
 public:
  Motions(const Selection& selection, int frame) : selection_(selection) {
    if (is_surface(selection.result)) {
      for (const char* name : {"X", "Y", "Z", "U", "V", "W"})
        values_.push_back(selection.result.values(name, frame));
    } else {
      for (const char* name : {"u", "v"}) values_.push_back(selection.result.values(name, frame));
      const ResultInfo& info = selection.result.info();
      bottom_ = (info.image.height - 1) * info.length_factor();
    }
  }
  std::array<double, 6> at(std::size_t k) const {
    if (values_.size() == 6)
      return {values_[0][k], -values_[1][k], -values_[2][k], values_[3][k], -values_[4][k], -values_[5][k]};
    const Position at = selection_.position(k);
    return {at.x, bottom_ - at.y, 0.0, values_[0][k], -values_[1][k], 0.0};
  }

 private:
  const Selection& selection_;
  std::vector<std::vector<double>> values_;
  double bottom_ = 0;
};

/// Appends the row of a node, unless it has no strain.
void append_node(std::string& text, const NodeFrame& frame, const Motions& motions, std::size_t k) {
  const double exx = frame.exx[k], eyy = frame.eyy[k], exy = -frame.exy[k];
  if (!frame.is_ok(k) || std::isnan(exx)) return;
  const double von_mises = std::sqrt(exx * exx + eyy * eyy - exx * eyy + 3 * exy * exy);
  text += std::to_string(k + 1);
  for (const double value : motions.at(k)) append_value(text, value);
  for (const double value : {100 * exx, 100 * eyy, exy, 100 * von_mises}) append_value(text, value);
  text += '\n';
}

}  // namespace

/// The format of CrackPy (DLR) and of the exporter for GOM Aramis: y points up, strains along the axes in
/// percent, tensor shear without. CrackPy knows no status, so points that are not ok are left out.
void write_nodemaps(const std::filesystem::path& folder, const Selection& selection,
                    core::ThreadPool& threads, Steps& steps) {
  const std::vector<std::size_t> nodes = selection.nodes();
  const std::vector<std::string> stems = selection.stems();
  for (std::size_t f = 0; f < selection.frames.size(); ++f) {
    steps.next();
    const NodeFrame frame(selection, selection.frames[f]);
    const Motions motions(selection, selection.frames[f]);
    PendingText file(folder / (stems[f] + ".txt"));
    file.write(nodemap_header(selection, f, stems[f]));
    io::write_rows(file, std::ssize(nodes), threads,
                   [&](std::int64_t begin, std::int64_t end, std::string& text) {
                     for (std::int64_t row = begin; row < end; ++row)
                       append_node(text, frame, motions, nodes[row]);
                   });
    file.commit();
  }
}

}  // namespace dic::exporting

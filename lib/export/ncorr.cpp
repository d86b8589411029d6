#include <cmath>
#include <dic/error.hpp>
#include <functional>

#include "export/mat_file.hpp"
#include "export/selection.hpp"

namespace dic::exporting {
namespace {

/// Ncorr's grid covers the image from its first pixel on: values are 0 where its mask is 0.
class NcorrGrid {
 public:
  NcorrGrid(const Grid& grid, Size image)
      : grid_(grid),
        first_x_(grid.x0 % grid.step),
        first_y_(grid.y0 % grid.step),
        width_(static_cast<std::size_t>((image.width - 1 - first_x_) / grid.step + 1)),
        height_(static_cast<std::size_t>((image.height - 1 - first_y_) / grid.step + 1)) {}

  /// The pixel of its first node, from 0.
  std::vector<double> origin() const {
    return {static_cast<double>(first_x_), static_cast<double>(first_y_)};
  }
  std::size_t nodes() const { return width_ * height_; }

  MatVariable values(const NodeFrame& frame, const std::vector<double>& values, double factor) const {
    std::vector<double> all(nodes());
    for_each_ok(frame, [&](std::size_t node, std::size_t at) {
      all[at] = std::isnan(values[node]) ? 0 : values[node] * factor;
    });
    return mat_array(nullptr, {height_, width_}, all.data());
  }
  /// The nodes that are ok and have a value.
  MatVariable region(const NodeFrame& frame, const std::vector<double>& values) const {
    std::vector<std::uint8_t> mask(nodes());
    for_each_ok(frame,
                [&](std::size_t node, std::size_t at) { mask[at] = std::isnan(values[node]) ? 0 : 1; });
    MatStructs roi(nullptr, 1, {"type", "mask"});
    roi.set(0, "type", mat_text("load"));
    roi.set(0, "mask", mat_array(nullptr, {height_, width_}, mask.data(), MAT_F_LOGICAL));
    return roi.take();
  }

 private:
  /// use(index of the node, its index in MATLAB's order).
  void for_each_ok(const NodeFrame& frame, const std::function<void(std::size_t, std::size_t)>& use) const {
    for (int j = 0; j < grid_.ny; ++j)
      for (int i = 0; i < grid_.nx; ++i) {
        const std::size_t node = static_cast<std::size_t>(j) * grid_.nx + i;
        const std::size_t column = (grid_.x(i) - first_x_) / grid_.step,
                          row = (grid_.y(j) - first_y_) / grid_.step;
        if (grid_.inside[node] != 0 && frame.is_ok(node)) use(node, column * height_ + row);
      }
  }

  const Grid& grid_;
  int first_x_, first_y_;
  std::size_t width_, height_;
};

MatVariable images(const char* name, const std::vector<std::string>& files) {
  MatStructs all(name, files.size(), {"type", "gs", "name", "path", "roi"});
  for (std::size_t k = 0; k < files.size(); ++k) {
    all.set(k, "type", mat_text("file"));
    all.set(k, "gs", mat_empty());
    all.set(k, "name", mat_text(files[k]));
    all.set(k, "path", mat_text(""));
    all.set(k, "roi", mat_empty());
  }
  return all.take();
}

MatVariable displacement_info(const ResultInfo& info, const NcorrGrid& grid, int step) {
  MatStructs all(nullptr, 1, {"type", "radius", "spacing", "pixtounits", "units", "lenscoef", "origin"});
  all.set(0, "type", mat_text("regular"));
  const int radius = info.subset / 2;
  all.set(0, "radius", mat_number(radius));
  all.set(0, "spacing", mat_number(step - 1));  // pixels between two nodes
  all.set(0, "pixtounits", mat_number(info.length_factor()));
  all.set(0, "units", mat_text(info.length_unit() == "px" ? "pixels" : info.length_unit()));
  all.set(0, "lenscoef", mat_number(0));
  all.set(0, "origin", mat_array(nullptr, {1, 2}, grid.origin().data()));
  return all.take();
}

MatVariable strain_info(const ResultInfo& info) {
  MatStructs all(nullptr, 1, {"radius", "measure"});
  const int radius = info.strain.window / 2;
  all.set(0, "radius", mat_number(radius));
  all.set(0, "measure", mat_text(std::string(to_string(info.strain.measure))));
  return all.take();
}

}  // namespace

/// The file that Ncorr saves, as scripts read it: data_dic_save.displacements(k).plot_u_ref_formatted and so
/// on. Its regions of interest are structs here, in Ncorr objects of a class of its own.
void write_ncorr(const std::filesystem::path& path, const Selection& selection, Steps& steps) {
  const Result& result = selection.result;
  const ResultInfo& info = result.info();
  if (result.positions())
    throw UsageError(
        "Ncorr's files have points on a regular grid, which corrected coordinates are not: choose another "
        "format.");
  const NcorrGrid grid(result.grid(), info.image);
  const std::size_t count = selection.frames.size();
  if (grid.nodes() * count * (8 * sizeof(double)) > kLargestMatVariable)
    throw UsageError("The result is too large for a file of Ncorr: choose some frames.");
  MatStructs displacements(nullptr, count,
                           {"plot_u_dic", "plot_v_dic", "plot_corrcoef_dic", "roi_dic",
                            "plot_u_ref_formatted", "plot_v_ref_formatted", "roi_ref_formatted"});
  MatStructs strains(
      nullptr, count,
      {"plot_exx_ref_formatted", "plot_exy_ref_formatted", "plot_eyy_ref_formatted", "roi_ref_formatted"});
  const double to_px = 1 / info.length_factor();
  for (std::size_t f = 0; f < count; ++f) {
    steps.next();
    const NodeFrame frame(selection, selection.frames[f]);
    std::vector<double> difference = result.values("zncc", selection.frames[f]);
    for (double& value : difference) value = 2 * (1 - value);  // Ncorr's criterion: 0 is a perfect match
    displacements.set(f, "plot_u_dic", grid.values(frame, frame.u, to_px));
    displacements.set(f, "plot_v_dic", grid.values(frame, frame.v, to_px));
    displacements.set(f, "plot_corrcoef_dic", grid.values(frame, difference, 1));
    displacements.set(f, "roi_dic", grid.region(frame, frame.u));
    displacements.set(f, "plot_u_ref_formatted", grid.values(frame, frame.u, 1));
    displacements.set(f, "plot_v_ref_formatted", grid.values(frame, frame.v, 1));
    displacements.set(f, "roi_ref_formatted", grid.region(frame, frame.u));
    strains.set(f, "plot_exx_ref_formatted", grid.values(frame, frame.exx, 1));
    strains.set(f, "plot_exy_ref_formatted", grid.values(frame, frame.exy, 1));
    strains.set(f, "plot_eyy_ref_formatted", grid.values(frame, frame.eyy, 1));
    strains.set(f, "roi_ref_formatted", grid.region(frame, frame.exx));
  }
  MatStructs data("data_dic_save", 1, {"displacements", "dispinfo", "strains", "straininfo"});
  data.set(0, "displacements", displacements.take());
  data.set(0, "dispinfo", displacement_info(info, grid, result.grid().step));
  data.set(0, "strains", strains.take());
  data.set(0, "straininfo", strain_info(info));
  MatFile file(path);
  file.put(images("reference_save", {info.reference}));
  file.put(images("current_save", selection.files()));
  file.put(data.take());
  file.commit();
}

}  // namespace dic::exporting

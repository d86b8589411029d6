#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/synth_stereo.hpp>

#include "io/pending_file.hpp"
#include "synth/sequence_folder.hpp"

namespace dic {

using namespace synth;

namespace fs = std::filesystem;

namespace {

constexpr const char* kColumns =
    "frame,x,y,u,v,X,Y,Z,U,V,W,exx,eyy,exy,e1,e2,incidence,right_x,right_y,right_u,right_v,right_incidence,"
    "measurable\n";

std::string line_of(int frame, double x, double y, const StereoTruth& truth) {
  const StereoTruth::View &left = truth.views[0], &right = truth.views[1];
  const auto &p = truth.position_mm, &d = truth.displacement_mm;
  std::string line = std::to_string(frame);
  for (const double value : {x,
                             y,
                             left.current.x - x,
                             left.current.y - y,
                             p[0],
                             p[1],
                             p[2],
                             d[0],
                             d[1],
                             d[2],
                             truth.exx,
                             truth.eyy,
                             truth.exy,
                             truth.e1,
                             truth.e2,
                             left.incidence_deg,
                             right.reference.x,
                             right.reference.y,
                             right.current.x - right.reference.x,
                             right.current.y - right.reference.y,
                             right.incidence_deg})
    line += "," + decimal(value);
  return line + ',' + std::to_string(static_cast<int>(truth.measurable)) + '\n';
}

void write_truth(const fs::path& path, const StereoScene& scene, const StereoSynthOptions& options,
                 int step) {
  PendingText file(path);
  file.write(kColumns);
  for (int i = 0; i < static_cast<int>(options.image.amounts.size()); ++i)
    for (int y = 0; y < options.image.size.height; y += step)
      for (int x = 0; x < options.image.size.width; x += step)
        if (const StereoTruth truth = scene.truth(i, x, y); !std::isnan(truth.position_mm[2]))
          file.write(line_of(i, x, y, truth));
  file.commit();
}

}  // namespace

void synth_stereo_sequence(const StereoSynthOptions& options, const fs::path& directory, int truth_step) {
  if (truth_step < 1) throw UsageError("The step of the truth must be at least 1 px.");
  if (options.rig.cameras.size() != 2) throw UsageError("Left and right images need a rig of two cameras.");
  const StereoScene scene(options);
  make_empty_directory(directory);
  constexpr const char* kFolders[] = {"left", "right"};
  for (std::size_t camera = 0; camera < 2; ++camera) {
    make_empty_directory(directory / kFolders[camera]);
    for (int i = 0; i < static_cast<int>(options.image.amounts.size()); ++i)
      write_image(directory / kFolders[camera] / frame_name(i), scene.frame(camera, i));
  }
  write_camera_rig(directory / "stereo.json", options.rig);
  write_truth(directory / "truth.csv", scene, options, truth_step);
}

}  // namespace dic

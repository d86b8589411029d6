#include "synth_stereo.hpp"

#include <algorithm>

#include "commands.hpp"

namespace dic::app {
namespace {

/// An option with several numbers between commas.
CLI::Option* add_numbers(CLI::App& command, const std::string& name, std::vector<double>& target,
                         const std::string& type, const std::string& help) {
  const auto count = static_cast<int>(std::ranges::count(type, ',')) + 1;
  return command.add_option(name, target, help)
      ->type_name(type)
      ->delimiter(',')
      ->type_size(count)
      ->default_str("");
}

void add_rig(CLI::App& command, SynthStereoFlags& flags) {
  command
      .add_option("--calibration", flags.calibration,
                  "Calibration of both cameras, instead of --focal, --camera-angle and --distortion")
      ->type_name("FILE");
  command.add_option("--focal", flags.focal, "Focal length of both cameras, px");
  command.add_option("--camera-angle", flags.camera_angle, "Angle between the axes of the cameras, degrees");
  add_numbers(command, "--distortion", flags.distortion, "K1,K2,P1,P2,K3",
              "Distortion of both lenses, as in OpenCV");
  command
      .add_option("--distance", flags.distance,
                  "Distance of the specimen or target from the left camera along its axis, mm")
      ->default_str("500; with --calibration where the axes meet");
  command.add_flag("--facing-left", flags.faces_left,
                   "The specimen faces the left camera, not the middle between the cameras");
  command.add_option("--right-gain", flags.options.right_gain,
                     "Exposure of the right camera relative to the left one");
}

void add_specimen(CLI::App& command, SynthStereoFlags& flags) {
  StereoSynthOptions& o = flags.options;
  add_choice(command, "--surface", o.surface.kind, "Surface of the specimen");
  command.add_option("--surface-radius", o.surface.radius_mm, "cylinder, dome: radius, mm");
  add_numbers(command, "--wave", flags.wave, "AMPLITUDE,PERIOD",
              "wave: half of its height, and its period, mm")
      ->default_str("2,50");
  add_numbers(command, "--move", flags.move, "U,V,W", "Translation in the axes of the left camera, mm");
  add_numbers(command, "--turn", flags.turn, "X,Y,Z",
              "Rotation about the specimen's foremost point: vector in the axes of the left camera, degrees");
  add_numbers(command, "--stretch", flags.stretch, "UX,UY,VX,VY",
              "Displacement gradient in the axes of the specimen");
  command.add_option("--inflate", o.motion.inflation, "cylinder, dome: relative change of the radius");
  add_numbers(command, "--bulge", flags.bulge, "HEIGHT,WIDTH",
              "Gaussian bulge towards the cameras: height, standard deviation, mm");
  command.add_option("--contrast", o.contrast,
                     "0: grey follows the sum of blobs; larger: more black and white, like paint");
  command.add_option("--background", o.background, "Grey beside the specimen, in levels of 255");
}

void add_board(CLI::App& command, SynthStereoFlags& flags) {
  Target& target = flags.views.target;
  const auto set = [&flags](const std::string& name) { flags.board = from_name<TargetPattern>(name); };
  command
      .add_option_function<std::string>("--board", set,
                                        "Views of a target for calibration, instead of a specimen")
      ->check(CLI::IsMember(names_of<TargetPattern>()))
      ->default_str("");
  command.add_option("--columns", target.columns, "Target: inner corners, circles or squares in a row");
  command.add_option("--rows", target.rows, "Target: inner corners, circles or squares in a column");
  command.add_option(
      "--square", target.square_mm,
      "Target: side of a square; circles: distance between neighbours; acircles: distance between rows; mm");
  command.add_option("--marker", target.marker_mm, "charuco: side of a marker, mm");
  command.add_option("--dictionary", target.dictionary, "charuco: dictionary of the markers");
  command.add_option("--lens-blur", flags.views.blur_px, "Target: standard deviation of the lens's blur, px");
}

void set_numbers(const std::vector<double>& from, const std::vector<double*>& to) {
  if (from.empty()) return;
  for (std::size_t k = 0; k < to.size(); ++k) *to[k] = from.at(k);
}

CameraRig rig_of(const SynthStereoFlags& flags, SynthOptions& image) {
  if (!flags.calibration.empty()) {
    CameraRig rig = read_camera_rig(flags.calibration, image.size);
    image.size = rig.cameras.front().camera.image;
    return rig;
  }
  CameraRig rig = convergent_rig(image.size, flags.focal, flags.distance.value_or(500), flags.camera_angle);
  for (RigCamera& camera : rig.cameras) {
    Lens& lens = *camera.camera.lens;
    set_numbers(flags.distortion, {&lens.k1, &lens.k2, &lens.p1, &lens.p2, &lens.k3});
  }
  return rig;
}

double distance_of(const SynthStereoFlags& flags, const CameraRig& rig) {
  if (flags.distance) return *flags.distance;
  return flags.calibration.empty() ? 500 : convergence_distance(rig);
}

void set_motion(const SynthStereoFlags& flags, StereoSynthOptions& o) {
  SpecimenMotion& m = o.motion;
  set_numbers(flags.wave, {&o.surface.amplitude_mm, &o.surface.period_mm});
  set_numbers(flags.move, {&m.translation_mm[0], &m.translation_mm[1], &m.translation_mm[2]});
  set_numbers(flags.turn, {&m.rotation_deg[0], &m.rotation_deg[1], &m.rotation_deg[2]});
  set_numbers(flags.stretch, {&m.ux, &m.uy, &m.vx, &m.vy});
  set_numbers(flags.bulge, {&m.bulge_mm, &m.bulge_width_mm});
}

}  // namespace

void add_synth_stereo(CLI::App& command, SynthStereoFlags& flags) {
  command.option_defaults()->group("Two cameras");
  CLI::Option* stereo =
      command.add_flag("--stereo", flags.on, "Images of a specimen as two cameras see it, and truth in 3-D");
  const auto added_by = [&](const auto& add) {
    const std::size_t before = command.get_options().size();
    add(command, flags);
    std::vector<CLI::Option*> added = command.get_options();
    added.erase(added.begin(), added.begin() + static_cast<std::ptrdiff_t>(before));
    for (CLI::Option* option : added) option->needs(stereo);
    return added;
  };
  added_by(add_rig);
  const std::vector<CLI::Option*> of_specimen = added_by(add_specimen), of_board = added_by(add_board);
  CLI::Option* board = command.get_option("--board");
  for (CLI::Option* option : of_specimen) option->excludes(board);
  for (CLI::Option* option : of_board)
    if (option != board) option->needs(board);
}

void write_synth_stereo(SynthStereoFlags& flags, const SynthOptions& image, const std::string& output,
                        int truth_step) {
  StereoSynthOptions& o = flags.options;
  o.image = image;
  o.rig = rig_of(flags, o.image);
  const double distance = distance_of(flags, o.rig);
  if (flags.board) {
    BoardSynthOptions& views = flags.views;
    views.image = o.image;
    views.rig = o.rig;
    views.right_gain = o.right_gain;
    views.target.pattern = *flags.board;
    views.poses =
        board_poses(o.rig, views.target, distance, static_cast<int>(image.amounts.size()), image.seed);
    synth_board_sequence(views, output);
    return;
  }
  o.pose = flags.faces_left ? facing_first(distance) : facing_middle(o.rig, distance);
  set_motion(flags, o);
  synth_stereo_sequence(o, output, truth_step);
}

}  // namespace dic::app

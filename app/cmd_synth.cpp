#include <dic/camera.hpp>
#include <dic/synth.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "commands.hpp"
#include "synth_stereo.hpp"

namespace dic::app {
namespace {

constexpr const char* kSynthExamples =
    "Options give the motion of the last frame, which is reached in equal steps from frame 0, the "
    "reference.\n"
    "Examples:\n"
    "  dic synth -o shift --u 0.3 --noise 2                            a shift by 0.3 px\n"
    "  dic synth -o stretch --motion affine --ux 0.02 --frames 11      2 % stretch in 10 steps\n"
    "  dic synth -o star --motion star --amplitude 0.5 --period-min 10 spatial resolution\n"
    "  dic synth -o plate --motion hole --radius 60 --vy 0.01          a plate with a hole, pulled along y\n"
    "  dic synth -o disc --motion bodies --body 256,256,150,0,0,20     a disc that turns in a still field\n"
    "  dic synth -o pair --stereo --move 3,-2,4                        a plane seen by two cameras\n"
    "  dic synth -o tube --stereo --surface cylinder --inflate 0.01 --camera-angle 30\n"
    "  dic synth -o views --stereo --board checkerboard                15 views of a target for calibration";

struct SynthCommand {
  SynthOptions options;
  std::string output, camera;
  int frames = 2;
  int truth_step = 5;
  std::optional<double> cx, cy, crack_y;
  std::vector<double> bodies;  ///< six numbers per body
  SynthStereoFlags stereo;
};

/// Options that two cameras do not have.
constexpr const char* kOneCamera[] = {
    "--motion",       "--u",          "--v",          "--ux",          "--uy",
    "--vx",           "--vy",         "--angle",      "--cx",          "--cy",
    "--amplitude",    "--period-min", "--period-max", "--length",      "--slip",
    "--textured-gap", "--radius",     "--body",       "--crack-y",     "--camera",
    "--blur",         "--glare",      "--repeat",     "--fill-factor", "--line-jitter"};

void add_faults(CLI::App& command, SynthFaults& faults) {
  command.add_option("--repeat", faults.repeat,
                     "Distance at which the texture repeats itself along both axes, px; 0 = never");
  command.add_option("--fill-factor", faults.fill_factor,
                     "dots: share of a pixel that is sensitive to light, in its middle");
  command.add_option("--line-jitter", faults.line_jitter,
                     "Displacement of each row along x, in every frame anew (standard deviation), px");
  command.add_flag("--correlated-noise", faults.correlated_noise,
                   "Neighbouring pixels share noise, as after a filter of 3x3 px");
  command.add_option("--line-pattern", faults.line_pattern,
                     "Grey that each row and each column adds in every frame (standard deviation), in levels "
                     "of 255");
  command.add_option("--defective", faults.defective,
                     "Share of the pixels that are always black (a third) or white");
  command.add_option("--median", faults.median, "Side of a median filter, px; 0 = none");
  command.add_flag("--two-valued", faults.two_valued, "Only black and white");
  command.add_option("--pedestal", faults.pedestal, "Added to every value of the files");
}

void add_image(CLI::App& command, SynthOptions& options) {
  command.add_option("--width", options.size.width, "Width, px")->default_str("512; with --stereo 1000");
  command.add_option("--height", options.size.height, "Height, px")->default_str("512; with --stereo 800");
  command.add_option("--bits", options.bits, "Bits of a grey value: 8, 12 (in files of 16) or 16")
      ->check(CLI::IsMember({8, 12, 16}));
  add_choice(command, "--texture", options.texture,
             "blobs: speckle; dots: sharp printed dots; lattice: rows and columns; gradient: no texture");
  command.add_option("--sigma", options.blob_sigma, "Standard deviation of a blob of the speckle, px");
  command.add_option("--size-spread", options.size_spread, "Sizes vary from sigma / this to sigma * this");
  command.add_option("--density", options.density, "Blobs per px^2")
      ->default_str("1 / (2 sigma)^2; dots: 4, lattice: 6 sigma");
  command.add_option("--grey-min", options.grey_min, "Darkest grey, in levels of 255");
  command.add_option("--grey-max", options.grey_max, "Brightest grey, in levels of 255");
  command.add_option("--noise", options.noise, "Standard deviation of the noise, in levels of 255")
      ->default_str("0; with --stereo 1");
  command
      .add_option("--reference-noise", options.reference_noise,
                  "Standard deviation of the noise of frame 0, in levels of 255")
      ->default_str("as --noise");
  command.add_option("--full-well", options.full_well, "Shot noise: electrons that make white; 0 = none");
  command.add_option("--blur", options.blur, "Defocus of the last frame (standard deviation), px");
  command.add_option("--light-min", options.light_min,
                     "Light at the left edge, as a fraction of that at the right edge");
  command.add_option("--glare", options.glare, "Approximate fraction of the image that a glare saturates");
  command.add_flag("--unrelated", options.unrelated,
                   "Show another specimen in the frames after the reference");
  command.add_option("--gain", options.gain,
                     "Factor of the grey levels of the last frame (change of lighting)");
  command.add_option("--offset", options.offset,
                     "Offset of the grey levels of the last frame, in levels of 255");
  add_faults(command, options.faults);
  command.add_option("--seed", options.seed, "Seed of speckle and noise");
}

void add_motion(CLI::App& command, SynthCommand& flags) {
  Motion& motion = flags.options.motion;
  add_choice(command, "--motion", motion.kind, "Kind of motion");
  command.add_option("--u", motion.u,
                     "translation, affine, bodies (background): displacement to the right, px");
  command.add_option("--v", motion.v, "translation, affine, bodies (background): displacement downwards, px");
  command.add_option("--ux", motion.ux, "affine: du/dx");
  command.add_option("--uy", motion.uy, "affine: du/dy");
  command.add_option("--vx", motion.vx, "affine: dv/dx");
  command.add_option("--vy", motion.vy, "affine: dv/dy; hole: strain along y far from the hole");
  command.add_option(
      "--angle", motion.angle_deg,
      "rotation: angle; crack: angle to the horizontal; degrees, positive from x (right) to y (down)");
  command.add_option("--cx", flags.cx, "affine, rotation, ramp, crack, hole: centre, px")
      ->default_str("the middle");
  command.add_option("--cy", flags.cy, "affine, rotation, star, hole: centre, px")->default_str("the middle");
  command.add_option(
      "--amplitude", motion.amplitude,
      "star: amplitude of v; chirp: amplitude of u; ramp: rise of u; crack: half of the opening; px");
  command.add_option("--period-min", motion.period_min, "star, chirp: period at the right edge, px");
  command.add_option("--period-max", motion.period_max, "star, chirp: period at the left edge, px");
  command.add_option("--length", motion.length, "ramp: length of the rise, px");
  command.add_option("--slip", motion.slip, "crack: half of the slip along the crack, px");
  command.add_flag("--textured-gap", motion.textured_gap, "crack, hole: the gap has a texture");
  command.add_option("--radius", motion.radius, "hole: radius, px");
  command.add_option("--body", flags.bodies, "bodies: a disc in front of the background; may be repeated")
      ->type_name("X,Y,RADIUS,U,V,DEGREES")
      ->delimiter(',')
      ->type_size(6)
      ->expected(-1);
  command.add_option("--crack-y", flags.crack_y, "crack: y of the crack, px")->default_str("the middle");
}

void set_amounts(SynthOptions& options, int frames) {
  options.amounts = {0};
  for (int i = 1; i < frames; ++i) options.amounts.push_back(static_cast<double>(i) / (frames - 1));
}

/// Values that two cameras have unless the command line gives others.
void use_stereo_defaults(const CLI::App& command, SynthCommand& flags) {
  const SynthOptions usual = StereoSynthOptions().image;
  if (command.count("--width") == 0) flags.options.size.width = usual.size.width;
  if (command.count("--height") == 0) flags.options.size.height = usual.size.height;
  if (command.count("--noise") == 0) flags.options.noise = usual.noise;
  if (command.count("--frames") == 0 && flags.stereo.board) flags.frames = kUsualViews;
}

void write_stereo(const CLI::App& command, SynthCommand& flags) {
  use_stereo_defaults(command, flags);
  set_amounts(flags.options, flags.frames);
  write_synth_stereo(flags.stereo, flags.options, flags.output, flags.truth_step);
  std::cout << "Wrote " << flags.frames << (flags.stereo.board ? " views" : " pairs")
            << ", stereo.json and truth.csv to " << printable(flags.output) << " (seed " << flags.options.seed
            << ").\n";
}

void run_synth(SynthCommand& flags) {
  SynthOptions& options = flags.options;
  options.motion.cx = flags.cx.value_or((options.size.width - 1) / 2.0);
  options.motion.cy = flags.cy.value_or((options.size.height - 1) / 2.0);
  options.motion.crack_y = flags.crack_y.value_or((options.size.height - 1) / 2.0);
  options.motion.width = options.size.width;
  for (std::size_t k = 0; k + 6 <= flags.bodies.size(); k += 6) {
    const double* b = &flags.bodies[k];
    options.motion.bodies.push_back({b[0], b[1], b[2], b[3], b[4], b[5]});
  }
  set_amounts(options, flags.frames);
  if (!flags.camera.empty()) options.camera = read_camera(flags.camera);
  synth_sequence(options, flags.output, flags.truth_step, command_line());
  std::cout << "Wrote " << flags.frames << " frames, truth.csv and truth.h5 to " << printable(flags.output)
            << " (seed " << options.seed << ").\n";
}

}  // namespace

void add_synth(CLI::App& app) {
  auto flags = std::make_shared<SynthCommand>();
  CLI::App* command =
      app.add_subcommand("synth", "Make speckle images with exactly known motion, and the true fields");
  command->option_defaults()->always_capture_default();
  command->add_option("-o,--output", flags->output, "Folder of the frames and the true fields; new or empty")
      ->type_name("DIR")
      ->required();
  command->add_option("--frames", flags->frames, "Number of frames, including the reference")
      ->default_str("2; with --board 15 views")
      ->check(CLI::Range(1, 10000));
  add_image(*command, flags->options);
  add_motion(*command, *flags);
  command
      ->add_option(
          "--camera", flags->camera,
          "Camera file whose distortion and perspective the images have; motion and texture are in its plane")
      ->type_name("FILE");
  command->add_option("--truth-step", flags->truth_step, "Distance between the points of the true fields, px")
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", flags->options.threads, "CPU threads; 0 = one per core")
      ->check(CLI::NonNegativeNumber);
  add_synth_stereo(*command, flags->stereo);
  for (const char* name : kOneCamera) command->get_option(name)->excludes("--stereo");
  command->footer(kSynthExamples);
  command->callback([flags, command] {
    if (flags->stereo.on)
      write_stereo(*command, *flags);
    else
      run_synth(*flags);
  });
}

}  // namespace dic::app

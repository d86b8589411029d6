#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <dic/camera_rig.hpp>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <dic/refine_rig.hpp>
#include <iomanip>
#include <opencv2/calib3d.hpp>
#include <random>
#include <sstream>

// Tests stereo files and the calibrations of other programs: one rig, written in each format by this test.
namespace dic {
namespace {

namespace fs = std::filesystem;

constexpr Size kImage = {1200, 900};
const Lens kLeft = {2410.5, 2412.25, 611.75, 437.5, -0.13, 0.21, 0.0007, -0.0009, 0.05};
const Lens kRight = {2395.25, 2399.5, 589.5, 461.125, -0.12, 0.17, -0.0004, 0.0011, -0.02};
constexpr double kAlpha = 1.25, kBeta = 22.5, kGamma = -2.75;  // degrees
const cv::Vec3d kShift = {-181.125, 3.5, 41.25};

cv::Matx33d axis_rotation(int axis, double degrees) {
  cv::Vec3d turn;
  turn[axis] = degrees * CV_PI / 180;
  cv::Matx33d matrix;
  cv::Rodrigues(turn, matrix);
  return matrix;
}

cv::Matx33d zyx(double alpha, double beta, double gamma) {
  return axis_rotation(2, gamma) * axis_rotation(1, beta) * axis_rotation(0, alpha);
}

const cv::Matx33d kTurn = zyx(kAlpha, kBeta, kGamma);

CameraRig truth() {
  CameraRig rig;
  rig.cameras.resize(2);
  rig.cameras[0].camera = {kImage, kLeft, {}};
  rig.cameras[1].camera = {kImage, kRight, {}};
  std::copy(kTurn.val, kTurn.val + 9, rig.cameras[1].rotation.begin());
  std::copy(kShift.val, kShift.val + 3, rig.cameras[1].translation_mm.begin());
  return rig;
}

template <typename Numbers>
std::string list(const Numbers& numbers, const char* separator = ", ") {
  std::ostringstream text;
  text << std::setprecision(17);
  bool is_first = true;
  for (const double number : numbers) {
    text << (is_first ? "" : separator) << number;
    is_first = false;
  }
  return text.str();
}

std::string list(const cv::Matx33d& m) { return list(std::vector<double>(m.val, m.val + 9)); }
std::string text_of(double number) { return list(std::vector<double>{number}); }

void expect_lens(const Lens& found, const Lens& wanted) {
  EXPECT_NEAR(found.fx, wanted.fx, 1e-9);
  EXPECT_NEAR(found.fy, wanted.fy, 1e-9);
  EXPECT_NEAR(found.cx, wanted.cx, 1e-9);
  EXPECT_NEAR(found.cy, wanted.cy, 1e-9);
  EXPECT_EQ(found.k1, wanted.k1);
  EXPECT_EQ(found.k2, wanted.k2);
  EXPECT_EQ(found.k3, wanted.k3);
  EXPECT_EQ(found.p1, wanted.p1);
  EXPECT_EQ(found.p2, wanted.p2);
  EXPECT_EQ(found.skew, wanted.skew);
}

void expect_same(const CameraRig& found, const CameraRig& wanted) {
  ASSERT_EQ(found.cameras.size(), 2u);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(found.cameras[k].camera.image, wanted.cameras[k].camera.image);
    expect_lens(*found.cameras[k].camera.lens, *wanted.cameras[k].camera.lens);
    for (std::size_t i = 0; i < 9; ++i)
      EXPECT_NEAR(found.cameras[k].rotation[i], wanted.cameras[k].rotation[i], 1e-12);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(found.cameras[k].translation_mm[i], wanted.cameras[k].translation_mm[i], 1e-9);
  }
}

class Rig : public testing::Test {
 protected:
  ~Rig() override { fs::remove(path_); }
  CameraRig read(const std::string& text, Size image = kImage) const {
    write_text_file(path_, text);
    return read_camera_rig(path_, image);
  }
  std::string refused(const std::string& text, Size image = kImage) const {
    try {
      read(text, image);
    } catch (const FileError& error) {
      return error.what();
    }
    ADD_FAILURE() << "taken: " << text.substr(0, 200);
    return {};
  }
  fs::path path_ =
      fs::temp_directory_path() / ("dic_rig_" + std::to_string(getpid()) + "_" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::string opencv_text() {
  const auto matrix = [](const std::string& name, int rows, int columns, const std::string& data) {
    return name + ": !!opencv-matrix\n   rows: " + std::to_string(rows) +
           "\n   cols: " + std::to_string(columns) + "\n   dt: d\n   data: [ " + data + " ]\n";
  };
  const auto k = [](const Lens& l) {
    return list(std::vector{l.fx, l.skew, l.cx, 0.0, l.fy, l.cy, 0.0, 0.0, 1.0});
  };
  const auto d = [](const Lens& l) { return list(std::vector{l.k1, l.k2, l.p1, l.p2, l.k3}); };
  return "%YAML:1.0\n---\nimage_width: 1200\nimage_height: 900\n" + matrix("M1", 3, 3, k(kLeft)) +
         matrix("D1", 1, 5, d(kLeft)) + matrix("M2", 3, 3, k(kRight)) + matrix("D2", 5, 1, d(kRight)) +
         matrix("R", 3, 3, list(kTurn)) +
         matrix("T", 3, 1, list(std::vector<double>(kShift.val, kShift.val + 3)));
}

/// A world that is neither camera's: VIC-3D's poses lead from there to each camera.
std::string vic_text(double skew) {
  const double angles[] = {178.5, -11.25, 0.75};
  const cv::Vec3d shift(90.5, -1.25, 12.75);
  const cv::Matx33d left = zyx(angles[0], angles[1], angles[2]), right = kTurn * left;
  const cv::Vec3d moved = kTurn * shift + kShift;
  const double beta = std::asin(-right(2, 0)), alpha = std::atan2(right(2, 1), right(2, 2));
  const double gamma = std::atan2(right(1, 0), right(0, 0));
  const auto camera = [&](int id, const Lens& l, const std::vector<double>& pose) {
    return "<camera id=\"" + std::to_string(id) + "\">" +
           list(std::vector{l.cx, l.cy, l.fx, l.fy, skew, l.k1, l.k2, l.k3}, " ") + "<orientation>" +
           list(pose, " ") + "</orientation>\n</camera>\n";
  };
  constexpr double kDegrees = 180 / CV_PI;
  return "<?xml version=\"1.0\"?>\n<!DOCTYPE vpml>\n<project dir=\"C:/a>b\">\n<!-- <camera> "
         "-->\n<calibration "
         "lri='calibration'>" +
         camera(0, kLeft, {angles[0], angles[1], angles[2], shift[0], shift[1], shift[2]}) +
         camera(1, kRight,
                {alpha * kDegrees, beta * kDegrees, gamma * kDegrees, moved[0], moved[1], moved[2]}) +
         "</calibration>\n</project>\n";
}

CameraRig without_tangential(double skew) {
  CameraRig rig = truth();
  for (RigCamera& camera : rig.cameras) camera.camera.lens->p1 = camera.camera.lens->p2 = 0;
  for (RigCamera& camera : rig.cameras) camera.camera.lens->skew = skew;
  return rig;
}

std::string dice_camera(int id, const Lens& l, const cv::Matx33d& turn, const cv::Vec3d& shift) {
  std::string text = "<ParameterList name=\"CAMERA " + std::to_string(id) + "\">\n";
  const auto add = [&](const std::string& name, const std::string& value) {
    text += "<Parameter name=\"" + name + "\" type=\"double\" value=\"" + value + "\" />\n";
  };
  add("CX", text_of(l.cx)), add("CY", text_of(l.cy)), add("FX", text_of(l.fx)), add("FY", text_of(l.fy));
  add("K1", text_of(l.k1)), add("K2", text_of(l.k2)), add("K3", text_of(l.k3));
  add("P1", text_of(l.p1)), add("P2", text_of(l.p2));
  add("LENS_DISTORTION_MODEL", "OPENCV_LENS_DISTORTION"), add("IMAGE_HEIGHT_WIDTH", "{ 900, 1200 }");
  add("TX", text_of(shift[0])), add("TY", text_of(shift[1])), add("TZ", text_of(shift[2]));
  text += "<ParameterList name=\"rotation_3x3_matrix\">\n";
  for (int row = 0; row < 3; ++row)
    add("ROW " + std::to_string(row),
        "{ " + list(std::vector{turn(row, 0), turn(row, 1), turn(row, 2)}) + " }");
  return text + "</ParameterList>\n</ParameterList>\n";
}

std::string dice_text() {
  return "<ParameterList>\n<!-- <ParameterList name=\"CAMERA 0\"> -->\n" +
         dice_camera(0, kLeft, cv::Matx33d::eye(), {}) + dice_camera(1, kRight, kTurn, kShift) +
         "</ParameterList>\n";
}

std::string named_text(const char* separator, bool is_matchid) {
  std::string text;
  const auto add = [&](const std::string& name, double value) {
    text += name + separator + text_of(value) + "\n";
  };
  int camera = 0;
  for (const Lens& l : {kLeft, kRight}) {
    const std::string at = (is_matchid ? "Cam" : "cam") + std::to_string(camera++) + "_";
    const auto full = [&](const std::string& name, const std::string& other, const char* unit) {
      return at + (is_matchid ? name + (*unit ? " [pixels]" : "") : other + unit);
    };
    add(full("Fx", "fx", "_px"), l.fx), add(full("Fy", "fy", "_px"), l.fy), add(full("Fs", "fs", "_px"), 0);
    add(full("Cx", "cx", "_px"), l.cx), add(full("Cy", "cy", "_px"), l.cy);
    add(full("Kappa 1", "k1", ""), l.k1), add(full("Kappa 2", "k2", ""), l.k2);
    add(full("Kappa 3", "k3", ""), l.k3), add(full("P1", "p1", ""), l.p1), add(full("P2", "p2", ""), l.p2);
  }
  const auto pose = [&](const std::string& name, const char* unit) {
    return is_matchid ? name + " [" + unit + "]"
                      : std::string(1, static_cast<char>(name[0] + 32)) + name.substr(1) + "_" + unit;
  };
  add(pose("Tx", "mm"), kShift[0]), add(pose("Ty", "mm"), kShift[1]), add(pose("Tz", "mm"), kShift[2]);
  add(pose("Theta", "deg"), kAlpha), add(pose("Phi", "deg"), kBeta), add(pose("Psi", "deg"), kGamma);
  return text;
}

std::string opencorr_text(const cv::Vec3d& turn) {
  std::string text = "name,left,right\n";
  const auto add = [&](const std::string& name, double a, double b) {
    text += name + "," + text_of(a) + "," + text_of(b) + "\n";
  };
  add("Fx", kLeft.fx, kRight.fx), add("Fy", kLeft.fy, kRight.fy), add("Fs", 0, 0);
  add("Cx", kLeft.cx, kRight.cx), add("Cy", kLeft.cy, kRight.cy);
  add("K1", kLeft.k1, kRight.k1), add("K2", kLeft.k2, kRight.k2), add("K3", kLeft.k3, kRight.k3);
  add("P1", kLeft.p1, kRight.p1), add("P2", kLeft.p2, kRight.p2);
  add("Tx", 0, kShift[0]), add("Ty", 0, kShift[1]), add("Tz", 0, kShift[2]);
  add("Rx", 0, turn[0]), add("Ry", 0, turn[1]), add("Rz", 0, turn[2]);
  return text;
}

std::string matlab_text(bool is_new) {
  const auto rows = [](const cv::Matx33d& m) {
    std::string text = "[";
    for (int i = 0; i < 3; ++i) text += (i ? ",[" : "[") + list(std::vector{m(i, 0), m(i, 1), m(i, 2)}) + "]";
    return text + "]";
  };
  const auto camera = [&](const Lens& l) {
    const cv::Matx33d k(l.fx, 0, l.cx + 1, 0, l.fy, l.cy + 1, 0, 0, 1);
    return std::string("{\"RadialDistortion\":[") + list(std::vector{l.k1, l.k2, l.k3}) +
           "],\"TangentialDistortion\":[" + list(std::vector{l.p1, l.p2}) + "],\"ImageSize\":[900,1200]," +
           (is_new ? "\"K\":" + rows(k) : "\"IntrinsicMatrix\":" + rows(k.t())) + "}";
  };
  const std::string shift = "[" + list(std::vector<double>(kShift.val, kShift.val + 3)) + "]";
  return "{\"CameraParameters1\":" + camera(kLeft) + ",\"CameraParameters2\":" + camera(kRight) +
         (is_new ? ",\"PoseCamera2\":{\"R\":" + rows(kTurn) + ",\"Translation\":" + shift + "}"
                 : ",\"RotationOfCamera2\":" + rows(kTurn.t()) + ",\"TranslationOfCamera2\":" + shift) +
         ",\"WorldUnits\":\"mm\"}";
}

std::vector<double> dice_numbers(bool has_matrix, double skew) {
  std::vector<double> numbers;
  for (const Lens& l : {kLeft, kRight})
    numbers.insert(numbers.end(), {l.cx, l.cy, l.fx, l.fy, skew, l.k1, l.k2, l.k3});
  if (has_matrix)
    numbers.insert(numbers.end(), kTurn.val, kTurn.val + 9);
  else
    numbers.insert(numbers.end(), {kAlpha, kBeta, kGamma});
  numbers.insert(numbers.end(), kShift.val, kShift.val + 3);
  return numbers;
}

TEST_F(Rig, IsTheSameInEveryFormat) {
  cv::Vec3d turn;
  cv::Rodrigues(kTurn, turn);
  expect_same(read(opencv_text()), truth());
  expect_same(read(dice_text()), truth());
  expect_same(read(named_text(";", true)), truth());
  expect_same(read(named_text(",", false)), truth());
  expect_same(read(opencorr_text(turn)), truth());
  expect_same(read(opencorr_text({kAlpha, kBeta, kGamma})), truth());
  expect_same(read(matlab_text(false)), truth());
  expect_same(read(matlab_text(true)), truth());
  expect_same(read(vic_text(1.75)), without_tangential(1.75));
  expect_same(read("# a comment\n" + list(dice_numbers(false, -2), " # cx\n")), without_tangential(-2));
  expect_same(read(list(dice_numbers(true, 0), "\n")), without_tangential(0));
  auto more = dice_numbers(false, 0);  // the pose of another world
  more.insert(more.end(), {179.5, 9, 0, -63, -0.3, 18});
  expect_same(read(list(more, "\n")), without_tangential(0));
  expect_same(read(camera_rig_json(truth())), truth());
}

TEST_F(Rig, TakesLineEndsOfWindows) {
  for (std::string text :
       {opencv_text(), dice_text(), named_text(";", true), list(dice_numbers(true, 0), "\n")}) {
    std::string windows;
    for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
    expect_same(read(windows), read(text));
  }
}

TEST_F(Rig, SizeOfTheImagesIsAskedForWhereTheFileDoesNotSayIt) {
  for (const std::string& text :
       {vic_text(0), named_text(";", true), named_text(",", false), list(dice_numbers(false, 0), "\n")})
    EXPECT_NE(refused(text, {}).find("size of the images"), std::string::npos);
  EXPECT_EQ(read(opencv_text(), {}).cameras[1].camera.image, kImage);
  EXPECT_EQ(read(dice_text(), {}).cameras[1].camera.image, kImage);
}

TEST_F(Rig, SkewShearsRowsAndIsUndone) {
  Lens lens = kLeft;
  lens.skew = 6.5;
  const Camera sheared({kImage, lens, {}}), plain({kImage, kLeft, {}});
  for (const auto& [x, y] : {std::pair(10.0, 20.0), {600.0, 437.5}, {1190.0, 880.0}}) {
    const auto p = plain.distort(x, y), q = sheared.distort(x, y);
    EXPECT_NEAR(q.x - p.x, 6.5 * (p.y - lens.cy) / lens.fy, 1e-9);
    EXPECT_NEAR(q.y, p.y, 1e-12);
    const auto back = sheared.undistort_with_jacobian(q.x, q.y);
    EXPECT_NEAR(back.position.x, x, 1e-7);
    EXPECT_NEAR(back.position.y, y, 1e-7);
    constexpr double h = 1e-3;
    const auto a = sheared.undistort(q.x, q.y + h), b = sheared.undistort(q.x, q.y - h);
    EXPECT_NEAR(back.jacobian.xy, (a.x - b.x) / (2 * h), 1e-7);
    EXPECT_NEAR(back.jacobian.yy, (a.y - b.y) / (2 * h), 1e-7);
  }
}

TEST_F(Rig, FileKeepsEverything) {
  CameraRig rig = truth();
  rig.cameras[0].camera.lens->skew = 0.125;
  rig.epipolar_px = 0.0042;
  const std::size_t n = rig_parameter_names(2).size();
  ASSERT_EQ(n, 30u);
  EXPECT_EQ(rig_parameter_names(2)[12], "camera1_fx");
  EXPECT_EQ(rig_parameter_names(2)[24], "camera1_wx");
  rig.covariance.assign(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) rig.covariance[i * n + i] = 0.5 + static_cast<double>(i);
  rig.covariance[n] = rig.covariance[1] = -0.25;
  write_camera_rig(path_, rig, R"({"rms_px": 0.01})");
  const CameraRig found = read_camera_rig(path_);
  expect_same(found, rig);
  EXPECT_EQ(found.cameras[1].rotation, rig.cameras[1].rotation);
  EXPECT_EQ(found.epipolar_px, 0.0042);
  EXPECT_EQ(found.covariance, rig.covariance);
  EXPECT_TRUE(std::isnan(read(camera_rig_json(truth())).epipolar_px));
}

TEST_F(Rig, OneCameraAndTwoAreNotMistakenForEachOther) {
  EXPECT_NE(refused(camera_json({kImage, kLeft, {}})).find("one camera"), std::string::npos);
  write_camera_rig(path_, truth());
  try {
    read_camera(path_);
    FAIL();
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find("two cameras"), std::string::npos) << error.what();
  }
}

std::string with(std::string text, const std::string& old, const std::string& now) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), now);
}

TEST_F(Rig, BrokenFilesAreRefusedWithTheReason) {
  const auto expect = [&](const std::string& text, const std::string& part) {
    const std::string problem = refused(text);
    EXPECT_NE(problem.find(part), std::string::npos) << problem;
    EXPECT_NE(problem.find(path_.string()), std::string::npos) << problem;
  };
  const std::string json = camera_rig_json(truth());
  expect(with(json, "\"left\"", "\"links\""), "links");
  expect(with(json, "\"k1\"", "\"k7\""), "k7");
  expect(with(json, "\"dic_stereo\": 1", "\"dic_stereo\": 2"), "version 2");
  expect(with(json, "\"translation_mm\"", "\"translation\""), "translation");
  expect(with(json, "-181.125", "-181.125, 4"), "three numbers");
  expect(with(json, "2410.5", "1e999"), "JSON");
  expect(with(json, "2410.5", "-2410.5"), "left camera: Focal");
  expect(with(json, "-0.12", "-12"), "right camera: The lens distortion");
  expect("", "empty");
  expect("hello\n", "no calibration");
  expect("a,b\n1,2\n", "no calibration");
  expect("{}", "neither");
  expect("[1, 2]", "no calibration");
  expect("<svg/>", "neither");
  expect(std::string(100000, '{'), "neither");
  std::string deep;
  for (int i = 0; i < 50000; ++i) deep += "<a>";
  expect(deep, "nested");
  expect(with(opencv_text(), "2410.5", ".Nan"), "finite");
  expect(with(opencv_text(), "2410.5", "1e400"), "finite");
  expect(with(opencv_text(), "rows: 3", "rows: 300000000"), "rows and columns");
  expect(with(opencv_text(), "D2:", "D3:"), "distCoeffs2");
  expect(with(opencv_text(), "R: ", "Q: "), "rotation R");
  expect(with(opencv_text(), "M2:", "M1:"), "twice");
  expect(with(vic_text(0), "id=\"1\"", "id=\"2\""), "none of two");
  expect(with(vic_text(0), "id=\"1\"", "id=\"0\""), "twice");
  expect(with(vic_text(0), "611.75 ", ""), "8 numbers");
  expect(with(dice_text(), "OPENCV_LENS_DISTORTION", "K1R1_K2R2_K3R3"), "K1R1");
  expect(with(dice_text(), "name=\"K3\"", "name=\"S2\""), "thin prism");
  expect(with(dice_text(), "CAMERA 1", "CAMERA 2"), "more than two");
  expect(with(dice_text(), "ROW 1", "ROW 9"), "3x3");
  expect(with(named_text(";", true), "Cam1_Fy [pixels]", "Cam1_Fz [pixels]"), "cam1fz");
  expect(with(named_text(",", false), "phi_deg", "chi_deg"), "phi");
  expect(with(named_text(",", false), "cam0_k1", "cam0_k2"), "twice");
  expect(with(named_text(",", false), "611.75", "nan"), "one number");
  expect(with(opencorr_text({0.1, 0.2, 0}), "611.75", "inf"), "each of two");
  expect(with(opencorr_text({0.1, 0.2, 0}), "Tz,0,", "Tz,"), "each of two");
  expect(with(matlab_text(false), "\"mm\"", "\"in\""), "millimeters");
  expect(with(matlab_text(true), "\"K\"", "\"Q\""), "IntrinsicMatrix");
  auto numbers = dice_numbers(false, 0);
  numbers.pop_back();
  expect(list(numbers, "\n"), "21 numbers");
  expect(list(dice_numbers(true, 0), "\n") + "\nnan\n", "finite");
  CameraRig still = truth();
  still.cameras[1].translation_mm = {0, 0, 0};
  EXPECT_NE(still.validate().front().find("depth"), std::string::npos);
  still = truth();
  still.cameras[1].rotation[0] = -still.cameras[1].rotation[0];
  EXPECT_NE(still.validate().front().find("rotation"), std::string::npos);
  still = truth();
  still.covariance.assign(900, -1.0);
  EXPECT_NE(still.validate().front().find("covariance"), std::string::npos);
}

TEST_F(Rig, TruncatedFilesAreRefusedOrWhole) {
  const std::vector<std::string> texts = {opencv_text(),
                                          vic_text(0),
                                          dice_text(),
                                          named_text(";", true),
                                          opencorr_text({0.1, 0.2, 0}),
                                          matlab_text(true),
                                          camera_rig_json(truth())};
  for (const std::string& text : texts) {
    const CameraRig whole = read(text);
    for (std::size_t size = 0; size + 20 < text.size(); size += 7) {
      write_text_file(path_, text.substr(0, size));
      try {
        const CameraRig cut = read_camera_rig(path_, kImage);
        EXPECT_EQ(cut.cameras[0].camera.image, kImage);
        ADD_FAILURE() << "taken, cut to " << size << " of " << text.size() << ":\n" << text.substr(0, 80);
      } catch (const FileError&) {
      }
    }
  }
}

/// Points of a curved surface in front of the rig, seen by both cameras with noise.
struct Matches {
  explicit Matches(double noise) {
    const CameraRig rig = truth();
    const Camera first(rig.cameras[0].camera), second(rig.cameras[1].camera);
    std::mt19937 random(3);
    std::normal_distribution<double> error(0, noise);
    const auto seen = [&](const Camera& camera, const cv::Vec3d& p) {
      const Lens& l = *camera.parameters().lens;
      const auto at = camera.distort(l.fx * p[0] / p[2] + l.cx, l.fy * p[1] / p[2] + l.cy);
      return Camera::Point{at.x + error(random), at.y + error(random)};
    };
    for (int j = -13; j <= 13; ++j)
      for (int i = -16; i <= 16; ++i) {
        const double x = 5.0 * i, y = 5.0 * j;
        const cv::Vec3d point(x, y, 440 + 0.004 * x * x + 0.05 * y);
        left.push_back(seen(first, point));
        right.push_back(seen(second, kTurn * point + kShift));
      }
  }
  std::vector<Camera::Point> left, right;
};

TEST_F(Rig, MovedCameraIsFoundFromMatches) {
  for (const double noise : {0.0, 0.01}) {
    Matches matches(noise);
    CameraRig moved = truth();
    const cv::Matx33d turned =
        axis_rotation(0, 0.05) * axis_rotation(1, -0.02) * axis_rotation(2, 0.03) * kTurn;
    std::copy(turned.val, turned.val + 9, moved.cameras[1].rotation.begin());
    matches.right[5].y += 30;  // a wrong match
    matches.right[9].x = NAN;
    const RigCorrection found = refine_rig(moved, matches.left, matches.right);
    EXPECT_GT(found.epipolar_before_px, 0.5);
    EXPECT_LT(found.epipolar_after_px, noise == 0 ? 1e-3 : 0.017);  // both images have noise
    EXPECT_LE(found.points + 2, matches.left.size());
    EXPECT_GT(found.points, 0.9 * static_cast<double>(matches.left.size()));
    const double baseline = cv::norm(kShift);
    EXPECT_NEAR(std::hypot(found.rig.cameras[1].translation_mm[0], found.rig.cameras[1].translation_mm[1],
                           found.rig.cameras[1].translation_mm[2]),
                baseline, 1e-9);
    const cv::Matx33d rest(found.rig.cameras[1].rotation.data());
    cv::Vec3d error;
    cv::Rodrigues(rest * kTurn.t(), error);
    for (int k = 0; k < 3; ++k) {
      EXPECT_LT(std::abs(error[k]) * 180 / CV_PI, 4 * found.sigma_rotation_deg[k] + 1e-3) << k;
      EXPECT_LT(found.sigma_rotation_deg[k], 0.5) << k;
    }
    EXPECT_TRUE(found.rig.validate().empty());
    // Points measured with noise have true epipolar distances below 0.01 px in the corrected rig.
    const Matches exact(0);
    const Camera first(found.rig.cameras[0].camera), second(found.rig.cameras[1].camera);
    for (std::size_t i = 0; i < exact.left.size(); ++i)
      EXPECT_LT(
          std::abs(epipolar_distance(first, second, found.rig.cameras[1], exact.left[i], exact.right[i])),
          0.01);
  }
}

TEST_F(Rig, RefusesTooFewMatches) {
  Matches matches(0);
  const auto left = matches.left;
  EXPECT_THROW(refine_rig(truth(), left, std::span(matches.right).first(30)), UsageError);
  EXPECT_THROW(refine_rig(truth(), std::span(left).first(19), std::span(matches.right).first(19)),
               UsageError);
  for (auto& point : matches.right) point.x = NAN;
  EXPECT_THROW(refine_rig(truth(), left, matches.right), UsageError);
}

}  // namespace
}  // namespace dic

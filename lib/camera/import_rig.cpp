#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <initializer_list>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "camera/camera_json.hpp"
#include "camera/import_fields.hpp"
#include "camera/lens.hpp"
#include "camera/rig.hpp"

// Calibrations of other programs. What differs: order and names of the numbers, the order of rotations about
// the axes, whether poses are those of the world or relative to the left camera, and MATLAB's pixels, which
// count from 1.
namespace dic::camera {
namespace {

using Matrix = std::array<double, 9>;
using Vector = std::array<double, 3>;

constexpr double kRadians = std::numbers::pi / 180;
constexpr std::array<const char*, 2> kSides = {"left", "right"};

/// R = Rz(gamma) Ry(beta) Rx(alpha), angles in degrees.
Matrix rotation_zyx(double alpha, double beta, double gamma) {
  const double ca = std::cos(alpha * kRadians), sa = std::sin(alpha * kRadians);
  const double cb = std::cos(beta * kRadians), sb = std::sin(beta * kRadians);
  const double cg = std::cos(gamma * kRadians), sg = std::sin(gamma * kRadians);
  return {cg * cb,
          cg * sb * sa - sg * ca,
          cg * sb * ca + sg * sa,
          sg * cb,
          sg * sb * sa + cg * ca,
          sg * sb * ca - cg * sa,
          -sb,
          cb * sa,
          cb * ca};
}

/// The rotation about a vector by its length, rad.
Matrix rotation_about(const Vector& w) {
  const double angle = std::hypot(w[0], w[1], w[2]);
  if (angle == 0) return {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const double x = w[0] / angle, y = w[1] / angle, z = w[2] / angle;
  const double c = std::cos(angle), s = std::sin(angle), d = 1 - c;
  return {c + x * x * d,     x * y * d - z * s, x * z * d + y * s, y * x * d + z * s, c + y * y * d,
          y * z * d - x * s, z * x * d - y * s, z * y * d + x * s, c + z * z * d};
}

constexpr double kRounding = 1e-3;  // rotation_error of a matrix that a program wrote with few digits

/// The rotation nearest to a matrix that a program wrote with few digits.
Matrix cleaned(Matrix r) {
  constexpr double kExact = 1e-12;
  if (!(rotation_error(r) < kRounding) || !(determinant(r) > 0))
    refuse("its rotation matrix is no rotation: its rows must be perpendicular unit vectors");
  for (int i = 0; i < 4 && rotation_error(r) > kExact; ++i) {  // Newton's method for the polar decomposition
    const Matrix back = transposed(inverse(r));
    for (std::size_t k = 0; k < 9; ++k) r[k] = (r[k] + back[k]) / 2;
  }
  return r;
}

/// A camera in a world: X_camera = R X_world + t.
struct Pose {
  Matrix rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  Vector translation = {0, 0, 0};
};

struct Imported {
  std::array<Lens, 2> lenses;
  std::array<Pose, 2> poses;
  std::array<Size, 2> images;
};

CameraRig rig_of(const Imported& imported, Size image) {
  CameraRig rig;
  rig.cameras.resize(2);
  for (std::size_t k = 0; k < 2; ++k) {
    const Size size = imported.images[k] == Size{} ? image : imported.images[k];
    if (size == Size{}) refuse("it does not say the size of the images: give their width and height in px");
    rig.cameras[k].camera = {size, imported.lenses[k], {}};
  }
  const auto& [left, right] = imported.poses;
  RigCamera& second = rig.cameras[1];
  second.rotation = cleaned(product(cleaned(right.rotation), transposed(cleaned(left.rotation))));
  const Vector moved = product(second.rotation, left.translation);
  for (std::size_t k = 0; k < 3; ++k) second.translation_mm[k] = right.translation[k] - moved[k];
  return rig;
}

/// Numbers of a lens in this order.
Lens lens_of(std::initializer_list<double Lens::*> order, const double* numbers) {
  Lens lens;
  for (double Lens::*const parameter : order) lens.*parameter = *numbers++;
  return lens;
}

constexpr std::initializer_list<double Lens::*> kVicOrder = {&Lens::cx,   &Lens::cy, &Lens::fx, &Lens::fy,
                                                             &Lens::skew, &Lens::k1, &Lens::k2, &Lens::k3};

/// Coefficients of the distortion in OpenCV's order.
void set_distortion(Lens& lens, const std::vector<double>& coefficients, const std::string& name) {
  constexpr std::size_t kMost = kEstimableParameters - kPinholeParameters;
  for (std::size_t k = 0; k < coefficients.size(); ++k)
    if (k < kMost)
      lens.*kLensParameters[kPinholeParameters + k].value = coefficients[k];
    else if (coefficients[k] != 0)
      refuse("\"" + name +
             "\" has a thin prism or tilted sensor, which dic does not model: calibrate without these terms");
}

void set_matrix(Lens& lens, const Matrix& k, const std::string& name) {
  const bool is_camera_matrix = k[3] == 0 && k[6] == 0 && k[7] == 0 && k[8] == 1;
  if (!is_camera_matrix) refuse("\"" + name + "\" is no camera matrix: fx skew cx, 0 fy cy, 0 0 1");
  lens.fx = k[0], lens.skew = k[1], lens.cx = k[2], lens.fy = k[4], lens.cy = k[5];
}

Vector vector_of(const std::vector<double>& numbers, const std::string& name) {
  if (numbers.size() != 3) refuse("\"" + name + "\" must be three numbers");
  return {numbers[0], numbers[1], numbers[2]};
}

Matrix matrix_of(const std::vector<double>& numbers, const std::string& name) {
  if (numbers.size() != 9) refuse("\"" + name + "\" must be a 3x3 matrix");
  Matrix matrix{};
  std::ranges::copy(numbers, matrix.begin());
  return matrix;
}

Size size_of(double width, double height) {
  constexpr double kMost = 1 << 20;
  const auto is_size = [](double value) { return value > 1 && value <= kMost && value == std::floor(value); };
  if (!is_size(width) || !is_size(height)) refuse("the size of its images must be whole numbers of px");
  return {static_cast<int>(width), static_cast<int>(height)};
}

// ---------------------------------------------------------------------------------------------- OpenCV

/// The first of several names that is there; nothing if none is.
const std::vector<double>* one_of(const Fields& fields, std::initializer_list<std::string> names) {
  for (const std::string& name : names)
    if (const auto found = fields.find(name); found != fields.end() && !found->second.empty())
      return &found->second;
  return nullptr;
}

const std::vector<double>& required(const std::vector<double>* values, const std::string& what) {
  if (!values) refuse(what + " is missing in this file of OpenCV");
  return *values;
}

Imported import_opencv(const std::string& text) {
  const Fields fields = fields_of_yaml(text);
  Imported imported;
  for (std::size_t k = 0; k < 2; ++k) {
    const std::string number = k == 0 ? "1" : "2", side = kSides[k], letter = k == 0 ? "l" : "r";
    const std::string matrix = "cameraMatrix" + number, distortion = "distCoeffs" + number;
    const auto* numbers =
        one_of(fields, {"cameramatrix" + number, "m" + number, "k" + number, "mtx" + number,
                        "cameramatrix" + side, side + "cameramatrix", "cameramatrix" + letter, "k" + letter});
    const auto* coefficients =
        one_of(fields, {"distcoeffs" + number, "d" + number, "dist" + number, "distcoeffs" + side,
                        side + "distcoeffs", "distcoeffs" + letter, "d" + letter});
    set_matrix(imported.lenses[k], matrix_of(required(numbers, matrix), matrix), matrix);
    set_distortion(imported.lenses[k], required(coefficients, distortion), distortion);
  }
  imported.poses[1] = {matrix_of(required(one_of(fields, {"r", "rotation"}), "The rotation R"), "R"),
                       vector_of(required(one_of(fields, {"t", "translation"}), "The translation T"), "T")};
  const auto* both = one_of(fields, {"imagesize", "size"});
  const auto* width = one_of(fields, {"imagewidth", "width"});
  const auto* height = one_of(fields, {"imageheight", "height"});
  if (width && height)
    imported.images.fill(size_of(width->front(), height->front()));
  else if (both && both->size() == 2)
    imported.images.fill(size_of((*both)[0], (*both)[1]));
  return imported;
}

// ------------------------------------------------------------------------------------------ VIC-3D, DICe

Imported import_vic3d(const XmlElement& xml) {
  Imported imported;
  std::array<bool, 2> seen = {false, false};
  for (const XmlElement* camera : xml.find("camera")) {
    const std::string id = camera->attribute("id");
    if (id != "0" && id != "1") refuse("its camera \"" + id + "\" is none of two: 0 and 1");
    const std::size_t k = id == "0" ? 0 : 1;
    const auto lens = numbers_in(camera->text, "a camera");
    const auto orientations = camera->find("orientation");
    if (lens.size() != 8 || orientations.size() != 1)
      refuse("its camera " + id + " must have 8 numbers and an orientation");
    const auto pose = numbers_in(orientations.front()->text, "an orientation");
    if (pose.size() != 6) refuse("the orientation of its camera " + id + " must have 6 numbers");
    if (std::exchange(seen[k], true)) refuse("its camera " + id + " is given twice");
    imported.lenses[k] = lens_of(kVicOrder, lens.data());
    imported.poses[k] = {rotation_zyx(pose[0], pose[1], pose[2]), {pose[3], pose[4], pose[5]}};
  }
  if (!seen[0] || !seen[1]) refuse("it must hold the cameras 0 and 1 of VIC-3D");
  return imported;
}

/// Parameters in one list of DICe's XML, without those of lists within it.
class DiceList {
 public:
  explicit DiceList(const XmlElement& list) {
    for (const XmlElement& child : list.children)
      if (child.name == "Parameter") values_[child.attribute("name")] = child.attribute("value");
  }

  std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::string() : found->second;
  }
  std::vector<double> numbers(const std::string& name) const { return numbers_in(text(name), name); }
  /// Missing numbers are 0, as DICe writes them.
  double number(const std::string& name) const {
    const auto list = numbers(name);
    if (list.size() > 1) refuse("\"" + name + "\" must be one number");
    return list.empty() ? 0 : list[0];
  }

 private:
  std::map<std::string, std::string> values_;
};

Lens dice_lens(const DiceList& list) {
  Lens lens{list.number("FX"), list.number("FY"), list.number("CX"), list.number("CY")};
  lens.skew = list.number("FS");
  const std::string written = list.text("LENS_DISTORTION_MODEL");
  const std::string model = written.empty() ? list.text("LD_MODEL") : written;
  if (model.starts_with("NONE")) return lens;
  const bool is_known = model.empty() || model.starts_with("OPENCV") || model.starts_with("VIC3D");
  std::vector<double> coefficients;
  for (const char* name :
       {"K1", "K2", "P1", "P2", "K3", "K4", "K5", "K6", "S1", "S2", "S3", "S4", "T1", "T2"})
    coefficients.push_back(list.number(name));
  const bool is_distorted = std::ranges::any_of(coefficients, [](double value) { return value != 0; });
  if (!is_known && is_distorted)
    refuse("its distortion model " + model + " is not the one of OpenCV or VIC-3D");
  set_distortion(lens, coefficients, "K1 to T2");
  return lens;
}

Pose dice_pose(const XmlElement& camera, const DiceList& list) {
  Pose pose;
  pose.translation = {list.number("TX"), list.number("TY"), list.number("TZ")};
  for (const XmlElement& child : camera.children) {
    if (child.name != "ParameterList" || child.attribute("name") != "rotation_3x3_matrix") continue;
    const DiceList rows(child);
    std::vector<double> numbers;
    for (const char* row : {"ROW 0", "ROW 1", "ROW 2"})
      for (const double number : rows.numbers(row)) numbers.push_back(number);
    pose.rotation = matrix_of(numbers, "rotation_3x3_matrix");
    return pose;
  }
  pose.rotation = rotation_zyx(list.number("ALPHA"), list.number("BETA"), list.number("GAMMA"));
  return pose;
}

Imported import_dice_xml(const XmlElement& xml) {
  Imported imported;
  std::array<bool, 2> seen = {false, false};
  for (const XmlElement* list : xml.find("ParameterList")) {
    const std::string name = list->attribute("name");
    if (!name.starts_with("CAMERA ")) continue;
    if (name != "CAMERA 0" && name != "CAMERA 1") refuse("it has more than two cameras: \"" + name + "\"");
    const std::size_t k = name == "CAMERA 0" ? 0 : 1;
    if (std::exchange(seen[k], true)) refuse("its " + name + " is given twice");
    const DiceList parameters(*list);
    imported.lenses[k] = dice_lens(parameters);
    imported.poses[k] = dice_pose(*list, parameters);
    const auto size = parameters.numbers("IMAGE_HEIGHT_WIDTH");
    if (size.size() == 2 && size[0] > 0) imported.images[k] = size_of(size[1], size[0]);
  }
  if (!seen[0] || !seen[1]) refuse("it must hold the lists \"CAMERA 0\" and \"CAMERA 1\" of DICe");
  return imported;
}

/// One number in a line: 8 for each lens, 3 angles or 9 elements of a matrix, 3 of the translation, and
/// perhaps 6 more, which lead to axes other than the left camera's.
Imported import_dice_text(const std::vector<std::string>& lines) {
  std::vector<double> n;
  for (const std::string& line : lines) {
    const auto numbers = numbers_in(line, "a line");
    if (numbers.size() != 1) refuse("a calibration of DICe has one number in a line");
    n.push_back(numbers[0]);
  }
  if (n.size() != 22 && n.size() != 28)
    refuse("it has " + std::to_string(n.size()) +
           " numbers, but a calibration of DICe has 22, or 28 with a rotation matrix");
  Matrix matrix{};  // if there are angles, these numbers are no rotation
  if (n.size() == 28) std::copy_n(&n[16], 9, matrix.begin());
  const bool has_angles = !(rotation_error(matrix) < kRounding);
  Imported imported;
  imported.lenses = {lens_of(kVicOrder, &n[0]), lens_of(kVicOrder, &n[8])};
  Pose& pose = imported.poses[1];
  if (has_angles)
    pose.rotation = rotation_zyx(n[16], n[17], n[18]);
  else
    pose.rotation = matrix;
  std::copy_n(&n[has_angles ? 19 : 25], 3, pose.translation.begin());
  return imported;
}

// ------------------------------------------------------------------- MatchID, pyvale, OpenCorr: named
// numbers

struct NamedParameter {
  std::string_view name;
  double Lens::*value;
};
constexpr NamedParameter kNames[] = {
    {"fx", &Lens::fx}, {"fy", &Lens::fy},     {"fs", &Lens::skew},   {"cx", &Lens::cx},
    {"cy", &Lens::cy}, {"k1", &Lens::k1},     {"k2", &Lens::k2},     {"k3", &Lens::k3},
    {"k4", &Lens::k4}, {"k5", &Lens::k5},     {"k6", &Lens::k6},     {"p1", &Lens::p1},
    {"p2", &Lens::p2}, {"kappa1", &Lens::k1}, {"kappa2", &Lens::k2}, {"kappa3", &Lens::k3}};

double single(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  if (found == fields.end()) refuse("\"" + name + "\" is missing");
  if (found->second.size() != 1) refuse("\"" + name + "\" must be one number");
  return found->second[0];
}

/// Fields "cam0fx", "cam1k1", "theta" as MatchID and pyvale write them.
Imported import_named(const Fields& fields) {
  Imported imported;
  for (const auto& [name, numbers] : fields) {
    if (!name.starts_with("cam0") && !name.starts_with("cam1")) continue;
    const auto known = std::ranges::find(kNames, std::string_view(name).substr(4), &NamedParameter::name);
    const double value = single(fields, name);
    if (known == std::end(kNames) && value != 0) refuse("dic does not know what \"" + name + "\" means");
    if (known != std::end(kNames)) imported.lenses[name[3] == '0' ? 0 : 1].*known->value = value;
  }
  for (const char* camera : {"cam0", "cam1"})
    for (const char* parameter : {"fx", "fy", "cx", "cy"}) single(fields, std::string(camera) + parameter);
  imported.poses[1] = {rotation_zyx(single(fields, "theta"), single(fields, "phi"), single(fields, "psi")),
                       {single(fields, "tx"), single(fields, "ty"), single(fields, "tz")}};
  return imported;
}

/// A row for each parameter, a column for each camera. Rx, Ry, Rz are a rotation vector in rad in OpenCorr's
/// own files. Others hold angles about the axes in degrees, which are larger: cameras of a rig do not differ
/// by more than 70 degrees, nor by less than 1.2.
Imported import_opencorr(const Fields& fields) {
  constexpr double kMostRadians = 1.2;
  Imported imported;
  for (const auto& [name, numbers] : fields)
    if (numbers.size() != 2) refuse("\"" + name + "\" must have a number for each of two cameras");
  const auto at = [&](const std::string& name, std::size_t k) {
    const auto found = fields.find(name);
    if (found == fields.end()) refuse("\"" + name + "\" is missing");
    return found->second[k];
  };
  for (std::size_t k = 0; k < 2; ++k) {
    for (const auto& [name, value] : kNames)
      if (const auto found = fields.find(std::string(name)); found != fields.end())
        imported.lenses[k].*value = found->second[k];
    for (const char* name : {"fx", "fy", "cx", "cy"}) at(name, k);
    const Vector turn = {at("rx", k), at("ry", k), at("rz", k)};
    const bool is_radians = std::hypot(turn[0], turn[1], turn[2]) < kMostRadians;
    imported.poses[k] = {is_radians ? rotation_about(turn) : rotation_zyx(turn[0], turn[1], turn[2]),
                         {at("tx", k), at("ty", k), at("tz", k)}};
  }
  return imported;
}

// ------------------------------------------------------------------------------------------------ MATLAB

std::vector<double> json_numbers(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_array()) refuse("\"" + std::string(key) + "\" must be an array of numbers");
  std::vector<double> numbers;
  for (const Json& element : value) {
    const bool is_row = element.is_array() && element.size() <= 16;
    if (!is_row) numbers.push_back(number(element, key));
    if (is_row)
      for (const Json& inner : element) numbers.push_back(number(inner, key));
  }
  return numbers;
}

Lens matlab_lens(const Json& camera) {
  if (!camera.is_object()) refuse("\"CameraParameters1\" and \"CameraParameters2\" must be objects");
  Lens lens;
  const bool is_new = camera.contains("K");
  const char* const name = is_new ? "K" : "IntrinsicMatrix";
  const Matrix written = matrix_of(json_numbers(camera, name), name);
  set_matrix(lens, is_new ? written : transposed(written), name);
  lens.cx -= 1, lens.cy -= 1;  // MATLAB counts from 1
  const auto radial = json_numbers(camera, "RadialDistortion");
  const auto tangential = json_numbers(camera, "TangentialDistortion");
  if (radial.size() < 2 || radial.size() > 3 || tangential.size() != 2)
    refuse("MATLAB's distortion has 2 or 3 radial and 2 tangential numbers");
  lens.k1 = radial[0], lens.k2 = radial[1], lens.k3 = radial.size() == 3 ? radial[2] : 0;
  lens.p1 = tangential[0], lens.p2 = tangential[1];
  return lens;
}

/// Reads the JSON that MATLAB's jsonencode(toStruct(stereoParams)) writes.
Imported import_matlab(const Json& json) {
  if (json.contains("WorldUnits") && json["WorldUnits"] != "mm" && json["WorldUnits"] != "millimeters")
    refuse("\"WorldUnits\" of MATLAB must be millimeters: calibrate with the size of the squares in mm");
  Imported imported;
  for (std::size_t k = 0; k < 2; ++k) {
    const Json& camera = member(json, k == 0 ? "CameraParameters1" : "CameraParameters2");
    imported.lenses[k] = matlab_lens(camera);
    if (!camera.contains("ImageSize") || camera["ImageSize"].empty()) continue;
    const auto size = json_numbers(camera, "ImageSize");
    if (size.size() != 2) refuse("\"ImageSize\" must be two numbers");
    imported.images[k] = size_of(size[1], size[0]);
  }
  if (json.contains("PoseCamera2")) {
    const Json& pose = json["PoseCamera2"];
    imported.poses[1] = {matrix_of(json_numbers(pose, "R"), "R"),
                         vector_of(json_numbers(pose, "Translation"), "Translation")};
  } else {  // rows times matrix: the transpose of what columns need
    imported.poses[1] = {transposed(matrix_of(json_numbers(json, "RotationOfCamera2"), "RotationOfCamera2")),
                         vector_of(json_numbers(json, "TranslationOfCamera2"), "TranslationOfCamera2")};
  }
  return imported;
}

Imported import_xml(const std::string& text) {
  const XmlElement xml = parse_xml(text);
  if (!xml.find("ParameterList").empty()) return import_dice_xml(xml);
  if (!xml.find("camera").empty()) return import_vic3d(xml);
  refuse("its XML is neither VIC-3D's nor DICe's");
}

/// Recognises the program by what its files alone have.
Imported import_text(const std::string& text) {
  const std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) refuse("it is empty");
  const std::string& first = lines.front();
  if (first.starts_with('{')) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_object() && json.contains("CameraParameters1")) return import_matlab(json);
    refuse("its JSON is neither a stereo file of dic nor MATLAB's stereoParameters");
  }
  if (first.starts_with('<')) return import_xml(text);
  if (first.starts_with("%YAML") || text.find("!!opencv-matrix") != std::string::npos)
    return import_opencv(text);
  if (first.find_first_of(",;\t") == std::string::npos) {
    if (std::string_view("+-.0123456789").find(first[0]) != std::string_view::npos)
      return import_dice_text(lines);
    refuse(
        "it is no calibration that dic knows: of dic, OpenCV, VIC-3D, DICe, MatchID, OpenCorr, pyvale or "
        "MATLAB");
  }
  const Fields fields = fields_of_table(text);
  if (fields.contains("cam0fx")) return import_named(fields);
  if (fields.contains("fx")) return import_opencorr(fields);
  refuse(
      "it is no calibration that dic knows: of dic, OpenCV, VIC-3D, DICe, MatchID, OpenCorr, pyvale or "
      "MATLAB");
}

}  // namespace

CameraRig import_rig(const std::string& text, Size image) { return rig_of(import_text(text), image); }

}  // namespace dic::camera

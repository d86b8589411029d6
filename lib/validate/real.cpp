#include "validate/real.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <fstream>
#include <sstream>

namespace dic::validation {
namespace {

namespace fs = std::filesystem;

using Displacement = std::function<std::array<double, 2>(double x, double y)>;

/// A current image and its known truth.
struct Shot {
  std::string file;
  Displacement displacement;
};

Scene scene_of(const fs::path& reference, const std::vector<Shot>& shots, double truth_error) {
  Scene scene;
  scene.frames = static_cast<int>(shots.size()) + 1;
  const Size size = read_image(reference).size();
  scene.image = [=](int frame) {
    return read_image(frame == 0 ? reference : reference.parent_path() / shots[frame - 1].file);
  };
  scene.truth = [=](int frame, double x, double y) -> std::optional<Truth> {
    const std::array<double, 2> moved = shots[frame - 1].displacement(x, y);
    const double u = moved[0], v = moved[1];
    const auto inside = [&](double beyond) {
      return x + u >= -beyond && y + v >= -beyond && x + u <= size.width - 1 + beyond &&
             y + v <= size.height - 1 + beyond;
    };
    const Measurable measurable = inside(0)                                      ? Measurable::yes
                                  : inside(std::max(0.5, kSigmas * truth_error)) ? Measurable::maybe
                                                                                 : Measurable::no;
    return Truth{u, v, measurable, 0};
  };
  scene.truth_error = truth_error;
  scene.origin = reference.parent_path().string();
  return scene;
}

Displacement shift(double u, double v) {
  return [=](double, double) { return std::array{u, v}; };
}

/// u(x) of truth.csv: column 0 is x, 0, 1, 2, ..., then u and exx of L1, L3, L5. Lines without numbers are
/// headers. Throws FileError if there are no numbers.
std::vector<double> column_of(const fs::path& file, int column) {
  std::vector<double> values;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream fields(line);
    std::string field;
    for (int k = 0; k <= column; ++k) std::getline(fields, field, ',');
    char* end = nullptr;
    const double value = std::strtod(field.c_str(), &end);
    if (end != field.c_str()) values.push_back(value);
  }
  if (values.empty())
    throw FileError(file.string() + " has no displacements: the images beside it cannot be judged without.");
  return values;
}

Displacement curve(std::vector<double> u) {
  return [u = std::move(u)](double x, double) {
    const auto place = static_cast<std::size_t>(std::max(0.0, x));
    return std::array{u[std::min(place, u.size() - 1)], 0.0};
  };
}

// Bounds as for synthetic images; RMSE, bias and sd as in docs/accuracy.md.
constexpr double kFalse = 1e-4, kLost = 1e-3;

Case challenge14(const fs::path& folder) {
  const auto scene = [=] {
    const fs::path truth = folder / "truth.csv";
    return scene_of(folder / "reference.tif",
                    {{"L1.tif", curve(column_of(truth, 1))},
                     {"L3.tif", curve(column_of(truth, 3))},
                     {"L5.tif", curve(column_of(truth, 5))}},
                    0);
  };
  return {"challenge14",
          scene,
          {.rmse = 0.0134, .false_ok = kFalse, .lost = kLost, .scatter = Bounds::Range{0.9, 1.1}}};
}

Case challenge5(const fs::path& folder) {
  const auto scene = [=] {
    return scene_of(folder / "reference.tif",
                    {{"shift_0.00.tif", shift(0, 0)}, {"shift_0.10.tif", shift(0.1, 0.1)}}, 0);
  };
  return {"challenge5", scene, {.bias = 0.005, .sd = 0.0035, .false_ok = kFalse, .lost = kLost}};
}

Case pattern(const fs::path& folder, const std::string& name) {
  const auto scene = [=] {
    return scene_of(folder / (name + ".bmp"),
                    {{name + "_Translation.bmp", shift(7.085, 7.085)},
                     {name + "_Tension.bmp",
                      [](double x, double y) {
                        return std::array{0.02 * x, -0.01 * (y - 250)};
                      }},
                     {name + "_Shear.bmp",
                      [](double x, double y) {
                        return std::array{0.01 * (y - 250), 0.01 * (x - 250)};
                      }}},
                    0.001);
  };
  Case one{name, scene, {.rmse = 0.003, .false_ok = kFalse, .lost = kLost}};
  // The outermost pixels of these renderings do not move with the rest.
  one.roi = Roi::Rect{10, 10, 481, 481};
  return one;
}

/// The bar is 2,500 px long; the rest of the image is white.
Case utn(const fs::path& folder) {
  const auto scene = [=] {
    const auto bar = [](double e) {
      return [e](double x, double y) { return std::array{e * x, -0.3 * e * (y - 250)}; };
    };
    Scene bars = scene_of(folder / "utn_00.bmp", {{"utn_30.bmp", bar(0.3)}, {"utn_40.bmp", bar(0.4)}}, 0.01);
    bars.truth = [inner = bars.truth](int frame, double x, double y) {
      auto truth = inner(frame, x, y);
      if (x > 2500) truth->measurable = Measurable::no;
      return truth;
    };
    return bars;
  };
  return {"utn", scene, {.false_ok = kFalse, .lost = 1e-2}};
}

/// A rotation by 170 degrees, from y towards x, about a centre that is known to 2 px.
Case rotation(const fs::path& folder) {
  const auto scene = [=] {
    Motion motion;
    motion.kind = MotionKind::rotation;
    motion.angle_deg = -170;
    motion.cx = motion.cy = 256;
    const auto turned = [motion](double x, double y) { return motion.at(x, y, 1); };
    return scene_of(folder / "rotation_000.tif", {{"rotation_170.tif", turned}}, 2);
  };
  return {"rotation", scene, {.false_ok = kFalse, .lost = 1e-2}};
}

}  // namespace

std::vector<Case> real_cases(const fs::path& folder) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& part, const auto& make) {
    if (fs::is_directory(folder / part)) cases.push_back(make(folder / part));
  };
  add("challenge14", challenge14);
  add("challenge5", challenge5);
  add("patterns", [](const fs::path& part) { return pattern(part, "Pattern_1"); });
  add("patterns", [](const fs::path& part) { return pattern(part, "Pattern_2"); });
  add("rotation", rotation);
  add("utn", utn);
  return cases;
}

}  // namespace dic::validation

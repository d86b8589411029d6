#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>

#include <csignal>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <fstream>
#include <functional>
#include <opencv2/imgcodecs.hpp>

#include "io/hdf5_file.hpp"

namespace dic::test {

namespace fs = std::filesystem;

inline const float kNan = std::nanf("");

class Io : public testing::Test {
 protected:
  Io() { fs::create_directories(folder_); }
  ~Io() override { fs::remove_all(folder_); }

  fs::path file(const std::string& name) const { return folder_ / name; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    return names;
  }

 private:
  fs::path folder_ =
      fs::temp_directory_path() / ("dic_io_" + std::to_string(getpid()) + "_" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
};

inline std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A grid of 7 x 5 nodes, two of them outside the ROI.
inline Grid sample_grid() {
  Grid grid{.x0 = 12, .y0 = 20, .step = 4, .nx = 7, .ny = 5, .inside = {}};
  grid.inside.assign(35, 1);
  grid.inside[3] = grid.inside[20] = 0;
  return grid;
}

/// Three of 60 x 50 nodes: two neighbours and one far away.
inline Grid sparse_grid() {
  Grid grid{.x0 = 12, .y0 = 20, .step = 4, .nx = 60, .ny = 50, .inside = {}};
  grid.inside.assign(grid.nodes(), 0);
  grid.inside[0] = grid.inside[1] = grid.inside[2999] = 1;
  return grid;
}

inline ResultInfo sample_info() {
  ResultInfo info;
  info.subset = 21, info.image = {64, 50};
  info.version = "1.2.3", info.command = "dic track a.png \"b c.png\"", info.reference = "größe.png";
  info.settings_json = R"({"subset":21})";
  return info;
}

inline Field sample_field(double shift, const Grid& grid = sample_grid()) {
  Field field(grid);
  dic::NodeValues<float>* strains[] = {
      &field.strain.exx,       &field.strain.eyy,       &field.strain.exy,
      &field.strain.e1,        &field.strain.e2,        &field.strain.von_mises,
      &field.strain.sigma_exx, &field.strain.sigma_eyy, &field.strain.sigma_exy};
  for (auto* strain : strains) *strain = dic::NodeValues<float>(grid.nodes(), kNan);
  constexpr Status kMix[] = {Status::ok,       Status::ok,   Status::low_correlation, Status::ok,
                             Status::outlier,  Status::flat, Status::not_converged,   Status::ok,
                             Status::diverged, Status::ok,   Status::out_of_image,    Status::ok};
  for (std::size_t k = 0; k < grid.inside.size(); ++k) {
    if (!grid.inside[k]) continue;
    field.status[k] = kMix[k % std::size(kMix)];
    if (!has_values(field.status[k])) continue;
    const double t = static_cast<double>(k);
    field.u[k] = shift + 0.001 * t, field.v[k] = -shift / 3 + 0.01 * t;
    field.zncc[k] = static_cast<float>(0.99 + 1e-4 * t);
    field.sigma_u[k] = static_cast<float>(0.01 + 1e-4 * t), field.sigma_v[k] = 0.02f;
    field.iterations[k] = static_cast<std::int16_t>(3 + k % 4);
    for (std::size_t s = 0; s < std::size(strains); ++s)
      (*strains[s])[k] = static_cast<float>(1e-3 * t + 0.1 * static_cast<double>(s));
  }
  return field;
}

inline void expect_file_error(const std::function<void()>& call, const std::string& name) {
  try {
    call();
    ADD_FAILURE() << "no error for " << name;
  } catch (const dic::FileError& error) {
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

}  // namespace dic::test

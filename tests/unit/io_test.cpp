#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <fstream>
#include <functional>
#include <opencv2/imgcodecs.hpp>
#include <random>
#include <sstream>

#include "io/hdf5_file.hpp"

namespace {

namespace fs = std::filesystem;
using dic::CsvStyle;
using dic::Field;
using dic::Grid;
using dic::Image;
using dic::ResultInfo;
using dic::ScalarType;
using dic::Status;
using dic::StrainField;

const float kNan = std::nanf("");

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

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::vector<std::string>> read_table(const fs::path& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(read_text(path));
  for (std::string line, cell; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line);
    while (std::getline(cells, cell, ',')) rows.back().push_back(cell);
  }
  return rows;
}

/// 7 x 5 nodes, two of them outside the ROI.
Grid sample_grid() {
  Grid grid{.x0 = 12, .y0 = 20, .step = 4, .nx = 7, .ny = 5, .inside = {}};
  grid.inside.assign(35, 1);
  grid.inside[3] = grid.inside[20] = 0;
  return grid;
}

ResultInfo sample_info() {
  ResultInfo info;
  info.subset = 21, info.image = {64, 50};
  info.version = "1.2.3", info.command = "dic track a.png \"b c.png\"", info.reference = "größe.png";
  info.settings_json = R"({"subset":21})";
  return info;
}

Field sample_field(double shift, const Grid& grid = sample_grid()) {
  Field field(grid);
  dic::NodeValues<float>* strains[] = {&field.strain.exx, &field.strain.eyy, &field.strain.exy,
                                       &field.strain.e1,  &field.strain.e2,  &field.strain.von_mises};
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
    for (std::size_t s = 0; s < 6; ++s)
      (*strains[s])[k] = static_cast<float>(1e-3 * t + 0.1 * static_cast<double>(s));
  }
  return field;
}

/// Reads a whole dataset with plain HDF5 calls.
template <typename T>
std::vector<T> read_dataset(const fs::path& path, const std::string& name, std::vector<hsize_t>& shape) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT), space = H5Dget_space(dataset);
  shape.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  EXPECT_GE(H5Dread(dataset, dic::hdf5::native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
      << name;
  H5Sclose(space), H5Dclose(dataset), H5Fclose(file);
  return values;
}

/// No file may grow beyond `bytes` while this lives: a disk that fills up, as far as the writer can tell.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

void expect_file_error(const std::function<void()>& call, const std::string& name) {
  try {
    call();
    ADD_FAILURE() << "no error for " << name;
  } catch (const dic::FileError& error) {
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

// --- VTKHDF ---

TEST_F(Io, VtkHdfHoldsEveryFrame) {
  const ResultInfo info = sample_info();
  const Field frames[] = {sample_field(1.5), sample_field(-7.25), sample_field(40)};
  dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), info);
  for (int f = 0; f < 3; ++f) writer.append(frames[f], f + 1, "frame" + std::to_string(f));
  EXPECT_FALSE(fs::exists(file("r.vtkhdf"))) << "before finish() only the temporary file is there";
  writer.finish();
  EXPECT_EQ(files(), std::vector<std::string>{"r.vtkhdf"});

  std::vector<hsize_t> shape;
  const auto u = read_dataset<double>(file("r.vtkhdf"), "/VTKHDF/PointData/u", shape);
  EXPECT_EQ(shape, (std::vector<hsize_t>{3, 5, 7}));
  const auto vectors = read_dataset<double>(file("r.vtkhdf"), "/VTKHDF/PointData/displacement", shape);
  EXPECT_EQ(shape, (std::vector<hsize_t>{3, 5, 7, 3}));
  const auto status = read_dataset<std::uint8_t>(file("r.vtkhdf"), "/VTKHDF/PointData/status", shape);
  const auto von_mises = read_dataset<float>(file("r.vtkhdf"), "/VTKHDF/PointData/von_mises", shape);
  const auto iterations = read_dataset<std::int16_t>(file("r.vtkhdf"), "/VTKHDF/PointData/iterations", shape);
  for (std::size_t f = 0; f < 3; ++f)
    for (std::size_t k = 0; k < 35; ++k) {
      const std::size_t at = f * 35 + k;
      EXPECT_EQ(status[at], static_cast<std::uint8_t>(frames[f].status[k]));
      EXPECT_EQ(iterations[at], frames[f].iterations[k]);
      if (!has_values(frames[f].status[k])) {
        EXPECT_TRUE(std::isnan(u[at]) && std::isnan(vectors[3 * at + 2]) && std::isnan(von_mises[at]));
        continue;
      }
      EXPECT_EQ(u[at], frames[f].u[k]);
      EXPECT_EQ(vectors[3 * at], frames[f].u[k]);
      EXPECT_EQ(vectors[3 * at + 1], -frames[f].v[k]) << "VTK's y points up";
      EXPECT_EQ(von_mises[at], frames[f].strain.von_mises[k]);
    }
}

TEST_F(Io, VtkHdfScalesLengthsOnly) {
  ResultInfo info = sample_info();
  info.scale_mm_per_px = 0.25;
  const Field field = sample_field(8);
  dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), info);
  writer.append(field, 1, "a");
  writer.finish();
  std::vector<hsize_t> shape;
  EXPECT_DOUBLE_EQ(read_dataset<double>(file("r.vtkhdf"), "/VTKHDF/PointData/v", shape)[0],
                   field.v[0] * 0.25);
  EXPECT_FLOAT_EQ(read_dataset<float>(file("r.vtkhdf"), "/VTKHDF/PointData/sigma_u", shape)[0],
                  field.sigma_u[0] * 0.25f);
  EXPECT_EQ(read_dataset<float>(file("r.vtkhdf"), "/VTKHDF/PointData/zncc", shape)[0], field.zncc[0]);
  EXPECT_EQ(read_dataset<float>(file("r.vtkhdf"), "/VTKHDF/PointData/eyy", shape)[0], field.strain.eyy[0]);
  EXPECT_DOUBLE_EQ(read_dataset<double>(file("r.vtkhdf"), "/dic/x", shape)[1], 16 * 0.25);
}

TEST_F(Io, VtkHdfWithoutStrainHoldsNan) {
  const ResultInfo info = sample_info();
  Field field = sample_field(1);
  field.strain = StrainField{};
  dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), info);
  writer.append(field, 1, "a");
  writer.finish();
  std::vector<hsize_t> shape;
  for (const float e : read_dataset<float>(file("r.vtkhdf"), "/VTKHDF/PointData/exy", shape))
    EXPECT_TRUE(std::isnan(e));
}

TEST_F(Io, UnfinishedVtkHdfLeavesNothing) {
  {
    dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), sample_info());
    writer.append(sample_field(1), 1, "a");
    EXPECT_EQ(files(), std::vector<std::string>{"r.vtkhdf.part"});
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(Io, VtkHdfWithoutFramesIsWhole) {
  dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), sample_info());
  writer.finish();
  std::vector<hsize_t> shape;
  EXPECT_EQ(read_dataset<double>(file("r.vtkhdf"), "/dic/y", shape).size(), 5u);
}

TEST_F(Io, VtkHdfRefusesAnotherGrid) {
  dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), sample_info());
  Grid moved = sample_grid();
  ++moved.x0;
  EXPECT_THROW(writer.append(Field(moved), 1, "a"), dic::UsageError);
  EXPECT_THROW(writer.append(Field(), 1, "a"), dic::UsageError);
}

/// Long command lines do not fit into an HDF5 attribute.
TEST_F(Io, VtkHdfTakesAnyCommandLine) {
  ResultInfo info = sample_info();
  info.command.assign(200000, 'x');
  dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), info);
  writer.finish();
  EXPECT_GT(fs::file_size(file("r.vtkhdf")), 200000u);
}

/// The readers of h5py and of VTK itself, on what this test knows to be in the file.
TEST_F(Io, VtkHdfReadersAgree) {
  const std::string python = DIC_PYTHON;
  if (python.empty()) GTEST_SKIP() << "no Python with the packages of tests/requirements.txt was found";
  for (const double scale : {0.0, 0.05}) {
    ResultInfo info = sample_info();
    info.scale_mm_per_px = scale;
    const double factor = info.length_factor();
    dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), info);
    for (int f = 0; f < 4; ++f) writer.append(sample_field(2.0 * f), 10 + f, "bild_ä" + std::to_string(f));
    writer.finish();
    std::ofstream expected(file("expected.json"));
    expected
        << R"({"shape": [4, 5, 7], "times": [10, 11, 12, 13], "measure": "green-lagrange", "unit": ")"
        << info.length_unit() << R"(", "frames": ["bild_ä0", "bild_ä1", "bild_ä2", "bild_ä3"], "x": [)"
        << 12 * factor << ", " << 4 * factor << R"(], "y": [)" << 20 * factor << ", " << 4 * factor
        << R"(], "values": {"u": [[0, 0, 0, 0, 1e-12], [3, 1, 0, )" << 6.007 * factor
        << R"(, 1e-12], [2, 0, 2, null, 0], [2, 0, 3, null, 0]], "status": [[1, 0, 2, 3, 0], [0, 0, 3, 6, 0]]}})";
    expected.close();
    const std::string command = "'" + python + "' '" + DIC_TESTS_DIR + "/cli/check_vtkhdf.py' '" +
                                file("r.vtkhdf").string() + "' '" + file("expected.json").string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

// --- failures ---

TEST_F(Io, MissingFolderIsAFileError) {
  const fs::path path = file("no/such/folder.x");
  const ResultInfo info = sample_info();
  const Field field = sample_field(0);
  expect_file_error([&] { dic::VtkHdfWriter writer(path, sample_grid(), info); }, path.string());
  expect_file_error([&] { write_csv(path, info, field); }, path.string());
  expect_file_error([&] { dic::write_text_file(path, "text"); }, path.string());
}

TEST_F(Io, FullDiskIsAFileErrorAndLeavesTheEarlierFile) {
  const ResultInfo info = sample_info();
  Grid grid = sample_grid();
  grid.nx = grid.ny = 100;
  grid.inside.assign(10000, 1);
  const Field field = sample_field(0, grid);
  const auto write_results = [&] {
    dic::VtkHdfWriter writer(file("result"), grid, info);
    for (int f = 0; f < 3; ++f) writer.append(field, f, "a");
    writer.finish();
  };
  const std::pair<const char*, std::function<void()>> writers[] = {
      {"vtkhdf", write_results},
      {"csv", [&] { write_csv(file("result"), info, field); }},
      {"text", [&] { dic::write_text_file(file("result"), std::string(2000000, 'x')); }},
  };
  for (const auto& [name, write] : writers)
    for (const rlim_t limit : {10, 3000, 50000, 300000}) {
      SCOPED_TRACE(std::string(name) + " at " + std::to_string(limit));
      dic::write_text_file(file("result"), "old");
      {
        const FileSizeLimit full(limit);
        expect_file_error(write, "result");
      }
      EXPECT_EQ(files(), std::vector<std::string>{"result"});
      EXPECT_EQ(read_text(file("result")), "old");
    }
  write_results();
  EXPECT_GT(fs::file_size(file("result")), 2000000u) << "writing works again afterwards";
}

TEST_F(Io, TextIsWrittenWhole) {
  dic::write_text_file(file("a.json"), "{\"ä\": 1}\n");
  EXPECT_EQ(read_text(file("a.json")), "{\"ä\": 1}\n");
  dic::write_text_file(file("a.json"), "");
  EXPECT_EQ(read_text(file("a.json")), "");
}

// --- CSV ---

TEST_F(Io, NativeCsvHoldsARowPerPoint) {
  const ResultInfo info = sample_info();
  const Field field = sample_field(3);
  write_csv(file("a.csv"), info, field);
  EXPECT_EQ(read_text(file("a.csv")).substr(0, 60),
            "x,y,u,v,zncc,sigma_u,sigma_v,status,iterations,exx,eyy,exy\n1");
  const auto table = read_table(file("a.csv"));
  ASSERT_EQ(table.size(), 34u);
  std::size_t row = 1;
  for (int j = 0; j < 5; ++j)
    for (int i = 0; i < 7; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * 7 + i;
      if (!sample_grid().inside[k]) continue;
      const auto& cells = table[row++];
      ASSERT_EQ(cells.size(), 12u);
      EXPECT_EQ(cells[0], std::to_string(12 + 4 * i));
      EXPECT_EQ(cells[1], std::to_string(20 + 4 * j));
      EXPECT_EQ(cells[7], to_string(field.status[k]));
      EXPECT_EQ(cells[8], std::to_string(field.iterations[k]));
      if (!has_values(field.status[k])) {
        for (const std::size_t c : {2, 3, 4, 5, 6, 9, 10, 11}) EXPECT_EQ(cells[c], "nan");
        continue;
      }
      EXPECT_NEAR(std::stod(cells[2]), field.u[k], 1e-8);
      EXPECT_NEAR(std::stod(cells[3]), field.v[k], 1e-8);
      EXPECT_EQ(std::stof(cells[4]), field.zncc[k]);
      EXPECT_EQ(std::stof(cells[5]), field.sigma_u[k]);
      EXPECT_EQ(std::stof(cells[6]), field.sigma_v[k]);
      EXPECT_EQ(std::stof(cells[9]), field.strain.exx[k]);
      EXPECT_EQ(std::stof(cells[10]), field.strain.eyy[k]);
      EXPECT_EQ(std::stof(cells[11]), field.strain.exy[k]);
    }
  EXPECT_EQ(row, table.size());
}

TEST_F(Io, NativeCsvNamesMillimetres) {
  ResultInfo info = sample_info();
  info.scale_mm_per_px = 0.125;
  const Field field = sample_field(3);
  write_csv(file("a.csv"), info, field);
  const auto table = read_table(file("a.csv"));
  EXPECT_EQ(table[0],
            (std::vector<std::string>{"x [mm]", "y [mm]", "u [mm]", "v [mm]", "zncc", "sigma_u [mm]",
                                      "sigma_v [mm]", "status", "iterations", "exx", "eyy", "exy"}));
  EXPECT_EQ(table[2][0], "2");
  EXPECT_EQ(table[2][1], "2.5");
  EXPECT_NEAR(std::stod(table[2][2]), field.u[1] * 0.125, 1e-9);
  EXPECT_NEAR(std::stod(table[2][5]), field.sigma_u[1] * 0.125, 1e-9);
  EXPECT_EQ(std::stof(table[2][9]), field.strain.exx[1]);
}

TEST_F(Io, CsvWithoutStrain) {
  const ResultInfo info = sample_info();
  Field field = sample_field(3);
  field.strain = StrainField{};
  for (const CsvStyle style : {CsvStyle::native, CsvStyle::dice, CsvStyle::vic, CsvStyle::opencorr})
    EXPECT_NO_THROW(write_csv(file("a.csv"), info, field, style)) << to_string(style);
}

TEST_F(Io, DiceCsv) {
  const ResultInfo info = sample_info();
  const Field field = sample_field(3);
  write_csv(file("a.csv"), info, field, CsvStyle::dice);
  const auto table = read_table(file("a.csv"));
  EXPECT_EQ(table[0],
            (std::vector<std::string>{"SUBSET_ID", "COORDINATE_X", "COORDINATE_Y", "DISPLACEMENT_X",
                                      "DISPLACEMENT_Y", "SIGMA", "GAMMA", "BETA", "STATUS_FLAG",
                                      "UNCERTAINTY", "VSG_STRAIN_XX", "VSG_STRAIN_YY", "VSG_STRAIN_XY"}));
  EXPECT_EQ(table[2][0], "1");
  EXPECT_EQ(table[2][1], "16");
  EXPECT_NEAR(std::stod(table[2][4]), field.v[1], 1e-8);
  EXPECT_FLOAT_EQ(std::stof(table[2][5]), 0.02f) << "the larger of sigma_u and sigma_v";
  EXPECT_NEAR(std::stod(table[2][6]), 2 * (1 - field.zncc[1]), 1e-7);
  EXPECT_EQ(table[2][8], "4");
  EXPECT_EQ(table[3][5], "-1") << "low_correlation";
  EXPECT_EQ(table[3][8], "8");
  EXPECT_EQ(table[6][8], "11") << "not_converged";
}

TEST_F(Io, VicCsv) {
  ResultInfo info = sample_info();
  const Field field = sample_field(3);
  write_csv(file("a.csv"), info, field, CsvStyle::vic);
  auto table = read_table(file("a.csv"));
  EXPECT_EQ(table[0],
            (std::vector<std::string>{"\"x\"", "\"y\"", "\"u\"", "\"v\"", "\"sigma\"", "\"exx\"", "\"eyy\"",
                                      "\"exy\"", "\"e1\"", "\"e2\"", "\"gamma\"", "\"e_vonmises\""}));
  const double exx = field.strain.exx[1], eyy = field.strain.eyy[1], exy = field.strain.exy[1];
  EXPECT_NEAR(std::tan(2 * std::stod(table[2][10])), 2 * exy / (exx - eyy), 1e-4);
  EXPECT_EQ(table[3][4], "-1");

  info.scale_mm_per_px = 0.5;
  write_csv(file("a.csv"), info, field, CsvStyle::vic);
  table = read_table(file("a.csv"));
  EXPECT_EQ(table[0][0], "\"x_c\"");
  EXPECT_EQ(table[2][0], "8");
  EXPECT_EQ(table[2][4], "16") << "x stays in px";
  EXPECT_NEAR(std::stod(table[2][2]), field.u[1] / 2, 1e-8);
}

TEST_F(Io, OpenCorrCsv) {
  const ResultInfo info = sample_info();
  write_csv(file("a.csv"), info, sample_field(3), CsvStyle::opencorr);
  const std::string text = read_text(file("a.csv"));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "x,y,u,v,u0,v0,ZNCC,iteration,convergence,feature,exx,eyy,exy,subset_rx,subset_ry,");
  const auto row = read_table(file("a.csv"))[2];
  EXPECT_EQ(row[7], "4");
  EXPECT_EQ(row[13], "10");
}

// --- images ---

Image grey_image(int width, int height, ScalarType type = ScalarType::u8) {
  Image image({width, height}, type);
  visit_scalar(type, [&]<typename T>(T) {
    for (int y = 0; y < height; ++y) std::fill_n(image.row<T>(y), width, T(120));
  });
  return image;
}

bool coloured(const cv::Mat& drawing, int x, int y) {
  const auto& pixel = drawing.at<cv::Vec3b>(y, x);
  return std::abs(pixel[0] - pixel[1]) + std::abs(pixel[1] - pixel[2]) > 20;
}

/// A block of points that moved 200 px to the right and 100 down is drawn there, without its missing point.
TEST_F(Io, FieldPictureDrawsPointsWhereTheyAre) {
  Grid grid;
  grid.x0 = 100, grid.y0 = 300, grid.step = 20, grid.nx = grid.ny = 11;
  grid.inside.assign(121, 1);
  Field field(grid);
  std::vector<float> values(121, kNan);
  for (std::size_t k = 0; k < 121; ++k) {
    if (k == 60) continue;  // the middle: (200, 400)
    field.status[k] = Status::ok;
    field.u[k] = 200, field.v[k] = 100;
    values[k] = static_cast<float>(k);
  }
  write_field_picture(file("u.png"), grey_image(800, 700), field, values, {"u", "px"});
  const cv::Mat drawing = cv::imread(file("u.png").string());
  ASSERT_GT(drawing.cols, 800);
  ASSERT_GE(drawing.rows, 700);
  const int frame = (drawing.rows - 700) / 2;
  const auto at = [&](int x, int y) { return coloured(drawing, x + frame, y + frame); };
  EXPECT_TRUE(at(300, 400) && at(500, 600) && at(450, 450));
  EXPECT_TRUE(at(292, 392)) << "cells reach half a step further";
  EXPECT_FALSE(at(285, 400) || at(515, 500)) << "and no further";
  EXPECT_FALSE(at(110, 310)) << "where the points were";
  EXPECT_FALSE(at(400, 500)) << "the missing point";
  EXPECT_FALSE(at(100, 600)) << "outside";
}

TEST_F(Io, FieldPictureOfAnySize) {
  for (const auto& [width, height] : {std::pair{16, 16}, {3000, 40}, {40, 3000}, {2600, 2000}}) {
    Grid grid;
    grid.step = 8, grid.nx = width / 8, grid.ny = height / 8;
    grid.inside.assign(grid.nodes(), 1);
    Field field(grid);
    std::fill(field.u.begin(), field.u.end(), 0.0), std::fill(field.v.begin(), field.v.end(), 0.0);
    std::fill(field.status.begin(), field.status.end(), Status::ok);
    const std::vector<float> constant(grid.nodes(), 0.0f), missing(grid.nodes(), kNan);
    for (const auto& values : {constant, missing})
      for (const ScalarType type : {ScalarType::u8, ScalarType::u16, ScalarType::f32}) {
        write_field_picture(file("a.png"), grey_image(width, height, type), field, values, {"exx", ""});
        const cv::Mat drawing = cv::imread(file("a.png").string());
        EXPECT_GE(drawing.rows, 360);
        EXPECT_LE(drawing.cols, 1800);
        EXPECT_LE(drawing.rows, 1800);
      }
  }
}

TEST_F(Io, FieldPictureRefusesAnotherGrid) {
  Grid grid;
  grid.nx = grid.ny = 2;
  grid.inside.assign(4, 1);
  const std::vector<float> values(3);
  EXPECT_THROW(write_field_picture(file("a.png"), grey_image(9, 9), Field(grid), values, {}),
               dic::UsageError);
  EXPECT_THROW(write_field_picture(file("a.png"), grey_image(9, 9), Field(grid), std::vector<float>(4),
                                   {.title = "u", .unit = "px", .range = {{2, 2}}}),
               dic::UsageError);
  expect_file_error(
      [&] {
        write_field_picture(file("no/a.png"), grey_image(9, 9), Field(grid), std::vector<float>(4), {});
      },
      "no/a.png");
}

}  // namespace

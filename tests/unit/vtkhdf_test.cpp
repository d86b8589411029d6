#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <dic/result.hpp>
#include <fstream>
#include <functional>
#include <opencv2/imgcodecs.hpp>

#include "io/hdf5_file.hpp"
#include "support/io_files.hpp"

// Tests result files in VTKHDF, missing folders and full disks.
namespace dic {
namespace {

using namespace test;

namespace fs = std::filesystem;

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

/// Limits the size of files to `bytes` while the object lives, which looks like a full disk to the writer.
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

TEST_F(Io, VtkHdfHoldsEveryFrame) {
  const ResultInfo info = sample_info();
  const Field frames[] = {sample_field(1.5), sample_field(-7.25), sample_field(40)};
  dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), info);
  EXPECT_FALSE(fs::exists(file("r.vtkhdf"))) << "before a frame is in it there is only a temporary file";
  for (int f = 0; f < 3; ++f) writer.append(frames[f], f + 1, "frame" + std::to_string(f));
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

TEST_F(Io, VtkHdfWithoutAFrameLeavesNothing) {
  {
    dic::VtkHdfWriter writer(file("r.vtkhdf"), sample_grid(), sample_info());
    ASSERT_EQ(files().size(), 1U);
    EXPECT_TRUE(files()[0].ends_with(".part"));
  }
  EXPECT_TRUE(files().empty());
}

/// After each frame, the bytes on disk are a valid file, as after a kill.
TEST_F(Io, VtkHdfIsWholeAfterEveryFrame) {
  for (const Grid& grid : {sample_grid(), sparse_grid()}) {
    dic::VtkHdfWriter writer(file("r.vtkhdf"), grid, sample_info());
    for (int f = 0; f < 5; ++f) {
      writer.append(sample_field(f, grid), f + 1, "frame" + std::to_string(f));
      fs::copy_file(file("r.vtkhdf"), file("copy"), fs::copy_options::overwrite_existing);
      for (const char* name : {"r.vtkhdf", "copy"}) {
        std::vector<hsize_t> shape;
        const auto u = read_dataset<double>(file(name), "/VTKHDF/PointData/u", shape);
        const hsize_t ny = grid.ny, nx = grid.nx;
        ASSERT_EQ(shape, (std::vector<hsize_t>{static_cast<hsize_t>(f) + 1, ny, nx}));
        EXPECT_EQ(u[f * ny * nx], sample_field(f).u[0]);
        EXPECT_EQ(dic::Result(file(name)).frame_count(), f + 1);
      }
    }
    writer.finish();
  }
}

TEST_F(Io, VtkHdfGoesOn) {
  const ResultInfo info = sample_info();
  for (const Grid& grid : {sample_grid(), sparse_grid()}) {
    {
      dic::VtkHdfWriter writer(file("r.vtkhdf"), grid, info);
      for (int f = 0; f < 3; ++f) writer.append(sample_field(f, grid), f + 1, "old" + std::to_string(f));
    }
    dic::VtkHdfWriter writer = dic::VtkHdfWriter::resume(file("r.vtkhdf"), 2, grid, info);
    EXPECT_EQ(dic::Result(file("r.vtkhdf")).frame_count(), 2);
    for (int f = 2; f < 4; ++f) writer.append(sample_field(10 * f, grid), f + 1, "new" + std::to_string(f));
    writer.finish();
    const dic::Result result(file("r.vtkhdf"));
    EXPECT_EQ(result.frame_names(), (std::vector<std::string>{"old0", "old1", "new2", "new3"}));
    EXPECT_EQ(result.times(), (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(result.field(1).u[0], sample_field(1).u[0]);
    EXPECT_EQ(result.field(3).u[0], sample_field(30).u[0]);
  }
  expect_file_error([&] { dic::VtkHdfWriter::resume(file("r.vtkhdf"), 5, sparse_grid(), info); }, "r.vtkhdf");
}

/// Nodes that are not measured take hardly any space: all 3000 of a frame would take 300 kB.
TEST_F(Io, VtkHdfOfAFewPointsIsSmall) {
  const Grid grid = sparse_grid();
  std::uintmax_t bytes[2] = {};
  for (int k = 0; k < 2; ++k) {
    dic::VtkHdfWriter writer(file("r.vtkhdf"), grid, sample_info());
    for (int f = 0; f < 200 * (k + 1); ++f) writer.append(sample_field(f, grid), f + 1, "frame");
    writer.finish();
    bytes[k] = fs::file_size(file("r.vtkhdf"));
  }
  EXPECT_LT((bytes[1] - bytes[0]) / 200, 3000U);
  const Field read = dic::Result(file("r.vtkhdf")).field(399), written = sample_field(399, grid);
  for (std::size_t k = 0; k < read.u.size(); ++k) {
    ASSERT_EQ(read.status[k], written.status[k]) << k;
    ASSERT_EQ(std::isnan(read.u[k]), std::isnan(written.u[k])) << k;
    if (std::isnan(read.u[k])) continue;
    EXPECT_EQ(read.u[k], written.u[k]) << k;
    EXPECT_EQ(read.sigma_u[k], written.sigma_u[k]) << k;
  }
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

/// Checks with h5py and VTK that they read the known contents of the file.
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

TEST_F(Io, VtkHdfReadersAgreeAboutAFewPoints) {
  const std::string python = DIC_PYTHON;
  if (python.empty()) GTEST_SKIP() << "no Python with the packages of tests/requirements.txt was found";
  dic::VtkHdfWriter writer(file("r.vtkhdf"), sparse_grid(), sample_info());
  for (int f = 0; f < 2; ++f) writer.append(sample_field(f, sparse_grid()), f + 1, "frame");
  writer.finish();
  std::ofstream(file("expected.json"))
      << R"({"shape": [2, 50, 60], "values": {"u": [[0, 0, 1, 0.001, 1e-12], [1, 0, 0, 1, 1e-12], )"
      << R"([1, 20, 20, null, 0], [1, 49, 59, 3.999, 1e-12]], "status": [[1, 7, 7, 6, 0]]}})";
  const std::string command = "'" + python + "' '" + DIC_TESTS_DIR + "/cli/check_vtkhdf.py' '" +
                              file("r.vtkhdf").string() + "' '" + file("expected.json").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

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

}  // namespace
}  // namespace dic

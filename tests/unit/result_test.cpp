#include <cmath>
#include <cstring>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <dic/result.hpp>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "io/hdf5_file.hpp"
#include "support/io_files.hpp"

// Tests the reader of result.vtkhdf with files of VtkHdfWriter, incomplete files and foreign files.
namespace dic {
namespace {

using namespace test;

class ResultFile : public Io {
 protected:
  fs::path write(double scale = 0, int frames = 3, bool with_positions = false) const {
    ResultInfo info = sample_info();
    info.scale_mm_per_px = scale;
    VtkHdfWriter writer(file("result.vtkhdf"), sample_grid(), info);
    for (int f = 0; f < frames; ++f) {
      Field field = sample_field(1.5 + f);
      if (with_positions) field.positions = std::make_shared<NodePositions>(sample_positions());
      writer.append(field, f + 1, "frame" + std::to_string(f));
    }
    writer.finish();
    return file("result.vtkhdf");
  }

  static NodePositions sample_positions() {
    const Grid grid = sample_grid();
    NodePositions at{NodeValues<double>(35), NodeValues<double>(35)};
    for (int k = 0; k < 35; ++k) at.x[k] = grid.x(k % 7) + 0.25, at.y[k] = grid.y(k / 7) - 0.5;
    return at;
  }

  /// Changes a file with plain HDF5 calls.
  static void change(const fs::path& path, const std::function<void(hid_t)>& edit) {
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    edit(file);
    H5Fclose(file);
  }
  static void set_number(const fs::path& path, const char* name, double value) {
    change(path, [&](hid_t file) {
      const hid_t group = H5Gopen2(file, "/dic", H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
      H5Adelete(group, name);
      const hid_t attribute = H5Acreate2(group, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT);
      H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value);
      H5Aclose(attribute), H5Sclose(space), H5Gclose(group);
    });
  }
  /// Replaces the dataset /VTKHDF/PointData/NAME.
  static void replace_array(const fs::path& path, const std::string& name, const std::vector<hsize_t>& shape,
                            hid_t creation = H5P_DEFAULT) {
    change(path, [&](hid_t file) {
      const std::string full = "/VTKHDF/PointData/" + name;
      H5Ldelete(file, full.c_str(), H5P_DEFAULT);
      const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
      H5Dclose(H5Dcreate2(file, full.c_str(), H5T_NATIVE_FLOAT, space, H5P_DEFAULT, creation, H5P_DEFAULT));
      H5Sclose(space);
    });
  }
};

template <typename T>
void expect_same(const NodeValues<T>& a, const NodeValues<T>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(T)), 0) << what;
}

TEST_F(ResultFile, HoldsTheBitsThatWereMeasured) {
  const Result result(write());
  for (int f = 0; f < 3; ++f) {
    const Field stored = result.field(f), measured = sample_field(1.5 + f);
    EXPECT_EQ(stored.grid(), measured.grid());
    expect_same(stored.status, measured.status, "status");
    expect_same(stored.iterations, measured.iterations, "iterations");
    for (std::size_t k = 0; k < 35; ++k) {
      if (!has_values(measured.status[k])) {
        EXPECT_TRUE(std::isnan(stored.u[k]) && std::isnan(stored.strain.e2[k]));
        continue;
      }
      EXPECT_EQ(stored.u[k], measured.u[k]);
      EXPECT_EQ(stored.v[k], measured.v[k]);
      EXPECT_EQ(stored.sigma_v[k], measured.sigma_v[k]);
      EXPECT_EQ(stored.zncc[k], measured.zncc[k]);
      EXPECT_EQ(stored.strain.exy[k], measured.strain.exy[k]);
      EXPECT_EQ(stored.strain.sigma_exx[k], measured.strain.sigma_exx[k]);
    }
  }
}

TEST_F(ResultFile, SaysWhatItIsAbout) {
  write();
  const Result result(file("."));  // opened by its folder
  EXPECT_EQ(result.path().filename(), "result.vtkhdf");
  EXPECT_EQ(result.frame_count(), 3);
  EXPECT_EQ(result.frame_names()[2], "frame2");
  EXPECT_EQ(result.times(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(result.time_unit(), "1");
  const ResultInfo expected = sample_info();
  EXPECT_EQ(result.info().subset, expected.subset);
  EXPECT_EQ(result.info().image.width, expected.image.width);
  EXPECT_EQ(result.info().image.height, expected.image.height);
  EXPECT_EQ(result.info().strain.window, expected.strain.window);
  EXPECT_EQ(result.info().strain.measure, expected.strain.measure);
  EXPECT_EQ(result.info().version, expected.version);
  EXPECT_EQ(result.info().command, expected.command);
  EXPECT_EQ(result.info().reference, expected.reference);
  EXPECT_EQ(result.info().settings_json, expected.settings_json);
  EXPECT_EQ(result.arrays().size(), 17u);
  EXPECT_EQ(result.array("u").unit, "px");
  EXPECT_EQ(result.array("u").type, ScalarType::f64);
  EXPECT_EQ(result.array("exx").measure, "green-lagrange");
  EXPECT_EQ(result.array("exx").type, ScalarType::f32);
  EXPECT_EQ(result.array("status").type, ScalarType::u8);
  EXPECT_EQ(result.array("iterations").type, ScalarType::i32);
  EXPECT_EQ(result.array("displacement").components, 3);
  EXPECT_FALSE(result.array("zncc").description.empty());
  EXPECT_FALSE(result.has("ezz"));
  EXPECT_EQ(result.positions(), nullptr);
}

TEST_F(ResultFile, ValuesAreInTheUnitOfTheArray) {
  const Result result(write(0.25));
  const Field measured = sample_field(2.5);
  EXPECT_EQ(result.array("v").unit, "mm");
  EXPECT_EQ(result.values("v", 1)[0], measured.v[0] * 0.25);
  EXPECT_EQ(result.values<float>("exx", 1)[7], measured.strain.exx[7]);
  EXPECT_EQ(result.values<std::uint8_t>("status", 1)[4], static_cast<std::uint8_t>(Status::outlier));
  EXPECT_EQ(result.values("displacement", 1).size(), 105u);
  EXPECT_EQ(result.values("displacement", 1)[1], -measured.v[0] * 0.25);
  EXPECT_EQ(result.grid(), sample_grid()) << "px, whatever the unit";
  const Field field = result.field(1);
  EXPECT_EQ(field.v[0], measured.v[0]) << "0.25 leaves no rounding";
  EXPECT_EQ(field.sigma_u[0], measured.sigma_u[0]);
}

TEST_F(ResultFile, ReadsPartsOfTheNodes) {
  const Result result(write());
  const std::vector<double> all = result.values("u", 2), part = result.values("u", 2, {5, 1, 2, 3});
  ASSERT_EQ(part.size(), 6u);
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 2; ++i) {
      const double expected = all[(1 + j) * 7 + 5 + i], value = part[j * 2 + i];
      EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected)));
    }
  EXPECT_THROW(result.values("u", 2, {6, 1, 2, 3}), UsageError);
  EXPECT_THROW(result.values("u", 2, {-1, 1, 2, 3}), UsageError);
  EXPECT_THROW(result.values("u", 2, {0, 0, 1 << 30, 1 << 30}), UsageError);
  EXPECT_TRUE(result.values("u", 2, {7, 5, 0, 0}).empty());
}

TEST_F(ResultFile, HoldsCorrectedPositionsInPx) {
  const Result result(write(0.125, 2, true));
  const NodePositions expected = sample_positions();
  EXPECT_EQ(result.positions()->x, expected.x);
  EXPECT_EQ(result.field(1).y(3, 2), expected.y[17]);
}

TEST_F(ResultFile, MayHaveNoFrames) {
  const Result result(write(0, 0));
  EXPECT_EQ(result.frame_count(), 0);
  EXPECT_TRUE(result.arrays().empty());
  EXPECT_EQ(result.grid(), sample_grid());
  EXPECT_THROW(result.field(0), UsageError);
}

TEST_F(ResultFile, RefusesNumbersOfIterationsBeyond16Bits) {
  const auto path = write();
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  const float million = 1e6;
  H5Pset_fill_value(creation, H5T_NATIVE_FLOAT, &million);
  replace_array(path, "iterations", {3, 5, 7}, creation);
  H5Pclose(creation);
  EXPECT_THROW(Result(path).field(0), FileError);
}

TEST_F(ResultFile, MisuseIsAUsageErrorThatHelps) {
  const Result result(write());
  for (const int frame : {-1, 3}) EXPECT_THROW(result.values("u", frame), UsageError);
  try {
    result.values("ezz", 0);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("exx"), std::string::npos) << error.what();
  }
}

TEST_F(ResultFile, OtherFilesAreRefused) {
  std::ofstream(file("text")) << "no HDF5";
  hdf5::OutputFile(file("other.h5")).close();
  fs::create_directory(file("empty"));
  for (const char* name : {"missing", "text", "other.h5", "empty"})
    expect_file_error([&] { const Result result(file(name)); }, name);
}

TEST_F(ResultFile, NumbersThatMakeNoSenseAreRefused) {
  const std::pair<const char*, double> wrong[] = {
      {"step", 0},
      {"step", 5},
      {"step", 1e300},
      {"subset", -1},
      {"subset", 20.5},
      {"image_width", 0},
      {"image_height", kNan},
      {"strain_window", 0},
      {"scale_mm_per_px", -1},
      {"scale_mm_per_px", kNan},
      {"strain_measure", 3},
  };
  for (const auto& [name, value] : wrong) {
    const fs::path path = write();
    set_number(path, name, value);
    expect_file_error([&] { const Result result(path); }, "result.vtkhdf");
  }
}

TEST_F(ResultFile, ArraysOfAnotherSizeAreRefused) {
  for (const std::vector<hsize_t>& shape : std::vector<std::vector<hsize_t>>{
           {3, 5}, {3, 5, 8}, {2, 5, 7}, {3, 5, 7, 100}, {}, {3, 1 << 20, 1 << 20}}) {
    const fs::path path = write();
    replace_array(path, "u", shape);
    expect_file_error([&] { const Result result(path); }, "result.vtkhdf");
  }
}

TEST_F(ResultFile, AnotherFileIsNotOpened) {
  const fs::path path = write();
  std::ofstream(file("secret")) << std::string(4000, 's');
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(creation, file("secret").c_str(), 0, 4000);
  replace_array(path, "zncc", {3, 5, 7}, creation);
  H5Pclose(creation);
  expect_file_error([&] { const Result result(path); }, "result.vtkhdf");

  fs::copy_file(write(), file("copy.h5"));
  change(path, [&](hid_t file_id) {
    H5Ldelete(file_id, "/dic/inside", H5P_DEFAULT);
    H5Lcreate_external(file("copy.h5").c_str(), "/dic/inside", file_id, "/dic/inside", H5P_DEFAULT,
                       H5P_DEFAULT);
  });
  expect_file_error([&] { const Result result(path); }, "result.vtkhdf");
}

/// A small file claims a large grid that it does not contain.
TEST_F(ResultFile, MemoryIsTakenOnlyForWhatTheFileCanHold) {
  const fs::path path = write();
  change(path, [](hid_t file) {
    for (const char* name : {"/dic/x", "/dic/y"}) {
      H5Ldelete(file, name, H5P_DEFAULT);
      const hsize_t count = 1 << 28;
      const hid_t space = H5Screate_simple(1, &count, nullptr);
      H5Dclose(H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      H5Sclose(space);
    }
  });
  expect_file_error([&] { const Result result(path); }, "larger than the file can hold");
}

/// Texts lie in heaps whose lengths HDF5 1.10 trusts.
TEST_F(ResultFile, DamagedHeapsOfTextsAreRefused) {
  const std::string whole = read_text(write());
  std::vector<std::size_t> heaps;
  for (std::size_t at = 0; (at = whole.find("GCOL", at)) != std::string::npos; at += 4) heaps.push_back(at);
  ASSERT_GE(heaps.size(), 1U);
  int refused = 0, read = 0;
  for (const std::size_t heap : heaps)
    for (std::size_t at = heap; at < std::min(heap + 64, whole.size()); ++at)
      for (const int value : {0x00, 0xff}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(value);
        std::ofstream(file("damaged"), std::ios::binary) << damaged;
        try {
          const Result result(file("damaged"));
          EXPECT_EQ(result.frame_count(), 3);
          ++read;
        } catch (const FileError&) {
          ++refused;
        }
      }
  EXPECT_GT(refused, 20);
  EXPECT_GT(read, 10) << "bytes of texts";
}

/// The files are cut as by an interrupted copy.
TEST_F(ResultFile, CutFilesAreRefused) {
  const std::string whole = read_text(write());
  for (std::size_t size = 0; size < whole.size(); size += 997) {
    std::ofstream(file("cut"), std::ios::binary) << whole.substr(0, size);
    expect_file_error([&] { const Result result(file("cut")); }, "cut");
  }
}

}  // namespace
}  // namespace dic

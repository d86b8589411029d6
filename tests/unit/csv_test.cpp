#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <dic/io.hpp>
#include <opencv2/imgcodecs.hpp>
#include <sstream>

#include "io/hdf5_file.hpp"
#include "support/io_files.hpp"

// Tests CSV files in the layouts of other programs.
namespace dic {
namespace {

using namespace test;

namespace fs = std::filesystem;

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

TEST_F(Io, NativeCsvHoldsARowPerPoint) {
  const ResultInfo info = sample_info();
  const Field field = sample_field(3);
  write_csv(file("a.csv"), info, field);
  EXPECT_EQ(read_text(file("a.csv")).substr(0, 90),
            "x,y,u,v,zncc,sigma_u,sigma_v,status,iterations,exx,eyy,exy,sigma_exx,sigma_eyy,sigma_exy\n1");
  const auto table = read_table(file("a.csv"));
  ASSERT_EQ(table.size(), 34u);
  std::size_t row = 1;
  for (int j = 0; j < 5; ++j)
    for (int i = 0; i < 7; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * 7 + i;
      if (!sample_grid().inside[k]) continue;
      const auto& cells = table[row++];
      ASSERT_EQ(cells.size(), 15u);
      EXPECT_EQ(cells[0], std::to_string(12 + 4 * i));
      EXPECT_EQ(cells[1], std::to_string(20 + 4 * j));
      EXPECT_EQ(cells[7], to_string(field.status[k]));
      EXPECT_EQ(cells[8], std::to_string(field.iterations[k]));
      if (!has_values(field.status[k])) {
        for (const std::size_t c : {2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14}) EXPECT_EQ(cells[c], "nan");
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
      EXPECT_EQ(std::stof(cells[12]), field.strain.sigma_exx[k]);
      EXPECT_EQ(std::stof(cells[13]), field.strain.sigma_eyy[k]);
      EXPECT_EQ(std::stof(cells[14]), field.strain.sigma_exy[k]);
    }
  EXPECT_EQ(row, table.size());
}

/// A field whose values tell the index of their node.
Field numbered_field(const Grid& grid) {
  Field field(grid);
  for (std::int64_t k = 0; k < grid.nodes(); ++k) {
    field.u[k] = static_cast<double>(k) + 0.25;
    field.v[k] = -static_cast<double>(k);
    field.status[k] = Status::ok;
    field.iterations[k] = static_cast<std::int16_t>(k % 30);
  }
  return field;
}

TEST_F(Io, CsvOfManyPointsIsInTheOrderOfTheGridWithAnyNumberOfThreads) {
  Grid grid{.x0 = 3, .y0 = 5, .step = 2, .nx = 97, .ny = 71, .inside = {}};
  for (std::int64_t k = 0; k < grid.nodes(); ++k) grid.inside.push_back(k % 7 != 3);
  const Field field = numbered_field(grid);
  for (const int threads : {1, 2, 5}) {
    write_csv(file("a.csv"), sample_info(), field, CsvStyle::native, threads);
    write_csv(file("dice.csv"), sample_info(), field, CsvStyle::dice, threads);
    const auto table = read_table(file("a.csv")), dice = read_table(file("dice.csv"));
    ASSERT_EQ(table.size(), 1u + std::ranges::count(grid.inside, 1));
    ASSERT_EQ(dice.size(), table.size());
    std::size_t row = 1;
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const int k = j * grid.nx + i;
        if (k % 7 == 3) continue;
        ASSERT_EQ(table[row][0], std::to_string(3 + 2 * i)) << threads << " threads, row " << row;
        ASSERT_EQ(table[row][1], std::to_string(5 + 2 * j));
        ASSERT_EQ(std::stod(table[row][2]), k + 0.25);
        ASSERT_EQ(std::stod(table[row][3]), -k);
        ASSERT_EQ(table[row][8], std::to_string(k % 30));
        ASSERT_EQ(dice[row][0], std::to_string(row - 1));
        ASSERT_EQ(std::stod(dice[row][3]), k + 0.25);
        ++row;
      }
  }
}

TEST_F(Io, NativeCsvNamesMillimetres) {
  ResultInfo info = sample_info();
  info.scale_mm_per_px = 0.125;
  const Field field = sample_field(3);
  write_csv(file("a.csv"), info, field);
  const auto table = read_table(file("a.csv"));
  EXPECT_EQ(table[0], (std::vector<std::string>{"x [mm]", "y [mm]", "u [mm]", "v [mm]", "zncc",
                                                "sigma_u [mm]", "sigma_v [mm]", "status", "iterations", "exx",
                                                "eyy", "exy", "sigma_exx", "sigma_eyy", "sigma_exy"}));
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

}  // namespace
}  // namespace dic

#include <dic/probe.hpp>

#include "support/io_files.hpp"

// Tests tables of loads, and how they come to the frames.
namespace dic {
namespace {

using namespace test;

class Loads : public Io {
 protected:
  LoadTable read(const std::string& text, const std::string& column = {}) {
    std::ofstream(file("loads.csv"), std::ios::binary) << text;
    return read_loads(file("loads.csv"), column);
  }
  void refuse(const std::string& text, const std::string& word) {
    expect_file_error([&] { read(text); }, word);
  }
  static ProbeHistory history(int frames, const std::string& time_unit = "1") {
    ProbeHistory history;
    history.time_unit = time_unit;
    for (int f = 1; f <= frames; ++f) {
      ProbeFrame& frame = history.frames.emplace_back();
      frame.time = f;
      frame.number = f;
    }
    return history;
  }
  static std::string usage_error(ProbeHistory h, const LoadTable& table, double section = 0) {
    try {
      add_loads(h, table, section);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }
};

TEST_F(Loads, ContentInMemoryIsReadLikeAFile) {
  using namespace std::string_literals;
  for (const std::string& content : {"Operator;Ann\nZeit [ms];Kraft [kN]\n0;0,5\n1000;1,5\n"s,
                                     "frame,Kraft f\xFCr A [N],Weg [mm]\n1,2,3\n"s,
                                     "\xFF\xFE"
                                     "F\0\n\0001\0\n\0"s}) {
    const LoadTable from_file = read(content), table = parse_loads(content, "loads.csv");
    EXPECT_EQ(table.heading, from_file.heading);
    EXPECT_EQ(table.keys, from_file.keys);
    EXPECT_EQ(table.loads, from_file.loads);
    EXPECT_EQ(table.unit, from_file.unit);
  }
  EXPECT_EQ(parse_loads("frame;F [N];Kraft unten [kN]\n1;2;3\n", "a.csv", "Kraft unten").heading,
            "Kraft unten [kN]");
  EXPECT_EQ(load_columns("frame;F [N];Weg [mm]\n1;2;3\n", "a.csv"),
            (std::vector<std::string>{"frame", "F [N]", "Weg [mm]"}));
  for (const std::string& content : {"frame,a,b\n1,2,3\n"s, "no table"s, ""s, "F\n1\0\n"s})
    expect_file_error([&] { parse_loads(content, "up.csv"); }, "'up.csv'");
}

TEST_F(Loads, ReadsWhatSpreadsheetsWrite) {
  LoadTable table = read(
      "\xEF\xBB\xBF"
      "Frame;Force [kN];Stroke [mm]\r\n1;1,5;0,1\r\n3;-2,25;0,2\r\n\r\n");
  EXPECT_EQ(table.key, LoadTable::Key::frame);
  EXPECT_EQ(table.name + table.unit, "ForceN");
  EXPECT_EQ(table.loads, (std::vector<double>{1500, -2250}));
  EXPECT_EQ(read("Frame;Force [kN];Stroke [mm]\n1;1,5;0,1\n", "stroke").loads, (std::vector<double>{0.1}));
  table = read("time [s]\tF (N)\n0\t10\n2\t20\n");
  EXPECT_EQ(table.key, LoadTable::Key::time);
  EXPECT_EQ(table.keys, (std::vector<double>{0, 2}));
  table = read("\"F\"\n+1e3\n2\n");
  EXPECT_EQ(table.key, LoadTable::Key::row);
  EXPECT_EQ(table.loads, (std::vector<double>{1000, 2}));
}

/// The same test, 500 N at 1 s and 1500 N at 3 s, as machines export it.
TEST_F(Loads, ReadsWhatMachinesWrite) {
  ProbeHistory h = history(3, "s");
  for (const std::string text : {
           "Time (s),Force (N)\n0,0\n1,500\n2,1000\n3,1500\n",
           "Time (ms),Force (N)\n0,0\n1000,500\n2000,1000\n3000,1500\n",
           "Time (min),Force (N)\n0,0\n0.05,1500\n",
           "Time (h),Force (N)\n0,0\n0.00083333,1500\n",
           "X_Value\tForce (N)\tComment\n0\t0\n1\t500\n3\t1500\n",
           "Time (s),Force_kN\n0,0\n1,0.5\n2,1\n3,1.5\n",
           "Time (s),F / kN\n0,0\n3,1.5\n",
           "Time (s),Force (KN)\n0,0\n3,1.5\n",
           "Time (s),Load (lbf)\n0,0\n3,337.2134148216\n",
           "Time (s),Load (kgf)\n0,0\n3,152.9574319467\n",
           "Time (s),Force [mN]\n0,0\n3,1500000\n",
           "Time (s),Extension (mm),Force (N)\n0,0,0\n3,0.3,1500\n",
           "Elapsed Time (s),Load (N)\n0,0\n3,1500\n",
           "Zeit [s];Kraft [kN]\n0;0\n1;0,5\n2;1,0\n3;1,5\n",
           "Time,Force\n(s),(kN)\n0,0\n3,1.5\n",
           "Time\tForce\n[ms]\t[kN]\n0\t0\n3000\t1,5\n",
           "Specimen;A12\nOperator;NN\nTime (s);Force (N)\n0;0\n3;1500\n",
           "Specimen;A12\nWidth;12,5;mm\n\nTime;Extension;Load\ns;mm;kN\n0;0;0\n3;0,25;1,5\n",
           "\"Test\",\"tension, slow\"\n\"Time\",\"Load\"\n\"(s)\",\"(N)\"\n\"0\",\"0\"\n\"3\",\"1,500.0\"\n",
           "Zeit [s];Kraft [N]\n0;0,0\n3;1.500,0\n",
           "Zeit [s];Kraft [N]\n0;0,0\n3;1 500,0\n",
           "Time (hh:mm:ss),Force (N)\n00:00:00,0\n00:00:03,1500\n",
           "# written by rig 2\n# Time [s], Force [N]\n0.0, 0\n3.0, 1500\n",
           "Time (s)   Force (N)\n0.0   0\n3.0   1500\n",
           "File;TimeStamp; Force [V]; Force [N]\na_0.tif;0;0;0\na_3.tif;3;1,5;1500\n",
           "Load step,Time (s),Load (N),Load rate (N/s)\n1,0,0,0\n1,3,1500,500\n",
           "Time (s),Total Time (s),Load (N)\n0,9,0\n3,12,1500\n",
           "Time (s),Force (N),\n0,0,\n3,1500,\n,,\n",
           "Kraft [N] \xDC\xDF;Zeit [s]\n0;0\n1500;3\n",
       }) {
    add_loads(h, read(text), 10);
    ASSERT_EQ(h.loads.size(), 3u) << text;
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(h.loads[k], 500.0 * (k + 1), 0.01) << text;
    EXPECT_NEAR(h.stresses()[2], 150, 1e-3) << text;
    EXPECT_EQ(h.load_unit, "N") << text;
    EXPECT_EQ(h.load_note, "") << text;
  }
}

TEST_F(Loads, WhatCanMeanTwoThingsIsRefused) {
  refuse("frame,Force [kN]\n1,0,5\n2,1,0\n", "3 cells in line 2");
  refuse("frame;Force [N]\n1;5;9\n", "3 cells in line 2");
  refuse("frame\tForce [N]\n1\t1,234\n2\t2,345\n", "1.234 or 1234");
  refuse("frame,Force [N]\n1,\"1,234\"\n", "1.234 or 1234");
  refuse("time;Force [N]\n0,5;1.234\n", "1.234");
  refuse("time;Force [N]\n0.5;1,5\n", "alike");
  refuse("Time (s),Force [N],Force [kN]\n0,1,2\n", "\"Force [N]\", \"Force [kN]\"");
  refuse("Time (s),Extension,Voltage\n0,1,2\n", "\"Extension\", \"Voltage\"");
  refuse("Frame,Image,F\n1,1,2\n", "several columns of frames");
  refuse("0,0\n1,500\n", "no names");
  refuse("Time,Force\n0,1\n1,2\nTime,Force\n0,3\n1,4\n", "one table");
  refuse("Time (weeks),Force [N]\n0,1\n", "weeks");
  refuse("Time (s),Force [mn]\n0,1\n", "mN or MN");
  refuse("Time (s),Force [furlong]\n0,1\n", "furlong");
}

TEST_F(Loads, WhatSemicolonsAloneTellIsSaid) {
  ProbeHistory h = history(2);
  add_loads(h, read("Frame;Kraft [kN]\n1;1,234\n2;2,345\n"));
  EXPECT_EQ(h.loads, (std::vector<double>{1234, 2345}));
  EXPECT_EQ(h.load_note, "Commas are taken for decimal commas: \"1,234\" is 1.234.");
}

TEST_F(Loads, WhatIsNoTableIsRefused) {
  for (const char* text : {"", "F\n", "frame\n1\n", "frame,F\n1,x\n", "frame,F\n1\n", "frame,F\n2,1\n1,1\n",
                           "frame,F\n1,inf\n", "frame,F\n1.5,1\n", "F\n5\nx\n6\n", "frame,F\n1,\"1\n2,2\n"})
    expect_file_error([&] { read(text); }, "loads.csv");
  expect_file_error([&] { read("frame,F\n1,2\n", "G"); }, "\"G\"");
  expect_file_error([&] { read_loads(file("none.csv")); }, "none.csv");
  expect_file_error([&] { read_loads("/dev/zero"); }, "device");
  expect_file_error([&] { read("time,F\n0,1\n0,2\n"); }, "line 3");
}

TEST_F(Loads, AreMatchedByFrameOrTime) {
  ProbeHistory h = history(3);
  add_loads(h, read("frame,F\n1,10\n3,30\n9,90\n"), 2);
  EXPECT_EQ(h.loads[0], 10);
  EXPECT_TRUE(std::isnan(h.loads[1]));
  EXPECT_EQ(h.stresses()[2], 15);
  EXPECT_NE(h.load_note.find("taken for N"), std::string::npos);
  EXPECT_NE(h.load_note.find("1 of 3 frames have no load"), std::string::npos);
  EXPECT_NE(usage_error(h, read("time,F\n0,1\n")).find("no times"), std::string::npos);
  add_loads(h, read("frame,F\n0,0\n1,10\n2,20\n3,30\n"));
  EXPECT_EQ(h.loads, (std::vector<double>{10, 20, 30}));
  EXPECT_EQ(h.load_note, "");
  add_loads(h, read("frame,F\n1,0\n2,10\n3,20\n4,30\n"));
  EXPECT_NE(h.load_note.find("the number 0"), std::string::npos);
  h = history(3, "s");
  add_loads(h, read("time,F\n1.5,10\n2.5,20\n"));
  EXPECT_TRUE(std::isnan(h.loads[0])) << "before the first";
  EXPECT_EQ(h.loads[1], 15);
  EXPECT_TRUE(std::isnan(h.loads[2]));
  add_loads(h, read("frame,F\n2,7\n"));
  EXPECT_EQ(h.loads[1], 7);
  EXPECT_NE(usage_error(h, read("time,F\n100,1\n200,2\n")).find("100 to 200 s"), std::string::npos);
}

TEST_F(Loads, InOrderMayHaveARowForTheReference) {
  ProbeHistory h = history(3);
  add_loads(h, read("F\n5\n6\n7\n"));
  EXPECT_EQ(h.loads, (std::vector<double>{5, 6, 7}));
  EXPECT_TRUE(h.stresses().empty());
  EXPECT_EQ(h.load_note, "");
  add_loads(h, read("Force [kN]\n0\n5\n6\n7\n"));
  EXPECT_EQ(h.loads, (std::vector<double>{5000, 6000, 7000}));
  EXPECT_NE(h.load_note.find("reference"), std::string::npos);
  for (const char* text : {"F\n5\n6\n", "F\n1\n2\n3\n4\n5\n"})
    EXPECT_NE(usage_error(h, read(text)).find("rows for 3 frames"), std::string::npos);
  for (const char* unit : {"1", "s"}) {
    h = history(3, unit);
    h.frames.erase(h.frames.begin() + 1);  // the second frame could not be read
    for (const char* text : {"F\n5\n6\n7\n", "F\n0\n5\n6\n7\n", "frame,F\n1,5\n2,6\n3,7\n"}) {
      add_loads(h, read(text));
      EXPECT_EQ(h.loads, (std::vector<double>{5, 7})) << text << unit;
    }
  }
}

TEST_F(Loads, StressNeedsAForce) {
  const ProbeHistory h = history(1);
  for (const char* text : {"frame,Extension (mm)\n1,2\n", "frame,Load (MPa)\n1,2\n", "frame,P3\n1,2\n"}) {
    EXPECT_EQ(usage_error(h, read(text)), "");
    EXPECT_NE(usage_error(h, read(text), 10).find("needs a force"), std::string::npos) << text;
  }
  EXPECT_NE(usage_error(h, read("frame,Force [N],Stroke\n1,2,3\n", "stroke"), 10).find("Stroke"),
            std::string::npos);
}

}  // namespace
}  // namespace dic

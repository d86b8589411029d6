#include "run/frame_times.hpp"

#include <sys/stat.h>

#include "support/io_files.hpp"

// Tests files of times.
namespace dic::run {
namespace {

using namespace test;

class Times : public Io {
 protected:
  std::vector<double> read(const std::string& text) {
    std::ofstream(file("times.txt"), std::ios::binary) << text;
    return read_times(file("times.txt"));
  }
  void refuse(const std::string& text, const std::string& word) {
    expect_file_error([&] { read(text); }, word);
  }
};

TEST_F(Times, AreSecondsInAnyLayout) {
  const std::vector<double> expected = {0, 0.5, 1.25};
  for (const std::string text : {"0\n0.5\n1.25\n",
                                 "0\r\n0.5\r\n1.25",
                                 "0\r0.5\r1.25\r",
                                 "# camera 3\n0\n0.5\n# paused\n1.25\n",
                                 "Recorded by camera 3\n0\n0.5\n1.25\n",
                                 "Recorded in May, lab 2\n0\n0.5\n1.25\n",
                                 "time\n0\n0.5\n1.25\n",
                                 "time [s]\n0,0\n0,5\n1,25\n",
                                 "0,00\n0,50\n1,25\n",
                                 "0\n0,5\n1,25\n",
                                 "Zeit\n0\n0,5\n1,25\n",
                                 "0;7\n0,5;8\n1,25;9\n",
                                 "time,force\n0,1\n0.5,3\n1.25,9\n",
                                 "0 a.png\n0.5 b.png\n1.25 c.png\n",
                                 "0\tx\n0,5\ty\n1,25\tz\n",
                                 "frame,time\n1,0\n2,0.5\n3,1.25\n",
                                 "Time (ms)\n0\n500\n1250\n",
                                 "Frame;Zeit [ms]\n1;0\n2;500\n3;1250\n",
                                 "\xEF\xBB\xBFtime;force\n0;1\n0,5;2\n1,25;3\n",
                                 "time,x\n(min),(mm)\n0,1\n0.00833333333333333333,2\n"
                                 "0.0208333333333333333,3\n",
                                 "# time [ms], force\n0,1\n500,1\n1250,1\n",
                                 "0:00:00\n0:00:00.5\n0:00:01.25\n",
                                 "Time (s)  Force (N)\n0.0  1\n0.5  2\n1.25  3\n",
                                 "Elapsed Time (s) Load (N)\n0 1\n0.5 2\n1.25 3\n",
                                 "0,0   5\n0,5   6\n1,25   7\n",
                                 "time [s]\n\n0\n\n0.5\n1.25\n\n",
                                 "\"0\"\n\"0,5\"\n\"1,25\"\n"}) {
    const std::vector<double> times = read(text);
    ASSERT_EQ(times.size(), 3u) << text;
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(times[k], expected[k], 1e-12) << text;
  }
}

TEST_F(Times, OfASpreadsheetInUtf16AreRead) {
  std::string text = "\xFF\xFE";
  for (const char c : std::string("Zeit [ms]\tx\r\n0\t1\r\n0,5\t2\r\n")) text += {c, '\0'};
  EXPECT_EQ(read(text), (std::vector<double>{0, 0.0005}));
}

TEST_F(Times, ThatCanMeanTwoThingsAreRefused) {
  refuse("0,0\n1,5\n2,9\n", "decimal points");
  refuse("time\n1,500\n2,600\n", "one number or two");
  refuse("1,500\n1,600\n", "1500");
  refuse("0,5\n1.5\n", "alike");
  refuse("Loading Time,Waiting Time\n0,1\n1,2\n", "several columns of times");
  refuse("number;x\n1;2\n2;3\n", "no column of times");
  refuse("Force [N]\n1\n2\n", "Force [N]");
  refuse("Time (cycles)\n1\n2\n", "cycles");
}

TEST_F(Times, AreReadWhereBothMeaningsAreTheSame) {
  EXPECT_EQ(read("0,0\n2,0\n4,0\n"), (std::vector<double>{0, 2, 4}));
}

TEST_F(Times, ThatAreNoneAreRefused) {
  refuse("", "no table");
  refuse("time\n", "no table");
  refuse("0\n1\nstop\n", "line 3");
  refuse("time,x\n0,1\n-,2\n", "line 3");
  refuse("0\n1e999\n", "line 2");
  refuse(std::string("0\n\0\n", 4), "NUL");
  ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
  for (const fs::path& path : {fs::path("/dev/zero"), file("pipe"), fs::temp_directory_path(), file("none")})
    expect_file_error([&] { read_times(path); }, path.string());
  std::ofstream(file("large")).close();
  fs::resize_file(file("large"), std::uintmax_t{1} << 40);
  expect_file_error([&] { read_times(file("large")); }, "256 MiB");
}

}  // namespace
}  // namespace dic::run

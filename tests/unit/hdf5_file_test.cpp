#include "io/hdf5_file.hpp"

#include <fstream>

#include "io/hdf5_input.hpp"
#include "support/io_files.hpp"

namespace dic {
namespace {

using namespace test;

class Hdf5Input : public Io {};

TEST_F(Hdf5Input, ReadsWhatWasWrittenAndConvertsTypes) {
  const std::vector<double> values = {1, 2.5, -3, 4, 5, 6};
  hdf5::OutputFile out(file("a.h5"));
  out.write("/group/values", {2, 3}, values.data());
  out.close();
  hdf5::InputFile in(file("a.h5"));
  std::vector<double> same;
  in.read("/group/values", same);
  EXPECT_EQ(same, values);
  std::vector<std::int32_t> whole;
  in.read("/group/values", whole);
  EXPECT_EQ(whole[2], -3);
}

TEST_F(Hdf5Input, FailuresNameTheFile) {
  hdf5::OutputFile(file("a.h5")).close();
  std::vector<double> values;
  hdf5::InputFile in(file("a.h5"));
  EXPECT_THROW(in.read("/missing", values), FileError);
  EXPECT_THROW(hdf5::InputFile(file("none.h5")), FileError);
  std::ofstream(file("text.h5")) << "no HDF5";
  try {
    hdf5::InputFile text(file("text.h5"));
    FAIL();
  } catch (const FileError& e) {
    EXPECT_NE(std::string(e.what()).find("text.h5"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace dic

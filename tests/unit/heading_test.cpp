#include "io/heading.hpp"

#include <gtest/gtest.h>

// Tests what the heading of a column says: name, unit, quantity.
namespace dic::io {
namespace {

struct Expected {
  const char* text;
  const char* name;
  const char* unit;
  Quantity quantity;
  double factor;  ///< to s or N, 0: unknown
};

TEST(Heading, SaysQuantityAndUnit) {
  constexpr double pound = 4.4482216152605, kilogram = 9.80665;
  for (const Expected& expected : std::vector<Expected>{
           {"Time (s)", "Time", "s", Quantity::time, 1},
           {"Time (ms)", "Time", "ms", Quantity::time, 1e-3},
           {"Time [min]", "Time", "min", Quantity::time, 60},
           {"Elapsed Time (s)", "Elapsed Time", "s", Quantity::time, 1},
           {"time_ms", "time", "ms", Quantity::time, 1e-3},
           {"Zeit / h", "Zeit", "h", Quantity::time, 3600},
           {"Prüfzeit in s", "Prüfzeit", "s", Quantity::time, 1},
           {"Time, µs", "Time", "µs", Quantity::time, 1e-6},
           {"TIME (SEC)", "TIME", "SEC", Quantity::time, 1},
           {"TimeStamp", "TimeStamp", "", Quantity::time, 1},
           {"t", "t", "", Quantity::time, 1},
           {"X_Value", "X_Value", "", Quantity::time, 1},
           {"Time (milliseconds)", "Time", "milliseconds", Quantity::time, 1e-3},
           {"Time (Minutes)", "Time", "Minutes", Quantity::time, 60},
           {"Time (cycles)", "Time", "cycles", Quantity::time, 0},
           {"Time (m)", "Time", "m", Quantity::time, 0},
           {"Force [N]", "Force", "N", Quantity::force, 1},
           {"Force_kN", "Force", "kN", Quantity::force, 1e3},
           {"F / kN", "F", "kN", Quantity::force, 1e3},
           {"F/kN", "F", "kN", Quantity::force, 1e3},
           {"Force (KN)", "Force", "KN", Quantity::force, 1e3},
           {"Force [kn]", "Force", "kn", Quantity::force, 1e3},
           {"Force {MN}", "Force", "MN", Quantity::force, 1e6},
           {"Force [mN]", "Force", "mN", Quantity::force, 1e-3},
           {"Force [mn]", "Force", "mn", Quantity::force, 0},
           {"Load (lbf)", "Load", "lbf", Quantity::force, pound},
           {"Load (kips)", "Load", "kips", Quantity::force, 1e3 * pound},
           {"Load (KGF)", "Load", "KGF", Quantity::force, kilogram},
           {"Kraft in daN", "Kraft", "daN", Quantity::force, 10},
           {"Standardkraft [N]", "Standardkraft", "N", Quantity::force, 1},
           {"AxialForce kN", "AxialForce", "kN", Quantity::force, 1e3},
           {"Force (Kilonewton)", "Force", "Kilonewton", Quantity::force, 1e3},
           {"Channel 3 [kN]", "Channel 3", "kN", Quantity::force, 1e3},
           {"[kN] Force", "Force", "kN", Quantity::force, 1e3},
           {"kN", "kN", "kN", Quantity::force, 1e3},
           {"Force", "Force", "", Quantity::force, 1},
           {"Force [furlong]", "Force", "furlong", Quantity::force, 0},
           {"Force min", "Force min", "", Quantity::force, 1},
           {"Load (MPa)", "Load", "MPa", Quantity::other, 1},
           {"Force [V]", "Force", "V", Quantity::other, 1},
           {"Extension (mm)", "Extension", "mm", Quantity::other, 1},
           {"Extension", "Extension", "", Quantity::unknown, 1},
           {"Load step", "Load step", "", Quantity::unknown, 1},
           {"Force rate", "Force rate", "", Quantity::unknown, 1},
           {"Frame", "Frame", "", Quantity::frame, 1},
           {"Image No.", "Image No.", "", Quantity::frame, 1},
           {"Frame time [ms]", "Frame time", "ms", Quantity::time, 1e-3},
       }) {
    const Heading heading = read_heading(expected.text);
    EXPECT_EQ(heading.name, expected.name) << expected.text;
    EXPECT_EQ(heading.unit, expected.unit) << expected.text;
    EXPECT_EQ(static_cast<int>(heading.quantity), static_cast<int>(expected.quantity)) << expected.text;
    EXPECT_DOUBLE_EQ(heading.factor, expected.factor) << expected.text;
  }
}

TEST(Heading, TakesItsUnitFromTheLineBelow) {
  const Heading heading = read_heading("Force", "(kN)");
  EXPECT_EQ(heading.name + heading.unit, "ForcekN");
  EXPECT_EQ(heading.factor, 1e3);
  EXPECT_TRUE(is_unit("(kN)") && is_unit("mm") && is_unit("[whatever]") && is_unit("%"));
  EXPECT_FALSE(is_unit("Force") || is_unit("1.5"));
}

TEST(Heading, HasNoControlCharacters) {
  EXPECT_EQ(read_heading("\x1b[31mForce\n [N]").text.find_first_of("\x1b\n"), std::string::npos);
}

}  // namespace
}  // namespace dic::io

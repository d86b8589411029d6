#pragma once

/// The groups that `dic bench` runs by default. POINTS stands for a number of points that suits the device,
/// LEVELS for the levels that can be timed there.
namespace dic::bench {

constexpr const char* kDefaultGroups = R"(
[[group]]
name = "dic"
reference = [21, 31, 32, 61, 64]
shifts = [15, 16, 31]
n = "POINTS"
image = 2048
variant = ["planner", "all"]
level = LEVELS

[[group]]
name = "dic types"
type = ["u16", "u16:12", "f32"]
reference = [31, 32]
shifts = [15, 16]
n = "POINTS"
image = 2048
variant = ["planner", "all"]
level = LEVELS

[[group]]
name = "dic outputs"
reference = 31
shifts = 15
n = "POINTS"
image = 2048
criterion = ["cross_correlation", "zncc", "ncc", "ssd"]
output = "surfaces"
variant = ["planner", "naive"]

[[group]]
name = "dic masks"
reference = [31, 32]
shifts = [2, 15]
n = "POINTS"
image = 2048
masks = true
variant = ["planner", "all"]
level = LEVELS

[[group]]
name = "dic frames"
pairing = "n_to_mn"
reference = 31
shifts = 15
n = 100
m = [1, 4, 16]
image = 1024
variant = ["planner", "naive"]

[[group]]
name = "from nothing"
reference = 31
shifts = 15
n = "POINTS"
image = 2048
level = "whole"

[[group]]
name = "full"
pairing = ["one_to_one", "one_to_many", "n_to_mn", "n_to_m"]
type = "f32"
reference = [16, 17, 31, 32, 61, 64]
shifts = "full"
n = 2
m = 2
criterion = "cross_correlation"
variant = ["planner", "all"]
level = LEVELS

[[group]]
name = "full, large"
type = "f32"
reference = [127, 128]
shifts = "full"
criterion = "cross_correlation"
variant = ["planner", "all"]
level = LEVELS

[[group]]
name = "full, largest"
type = "f32"
reference = [251, 256]
shifts = "full"
criterion = "cross_correlation"
variant = ["planner", "cpu-direct", "cpu-fft"]
level = LEVELS

[[group]]
name = "rectangle"
reference = "41x21"
window = "64x128"
shifts = "-8:40,-20:30"
n = 100
criterion = "cross_correlation"
type = ["u8", "f32"]
variant = ["planner", "all"]
level = LEVELS

[[group]]
name = "template"
reference = 64
window = [512, 1024]
shifts = "valid"
variant = ["planner", "naive"]
)";

constexpr const char* kQuickGroups = R"(
[[group]]
name = "dic"
reference = [21, 31, 61]
shifts = 15
n = "POINTS"
image = 1024
variant = ["planner", "naive"]

[[group]]
name = "dic, 16 bit"
type = "u16"
reference = 31
shifts = 15
n = "POINTS"
image = 1024
variant = ["planner", "naive"]
)";

}  // namespace dic::bench

/// Input: a first byte that selects the kind, then the log of a run, or changes (exclusive or) to the file of
/// its states or to one state, from which the next frame is then measured.
#include <dic/error.hpp>
#include <dic/synth.hpp>
#include <dic/track_stream.hpp>
#include <fstream>
#include <vector>

#include "memory_file.hpp"
#include "run/run_log.hpp"
#include "run/state_file.hpp"

namespace dic::run {
namespace {

/// Two frames and the state from which their measurement starts.
class Run {
 public:
  Run() {
    stream_.push(current_);
    state_ = stream_.wait()->state;
    require(!state_.empty());
  }

  const std::vector<std::byte>& state() const { return state_; }

  void measure_from(std::span<const std::byte> state) {
    stream_.reset(reference_);
    if (!stream_.restore(state)) return;
    stream_.push(current_);
    stream_.wait();
  }

 private:
  static Image frame(int k) {
    SynthOptions speckle;
    speckle.size = {64, 64};
    speckle.motion.u = 0.4;
    speckle.threads = 1;
    return synth_frame(speckle, k);
  }
  static TrackOptions options() {
    TrackOptions options;
    options.refine.subset = 15;
    options.step = 12;
    options.threads = 1;
    options.keep_state = true;
    return options;
  }

  Image reference_ = frame(0), current_ = frame(1);
  TrackStream stream_{options(), reference_};
  std::vector<std::byte> state_;
};

std::vector<std::byte> changed(std::vector<std::byte> bytes, std::span<const std::byte> change) {
  for (std::size_t k = 0; k < change.size(); ++k)
    if (k < bytes.size())
      bytes[k] ^= change[k];
    else
      bytes.push_back(change[k]);
  return bytes;
}

/// The file that a run leaves, with the states of two frames.
std::vector<std::byte> file_of_states(const std::vector<std::byte>& state) {
  std::string folder = (std::filesystem::temp_directory_path() / "fuzz_state_XXXXXX").string();
  require(mkdtemp(folder.data()) != nullptr);
  const std::filesystem::path path = std::filesystem::path(folder) / "states";
  StateFile file(path);
  for (const int frame : {1, 2}) file.write(frame, state);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
  std::filesystem::remove_all(folder);
  return bytes;
}

void read(int kind, std::span<const std::byte> input) {
  static Run run;
  static const std::vector<std::byte> states = file_of_states(run.state());
  if (kind == 2) return run.measure_from(changed(run.state(), input));
  const auto bytes = kind == 1 ? changed(states, input) : std::vector(input.begin(), input.end());
  const MemoryFile file({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  if (kind == 0) RunLog::read(file.path());
  if (kind == 1)
    for (const int frame : {1, 2, 3}) StateFile::read(file.path(), frame);
}

}  // namespace
}  // namespace dic::run

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) dic::run::read(data[0], std::as_bytes(std::span(data + 1, size - 1)));
  return 0;
}

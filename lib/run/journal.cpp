#include "run/journal.hpp"

#include <chrono>
#include <dic/error.hpp>
#include <system_error>

namespace dic::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStateName = ".dic-state";

}  // namespace

template <typename Summary>
Journal<Summary>::Journal(OutputFolder& folder, fs::path result, const Log::Contents& done, bool keeps_log)
    : folder_(folder), result_(std::move(result)) {
  if (keeps_log) log_.emplace(folder_.claim(OutputFolder::kFramesName), done);
}

template <typename Summary>
void Journal<Summary>::set_state(std::int64_t frame, std::vector<std::byte> state) {
  state_frame_ = frame;
  new_state_ = std::move(state);
}

template <typename Summary>
void Journal<Summary>::write() {
  if (!new_state_.empty()) {
    if (!state_) state_.emplace(folder_.claim(kStateName));
    state_->write(state_frame_, new_state_);
    new_state_.clear();
  }
  if (log_) log_->add(noted_);
  noted_.clear();
  sync_now_and_then();
}

template <typename Summary>
void Journal<Summary>::sync_now_and_then() {
  constexpr double kSyncSeconds = 5;
  if (since_sync_.seconds() < kSyncSeconds) return;
  if (!fs::exists(result_)) return;  // before the first frame
  if (syncing_.valid() && syncing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  if (syncing_.valid()) syncing_.get();
  syncing_ = std::async(std::launch::async, [this, frames = log_ ? log_->frames() : 0] {
    sync_to_disk(result_);
    if (log_) log_->mark_on_disk(frames);
  });
  since_sync_ = {};
}

template <typename Summary>
void Journal<Summary>::finish(bool goes_on) {
  if (syncing_.valid()) syncing_.get();
  if (goes_on) return;
  state_.reset();
  std::error_code ignored;
  fs::remove(result_.parent_path() / kStateName, ignored);
}

template <typename Summary>
typename Journal<Summary>::Log::Contents Journal<Summary>::read(const fs::path& folder) {
  const fs::path path = folder / OutputFolder::kFramesName;
  auto contents = Log::read(path);
  if (!contents)
    throw FileError(
        path.string() +
        " is damaged, and with it what the run had done: start again with --force, or in another folder.");
  return *std::move(contents);
}

template <typename Summary>
std::vector<std::byte> Journal<Summary>::state_after(const fs::path& folder, std::int64_t frame) {
  return StateFile::read(folder / kStateName, frame);
}

template class Journal<FrameSummary>;
template class Journal<StereoFrameSummary>;

}  // namespace dic::run

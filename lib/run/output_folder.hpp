#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace dic::run {

/// Makes file names without endings unique.
class UniqueStems {
 public:
  /// Returns a name that no earlier call returned: `stem`, or `stem` with _2, _3, ... at its end.
  std::string unique(const std::string& stem);

 private:
  std::set<std::string> stems_;
};

/// The folder of one result. Every file is recorded in the folder's list before it is written, so that a
/// later run with `force` can replace exactly what dic wrote, also after a run that was killed. One run at a
/// time writes into a folder. Symbolic links inside the folder are never followed.
///
/// A new result that replaces an earlier one is collected in a subfolder until `commit`: a run that fails
/// leaves the earlier one as it was. A commit that was cut off is finished by the next object for the folder.
/// An earlier result without a measured frame does not need `force`.
///
/// A result that a run left unfinished, in the folder or collected in a subfolder, can be continued.
class OutputFolder {
 public:
  /// Treatment of an earlier result. change: the claimed files take the place of those of their name, and
  /// all others stay.
  enum class Earlier { refuse, replace, resume, change };

  /// Checks the folder and changes nothing, except that it finishes a commit that was cut off. Throws
  /// FileError if a result exists and `earlier` is refuse,
  /// another run writes there, a file would replace one that dic did not write, or the folder cannot be
  /// written.
  OutputFolder(std::filesystem::path folder, Earlier earlier);
  /// Removes files that were collected and neither committed nor kept, unless a later run can continue them.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Folder of the result that is continued; empty if there is none, or resuming was not asked for.
  const std::filesystem::path& resumed() const { return resumed_; }
  /// True if the continued result was collected to replace another one.
  bool resumes_a_collection() const { return !resumed_.empty() && resumed_ != folder_; }
  /// True if the run.json of the continued result says that its run was completed.
  bool resumed_is_complete() const;
  /// Creates the folder. Throws FileError as the constructor does, if the folder has changed since.
  void begin();
  /// Returns the path of a file that is about to be written, and creates its parent. name: relative to the
  /// folder. Throws FileError if dic did not write an existing file of that name.
  std::filesystem::path claim(const std::filesystem::path& name);
  /// Adds a file that dic wrote there before to the result. name: relative to the folder.
  void adopt(const std::filesystem::path& name);
  std::string unique_stem(const std::string& stem) { return stems_.unique(stem); }
  /// Makes the claimed files, all written by now, the result of the folder in place of the earlier one.
  void commit();
  /// True if `commit` has begun and failed: the result is whole, and the next object finishes the commit.
  bool is_committing() const;
  /// Leaves the claimed files where they are, so that a later run can continue. Returns their folder.
  std::filesystem::path keep();

  /// Name of the file that every resumable result has.
  static constexpr const char* kFramesName = ".dic-frames.jsonl";

 private:
  /// The open and locked folder; closed even if the constructor throws.
  struct Lock {
    Lock() = default;
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    int folder = -1;
  };

  bool collects() const { return !collection_.empty(); }
  void lock();
  void look_at_earlier_result();
  std::filesystem::path find_unfinished() const;
  void remove_leftovers() const;
  std::filesystem::path list_path() const;

  std::filesystem::path folder_;
  Earlier wanted_;
  std::filesystem::path resumed_;
  Lock lock_;
  std::filesystem::path collection_;  // folder of a result that replaces another one; empty otherwise
  std::set<std::string> earlier_;     // files of the existing result
  std::set<std::string> claimed_;
  UniqueStems stems_;
};

}  // namespace dic::run

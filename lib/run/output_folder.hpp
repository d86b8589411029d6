#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace dic::run {

/// Names of files without their endings, none twice.
class UniqueStems {
 public:
  /// One that no earlier call returned: `stem`, or with _2, _3, ... at its end.
  std::string unique(const std::string& stem);

 private:
  std::set<std::string> stems_;
};

/// The folder of one result. Every file is recorded in the folder's list before it is written, so that a
/// later run with `force` can replace exactly what dic wrote, also after a run that was killed. One run at a
/// time writes into a folder. Symbolic links inside the folder are never followed.
///
/// A new result that replaces an earlier one is collected in a subfolder until `commit`: a run that fails
/// leaves the earlier one as it was. An earlier result without a measured frame does not need `force`.
///
/// A result that a run left unfinished, in the folder or collected in a subfolder, can be gone on with.
class OutputFolder {
 public:
  enum class Earlier { refuse, replace, resume };

  /// Checks and changes nothing. Throws FileError: a result is there and `earlier` is refuse, another run
  /// writes there, a file would replace one that dic did not write, or the folder cannot be written.
  OutputFolder(std::filesystem::path folder, Earlier earlier);
  /// Removes what was collected and not committed, unless it is kept.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Where the result lies that is gone on with; empty where there is none, or it was not asked for.
  const std::filesystem::path& resumed() const { return resumed_; }
  /// Its run.json says that the run came to its end.
  bool resumed_is_complete() const;
  /// Creates the folder. Throws FileError, as the constructor does where the folder has changed meanwhile.
  void begin();
  /// The path of a file that is written now, `name` relative to the folder; creates its parent. Throws
  /// FileError where a file of that name was not written by dic.
  std::filesystem::path claim(const std::filesystem::path& name);
  /// A file that dic wrote there before, `name` relative to the folder, belongs to the result.
  void adopt(const std::filesystem::path& name);
  std::string unique_stem(const std::string& stem) { return stems_.unique(stem); }
  /// The claimed files, all written by now, become the folder's result in place of the earlier one.
  void commit();
  /// What was claimed stays where it is, so that a later run can go on with it. Returns where.
  std::filesystem::path keep();

  /// The file that every result has that can be gone on with.
  static constexpr const char* kFramesName = ".dic-frames.jsonl";

 private:
  /// The folder, open while it is locked; closed even where the constructor throws.
  struct Lock {
    Lock() = default;
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    int folder = -1;
  };

  bool replaces() const { return !earlier_.empty(); }
  void lock();
  void look_at_earlier_result();
  std::filesystem::path find_unfinished() const;
  void remove_leftovers() const;
  std::filesystem::path list_path() const;
  void append_to_list(const std::set<std::string>& names) const;

  std::filesystem::path folder_;
  Earlier wanted_;
  std::filesystem::path resumed_;
  Lock lock_;
  std::filesystem::path collection_;  // of a result that replaces another; a name that nothing else has
  std::set<std::string> earlier_;     // files of the result that is there
  std::set<std::string> claimed_;
  UniqueStems stems_;
};

}  // namespace dic::run

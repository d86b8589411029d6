#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

/// Names of files in a folder of results, relative to it, and lists of such names.
namespace dic::run {

/// Throws the FileError of a folder that cannot be written.
[[noreturn]] void throw_not_writable(const std::filesystem::path& path, const std::string& reason);

/// True if something exists at this path itself, without following a symbolic link.
bool is_there(const std::filesystem::path& path);

/// True if a regular file is at this path itself.
bool is_regular(const std::filesystem::path& path);

/// True if all parents of the file inside the folder are real folders: a symbolic link would lead outside.
bool has_own_parents(const std::filesystem::path& folder, const std::filesystem::path& name);

/// Creates a folder and its parents. Throws FileError.
void create_folder(const std::filesystem::path& folder);

/// Files of a folder and its subfolders, relative to it, without temporary ones.
std::set<std::string> files_below(const std::filesystem::path& folder);

/// Temporary files of a folder itself, which a killed run left behind.
std::vector<std::filesystem::path> temporary_files_in(const std::filesystem::path& folder);

/// Reads the names in a list that stay inside the folder: a list that was tampered with must not lead
/// outside. Empty if there is no list.
std::set<std::string> read_names(const std::filesystem::path& list, const std::filesystem::path& folder);

/// Replaces a list as a whole. Throws FileError.
void write_names(const std::filesystem::path& list, const std::set<std::string>& names);

/// Adds a name to a list. Throws FileError.
void append_name(const std::filesystem::path& list, const std::string& name);

}  // namespace dic::run

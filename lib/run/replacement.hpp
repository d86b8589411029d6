#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

/// Replacement of files of a folder by those that were collected in a subfolder of it. Several files cannot
/// be replaced at once, so a file in the collection says that the replacement has begun: whatever ends the
/// process then, the next one that writes into the folder finishes it. result.vtkhdf and run.json, which
/// describe each other, are always both old or both new, wherever the file system has links.
namespace dic::run {

/// Path of a new collection in a folder: a hidden subfolder with a unique name.
std::filesystem::path new_collection(const std::filesystem::path& folder);
/// Collections in a folder.
std::vector<std::filesystem::path> collections_in(const std::filesystem::path& folder);

/// True if the replacement by this collection has begun.
bool has_begun(const std::filesystem::path& collection);

/// True if a replacement in this folder has begun and was cut off.
bool has_unfinished_replacement(const std::filesystem::path& folder);

/// Replaces files of the folder by all files of the collection, and removes the `obsolete` files, which have
/// no successor. The list keeps those of its names that exist. Throws FileError; the replacement can then be
/// finished later.
void replace_by(const std::filesystem::path& folder, const std::filesystem::path& collection,
                const std::set<std::string>& obsolete, const std::filesystem::path& list);

/// Finishes what `replace_by` has begun in this folder, if anything. Throws FileError.
void finish_replacements(const std::filesystem::path& folder, const std::filesystem::path& list);

}  // namespace dic::run

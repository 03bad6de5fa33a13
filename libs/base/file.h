#pragma once
// Whole-file reading and writing with errors that name the path and the reason.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::base {

// The bytes of a regular file of at most max_bytes.
Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes);

// Writes beside the path and renames, so readers see the old file or the new one, never half of it.
enum class Readers : std::uint8_t { kOwner, kAsTheUmaskSays };  // a run is private; a picture that was asked for is not
Result<void> write_file(const std::string& path, std::string_view bytes, Readers readers = Readers::kOwner);

// Creates the directory and its parents, mode 0700. An existing directory is fine.
Result<void> make_directories(const std::string& path);

// Names (not paths) in a directory, sorted; "." and ".." left out. A missing directory is empty.
std::vector<std::string> list_directory(const std::string& path);

bool is_directory(const std::string& path);
bool is_file(const std::string& path);
std::uint64_t file_bytes(const std::string& path);  // 0 if it is not there

// Value of an environment variable, or the fallback when unset or empty.
std::string env_or(const char* name, std::string_view fallback);

// What kind of failure an errno of open or rename is.
ErrorCode code_of_errno(int error_number);
// "what: reason" with the text of errno.
Error errno_error(ErrorCode code, std::string_view what, int error_number);

// Where this user's programs keep what can be made again: $LLMPROF_CACHE_DIR, $XDG_CACHE_HOME/llmprof or
// ~/.cache/llmprof. "" if there is no such place. It need not exist yet.

std::string cache_folder();

}  // namespace llmprof::base

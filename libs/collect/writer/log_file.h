#pragma once
// The log of this process image: created exclusively, appended with write(2), never trusted to be still ours.
// Only the starting thread and then the writer use it.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect {

// Creates <folder>/<host>-<pid>-<start ticks>-<n>.log with its header; n is the first that is free. False: cannot.
bool open_log();

// Closes the log and begins another one that continues it: …-<n>.<number>.log. False: cannot, errno says why.
bool open_segment(std::uint32_t number);
// Deletes an earlier one.
void remove_segment(std::uint32_t number);

// Appends the bytes, all or nothing: what a failed attempt left behind is cut off again. False: `error` says why.
bool append_to_log(const void* bytes, std::size_t size, int* error);

// Takes the last append back, to make room for a record that says what is missing. How many bytes it had; 0: the file
// has nothing but its header and its first block, or cannot be cut.
std::uint64_t cut_last_append();

std::uint64_t log_bytes();
std::uint64_t start_ticks();
const char* host_name();

// The recorder puts a file named "full" into the folder when the recording as a whole has reached its limit.
bool folder_is_full();

// Leaves the reason why this process has no log, or no longer: a symbolic link, which takes no descriptor and no space.
void note_off(int error, const char* what);

void withdraw_note();  // the log can say it itself

void discard_log();  // it holds nothing
void close_log();
void close_inherited_log();

}  // namespace llmprof::collect

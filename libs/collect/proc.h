#pragma once
// What the kernel says about this process.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect {

// Reads a file into `out`; the number of bytes, 0 if it cannot be read.
std::size_t read_file(const char* path, char* out, std::size_t capacity);

// Field 22 of /proc/self/stat: with the pid it names the process for this boot. 0: unknown.
std::uint64_t read_start_ticks();
std::uint64_t parse_start_ticks(const char* stat, std::size_t length);

// The host name with everything that does not belong into a file name replaced.
void read_host_name(char* out, std::size_t capacity);

// Value of the first of RANK, LOCAL_RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK that is set; null if none.
const char* rank_variable();

// "RANK=1 WORLD_SIZE=8": what launchers and engines tell a process of its job, in its environment. Numbers only: a
// value that is none is no size, and may be a secret. The length; 0: they say nothing.
std::size_t read_launcher_variables(char* out, std::size_t capacity);

}  // namespace llmprof::collect

#pragma once
// The memory CUPTI writes its records to. CUPTI asks for buffers and hands them back from threads of its choice; they
// are parsed later, by ours. Kept for the life of the process: CUPTI may call until the very end.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmprof::bench::cuda {

struct FilledBuffer {
  std::uint8_t* data = nullptr;
  std::size_t valid_bytes = 0;
};

inline constexpr std::size_t kCuptiBufferBytes = std::size_t{1} << 18;  // a thousand records: more than a batch has
inline constexpr std::size_t kMostCuptiBuffers = 64;

std::uint8_t* request_cupti_buffer();  // zeroed; nullptr when all are in use: CUPTI then drops records, and counts them
void complete_cupti_buffer(std::uint8_t* data, std::size_t valid_bytes);
std::vector<FilledBuffer> take_cupti_buffers();  // completed ones, in order
void recycle_cupti_buffer(const FilledBuffer& buffer);

}  // namespace llmprof::bench::cuda

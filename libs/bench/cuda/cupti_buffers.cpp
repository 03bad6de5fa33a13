#include "bench/cuda/cupti_buffers.h"

#include <sys/mman.h>

#include <cstring>
#include <mutex>
#include <utility>

namespace llmprof::bench::cuda {
namespace {

struct Pool {
  std::mutex mutex;
  std::size_t made = 0;
  std::vector<std::uint8_t*> free;
  std::vector<FilledBuffer> filled;
};

Pool& pool() {
  static Pool& leaked = *new Pool;  // callbacks may come after static destructors
  return leaked;
}

}  // namespace

std::uint8_t* request_cupti_buffer() {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (!p.free.empty()) {
    std::uint8_t* data = p.free.back();
    p.free.pop_back();
    return data;
  }
  if (p.made == kMostCuptiBuffers) return nullptr;
  void* memory = ::mmap(nullptr, kCuptiBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ++p.made;
  return static_cast<std::uint8_t*>(memory);
}

void complete_cupti_buffer(std::uint8_t* data, std::size_t valid_bytes) {
  const std::lock_guard lock(pool().mutex);
  pool().filled.push_back({data, valid_bytes});
}

std::vector<FilledBuffer> take_cupti_buffers() {
  const std::lock_guard lock(pool().mutex);
  return std::exchange(pool().filled, {});
}

void recycle_cupti_buffer(const FilledBuffer& buffer) {
  std::memset(buffer.data, 0, kCuptiBufferBytes);
  const std::lock_guard lock(pool().mutex);
  pool().free.push_back(buffer.data);
}

}  // namespace llmprof::bench::cuda

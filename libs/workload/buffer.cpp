#include "workload/buffer.h"

#include <sys/mman.h>

#include <new>

namespace llmprof::workload {

FloatBuffer::~FloatBuffer() {
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(count_) * sizeof(float));
}

float* FloatBuffer::reserve(std::int64_t count) {
  if (count <= count_) return data_;
  FloatBuffer().swap(*this);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // advice: fewer page faults and TLB misses where the system agrees
  data_ = static_cast<float*>(memory);
  count_ = count;
  return data_;
}

}  // namespace llmprof::workload

#pragma once
// A growing array of floats, aligned to 64 bytes, that nobody touches before its user does: the threads that fill it
// take its page faults together.

#include <cstdint>
#include <utility>

namespace llmprof::workload {

class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(std::int64_t count) { reserve(count); }
  FloatBuffer(FloatBuffer&& other) noexcept { swap(other); }
  FloatBuffer& operator=(FloatBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~FloatBuffer();

  // At least `count` floats; what was in a smaller buffer is lost. Out of memory: std::bad_alloc.
  float* reserve(std::int64_t count);
  float* data() { return data_; }
  const float* data() const { return data_; }
  std::int64_t count() const { return count_; }

 private:
  void swap(FloatBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }
  float* data_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace llmprof::workload

#pragma once
// Reads from addresses that may be wrong, in this process: false where a plain load would end the program.

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace llmprof::collect {

inline bool read_own_memory(std::uintptr_t address, void* out, std::size_t bytes) {
  const iovec to{out, bytes}, from{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(bytes);
}

// How a structure is read: with care until the offsets have proven right, then with plain loads.
class CarefulMemory {
 public:
  static constexpr bool kCareful = true;
  template <class T>
  static bool load(std::uintptr_t address, T* value) {
    return read_own_memory(address, value, sizeof(T));
  }
};

class TrustedMemory {
 public:
  static constexpr bool kCareful = false;
  template <class T>
  static bool load(std::uintptr_t address, T* value) {
    __builtin_memcpy(value, reinterpret_cast<const void*>(address), sizeof(T));
    return true;
  }
};

}  // namespace llmprof::collect

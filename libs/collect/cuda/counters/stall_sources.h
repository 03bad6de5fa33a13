#pragma once
// Source lines of places in kernels. Code that was compiled with line numbers (nvcc -lineinfo) is kept when it is
// loaded; most is not, and costs nothing. CUPTI is asked about a place once, a few at a time.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collect/cuda/counters/pc_abi.h"
#include "collect/cuda/counters/stall_table.h"

namespace llmprof::collect::counters {

// Whether this is an ELF file with a section of line numbers.
bool has_lines(const char* cubin, std::size_t bytes);

struct Source {
  wire::StringId file;  // 0: not known
  std::uint32_t line;
};

class StallSources {
 public:
  static constexpr std::size_t kMostBytes = 64u << 20;  // of code
  static constexpr std::size_t kMostModules = 1024;

  // From any thread.
  void keep(const pc::Module& code);

  // The rest in our thread. Up to `most` questions until the next call of this.
  void allow(const pc::Library& library, std::size_t most) {
    library_ = &library;
    questions_ = most;
  }
  Source of(const StallKey& place);

 private:
  struct Module {
    std::atomic<const char*> cubin;  // null: not ready
    std::size_t bytes;
    std::uint64_t checksum;
    bool has_checksum;
  };
  struct Known {
    std::uint64_t cubin, pc_offset;
    wire::StringId function;
    Source source;
    bool used;
  };
  const Module* find(std::uint64_t checksum);
  Source ask(const Module& code, const StallKey& place);

  static constexpr std::size_t kKnown = 1u << 14;
  std::atomic<std::size_t> reserved_bytes_{0};
  std::atomic<std::size_t> reserved_{0};
  Module modules_[kMostModules]{};
  const pc::Library* library_ = nullptr;
  std::size_t questions_ = 0;
  std::size_t known_count_ = 0;
  Known known_[kKnown]{};
};

}  // namespace llmprof::collect::counters

#pragma once
// Reasons of stalls: their names, the sums by place and reason, source lines, and CUPTI's PC sampling itself.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collect/cuda/counters/pc_abi.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

// What CUPTI's numbers of stall reasons mean. Each reason comes twice: "…stalled_wait" counts all samples of warps that
// waited for it, "…stalled_wait_not_issued" those of them in which their scheduler issued nothing at all. (CUPTI's
// pages say so of its older interface: samples include latency samples.) We keep the two parts apart: with and without
// an issue. Plain memory, no CUPTI.

// "smsp__pcsamp_warps_issue_stalled_wait_not_issued" is "wait", not issued. Names of another form stay as they are.
struct ReasonName {
  const char* text;  // in the name that was given
  std::size_t length;
  bool not_issued;
};
ReasonName read_reason(const char* name);

class StallReasons {
 public:
  static constexpr std::size_t kMost = 128;  // numbers of CUPTI; H200: 40
  static constexpr std::size_t kNameBytes = 64;

  // False: no room.
  bool add(std::uint32_t index, const char* name);
  std::size_t count() const { return count_; }
  const char* name(std::size_t reason) const { return names_[reason]; }

  // Samples of one place, by reason.
  struct Samples {
    std::uint64_t issued[kMost];
    std::uint64_t not_issued[kMost];
    std::uint64_t unknown;  // of numbers that nobody announced
  };
  // Sorts what CUPTI counted. False: a reason has more samples without an issue than it has in all.
  bool sort(const pc::Reason* reasons, std::size_t count, Samples* samples) const;

 private:
  struct Number {
    std::uint32_t index;
    std::uint16_t reason;
    bool not_issued;
  };
  const Number* find(std::uint32_t index) const;

  std::size_t numbers_count_ = 0;
  std::size_t count_ = 0;
  Number numbers_[kMost]{};
  char names_[kMost][kNameBytes]{};
};

// How often warps were seen where, for which reason: sums that are taken out from time to time. Memory is given; zero
// bytes are an empty table. Not for several threads at once.
struct StallKey {
  std::uint64_t cubin;
  std::uint64_t pc_offset;
  wire::StringId function;
  std::uint16_t reason;
  bool issued;
  bool operator==(const StallKey&) const = default;
};

class StallTable {
 public:
  struct Entry {
    StallKey key;
    bool used;
    std::uint64_t samples;  // not yet taken
    std::uint64_t total;    // ever
  };
  static constexpr std::size_t kEntries = 1u << 18;
  static constexpr std::size_t kMostUsed = kEntries / 8 * 7;  // fuller ones are slow to search
  static constexpr std::size_t kBytes = kEntries * sizeof(Entry);

  void use(void* memory) { entries_ = static_cast<Entry*>(memory); }

  // False: the place is new and there is no room.
  bool add(const StallKey& key, std::uint64_t samples);

  // Hands up to `most` sums over and sets them back, going on where the last call stopped. `take` answers whether it
  // took the entry; when not, the walk ends and the sum stays. Whether everything was handed over.
  template <class Take>
  bool take(std::size_t most, Take take) {
    for (std::size_t i = 0; i < kEntries && pending_ > 0; ++i, at_ = (at_ + 1) % kEntries) {
      Entry& entry = entries_[at_];
      if (entry.samples == 0) continue;
      if (most-- == 0 || !take(entry)) return false;
      entry.samples = 0;
      --pending_;
    }
    return true;
  }

  std::size_t used() const { return used_; }
  std::size_t pending() const { return pending_; }  // entries with samples

 private:
  Entry* entries_ = nullptr;
  std::size_t used_ = 0, pending_ = 0, at_ = 0;
};

// Source lines of places in kernels. Code that was compiled with line numbers (nvcc -lineinfo) is kept when it is
// loaded; most is not, and costs nothing. CUPTI is asked about a place once, a few at a time.

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

// CUPTI's PC sampling on one context: its functions, found at run time in the CUPTI we use already, and the buffers it
// fills. Whatever fails is counted and said once.

// Of one fetch.
struct Fetched {
  const pc::Place* places;
  std::size_t count;
  std::uint64_t all_samples, dropped_samples, unknown_samples;
  bool buffer_full;  // of the device
  bool more;         // can be fetched at once
};

class PcSampler {
 public:
  static constexpr std::size_t kMostPlaces = 8192;      // of one fetch
  static constexpr std::uint32_t kPeriodExponent = 18;  // a sample of each multiprocessor every 2^18 cycles

  // Everything up to running. False: it cannot be; counted and said.
  bool start(void* context);
  bool fetch(Fetched* fetched);
  bool stop();

  const StallReasons& reasons() const { return reasons_; }
  // 0: CUPTI's own.
  std::uint32_t period_exponent() const { return period_exponent_; }
  const pc::Library& library() const { return library_; }

 private:
  bool load();
  bool read_reasons();
  bool map_buffers();
  bool configure();
  std::uint32_t configure_with(std::uint32_t exponent);

  void* context_ = nullptr;
  pc::Library library_{};
  StallReasons reasons_{};
  std::uint32_t indexes_[StallReasons::kMost]{};
  std::size_t index_count_ = 0;
  std::uint32_t period_exponent_ = 0;
  pc::Data* kept_ = nullptr;  // CUPTI's own, for what it must put somewhere
  pc::Data* read_ = nullptr;  // what we fetch into
  std::size_t filled_ = 0;    // places of read_ that the last fetch wrote
};

}  // namespace llmprof::collect::counters

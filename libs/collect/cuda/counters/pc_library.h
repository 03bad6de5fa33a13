#pragma once
// CUPTI's PC sampling on one context: its functions, found at run time in the CUPTI we use already, and the buffers it
// fills. Whatever fails is counted and said once.

#include "collect/cuda/counters/pc_abi.h"
#include "collect/cuda/counters/stall_reasons.h"

namespace llmprof::collect::counters {

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
  pc::ContextParams context_params() const { return {sizeof(pc::ContextParams), nullptr, context_}; }

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

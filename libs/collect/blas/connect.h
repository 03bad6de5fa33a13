#pragma once
// The way from libllmprof_blas.so to the collector.

#include <atomic>

#include "wire/collector_v1.h"

namespace llmprof::collect::blas {

enum class Link : std::uint32_t { kUndecided, kConnecting, kOn, kOff };

struct Connection {
  std::atomic<Link> link{Link::kUndecided};
  std::atomic<std::int32_t> pid{0};  // of the process that is connecting
  const llmprof_collector_table* table = nullptr;
};
extern constinit Connection connection;

// Loads the collector beside this library, if this process is to be recorded. Decides once.
Link connect();

// The collector's table; null: not recording.
inline const llmprof_collector_table* collector() {
  const Link link = connection.link.load(std::memory_order_acquire);
  if (link == Link::kOff) return nullptr;
  if (link != Link::kOn && connect() != Link::kOn) return nullptr;
  return connection.table;
}

}  // namespace llmprof::collect::blas

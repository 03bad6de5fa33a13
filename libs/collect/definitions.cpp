#include "collect/definitions.h"

#include "collect/lifecycle.h"

namespace llmprof::collect {

std::uint32_t define_domain(wire::StringId name) {
  Shared* shared = shared_memory();
  if (shared == nullptr || name == 0) return 0;
  for (std::uint32_t i = 1; i < kMaxDomains; ++i) {  // number 0 is the default domain
    wire::StringId there = 0;
    if (shared->domains[i].name.compare_exchange_strong(there, name, std::memory_order_acq_rel)) {
      g.definitions.fetch_add(1, std::memory_order_release);
      return i;
    }
    if (there == name) return i;
  }
  count_loss(wire::LossKind::kStringTableFull);
  return 0;
}

// `ready` goes 0 (free), 1 (being filled), 2 (defined). A thread lost in a fork leaves one entry unused, no more.
void define_category(std::uint32_t domain, std::uint32_t category, wire::StringId name) {
  Shared* shared = shared_memory();
  if (shared == nullptr) return;
  for (Category& entry : shared->categories) {
    std::uint32_t ready = 0;
    if (entry.ready.compare_exchange_strong(ready, 1, std::memory_order_acq_rel)) {
      entry.domain = domain;
      entry.category = category;
      entry.name = name;
      entry.ready.store(2, std::memory_order_release);
      g.definitions.fetch_add(1, std::memory_order_release);
      return;
    }
    if (ready == 2 && entry.domain == domain && entry.category == category && entry.name == name) return;
  }
  count_loss(wire::LossKind::kStringTableFull);
}

void define_library(wire::StringId path, std::uint8_t hooked) {
  Shared* shared = shared_memory();
  if (shared == nullptr || path == 0) return;
  for (Library& library : shared->libraries) {
    wire::StringId there = 0;
    const bool fresh = library.path.compare_exchange_strong(there, path, std::memory_order_acq_rel);
    if (!fresh && there != path) continue;
    if (!fresh && library.hooked.load(std::memory_order_relaxed) == hooked) return;
    library.hooked.store(hooked, std::memory_order_release);
    g.definitions.fetch_add(1, std::memory_order_release);
    return;
  }
}

}  // namespace llmprof::collect

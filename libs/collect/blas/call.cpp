#include "collect/blas/call.h"

namespace llmprof::collect::blas {

__thread std::uintptr_t outer_frame;

void name_site(const llmprof_collector_table* table, Site* site) {
  site->function_id.store(table->intern(name_of(site->function)), std::memory_order_relaxed);
  table->note_library(site->library, 1);
  site->library_id.store(table->intern(site->library), std::memory_order_release);
}

}  // namespace llmprof::collect::blas

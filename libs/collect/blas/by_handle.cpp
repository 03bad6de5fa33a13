#include "collect/blas/by_handle.h"

#include <string.h>

#include "collect/blas/connect.h"

namespace llmprof::collect::blas {
namespace {

constinit std::atomic<Site*> handle_sites[kFunctions]{};

}  // namespace

Site* handle_site(Function function) { return handle_sites[function].load(std::memory_order_acquire); }

// One library for each function: the first that was asked. The same name in another library keeps its own address, so
// that no call ever ends in a library it was not meant for; the search for libraries that are not hooked tells of it.
void* hook_for(const char* name, void* found) {
  const Function function = gpu_function(name);
  void* const hook = function != kFunctions ? handle_hook(function) : nullptr;
  const llmprof_collector_table* table = hook != nullptr ? collector() : nullptr;
  if (table == nullptr) return found;
  Site* site = handle_sites[function].load(std::memory_order_acquire);
  if (site == nullptr) {
    Site* const mine = make_handle_site(function, found);
    if (mine == nullptr) return found;
    if (handle_sites[function].compare_exchange_strong(site, mine, std::memory_order_acq_rel)) site = mine;
  }
  if (site->target != found && !is_loaded(site->target)) {  // it was closed: what is asked now takes its place
    Site* const mine = make_handle_site(function, found);
    if (mine == nullptr) return found;
    if (handle_sites[function].compare_exchange_strong(site, mine, std::memory_order_acq_rel)) site = mine;
  }
  if (site->target != found) return found;
  table->note_library(site->library, 1);
  return hook;
}

}  // namespace llmprof::collect::blas

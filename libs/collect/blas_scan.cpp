#include "collect/blas_scan.h"

#include <string.h>

#include "collect/definitions.h"
#include "collect/names.h"
#include "collect/unhooked.h"
#include "collect/walk_objects.h"

namespace llmprof::collect {
namespace {

int count_objects(dl_phdr_info* info, std::size_t, void* context) {
  *static_cast<std::uint64_t*>(context) = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

struct Look {
  bool report;
  bool found;
};

void on_found(void* context, const char* path) {
  auto* look = static_cast<Look*>(context);
  look->found = true;
  if (look->report) define_library(intern(*path != '\0' ? path : "the program itself"), 0);
}

bool is_provider(void*, const char* path) {
  Shared* shared = g.shared.load(std::memory_order_acquire);
  for (const Library& library : shared->libraries) {
    const wire::StringId id = library.path.load(std::memory_order_acquire);
    if (id == 0) return false;
    if (library.hooked.load(std::memory_order_acquire) != 0 && strcmp(shared->strings.text(id), path) == 0) return true;
  }
  return false;
}

void look_at(void* context, ImageList list) { find_unhooked_blas(list, {is_provider, on_found, context}); }

}  // namespace

void BlasScan::run(bool final) {
  std::uint64_t objects = 0;
  walk_objects(count_objects, &objects);
  const bool changed = objects != objects_;
  if (!changed && !look_again_ && !final) return;
  Look look{final || (look_again_ && !changed), false};
  with_images(look_at, &look);
  objects_ = objects;
  look_again_ = look.found && !look.report;
}

}  // namespace llmprof::collect

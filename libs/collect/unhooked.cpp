#include "collect/unhooked.h"

#include <string.h>

namespace llmprof::collect {
namespace {

constexpr const char* kHookedNames[] = {
#define LLMPROF_BLAS_FUNCTION(name, abi, real, bits) #name,
#define LLMPROF_BLAS_GUARDED(name, abi, real, bits)
#include "collect/blas/functions.def"
#undef LLMPROF_BLAS_FUNCTION
#undef LLMPROF_BLAS_GUARDED
};

bool is_hooked_name(const char* name) {
  if (strstr(name, "gem") == nullptr) return false;
  for (const char* hooked : kHookedNames) {
    if (strcmp(hooked, name) == 0) return true;
  }
  return false;
}

bool defines_blas(const Image& image) {
  for (const char* name : kHookedNames) {
    if (find_function(image, name) != nullptr) return true;
  }
  return false;
}

bool is_our_preload(const Image& image) { return strcmp(base_name(image.path), "libllmprof_blas.so") == 0; }

// Everything that an importer's calls may end in goes through us first, since our names come before theirs.
void mark_hooked(ImageList list, std::size_t importer, bool itself) {
  const std::size_t reached = closure(list, importer);
  for (std::size_t i = itself ? 0 : 1; i < reached; ++i) list.images[list.order[i]].hooked = true;
}

}  // namespace

void find_unhooked_blas(ImageList list, const UnhookedSearch& search) {
  bool preloaded = false;
  for (std::size_t i = 0; i < list.count; ++i) preloaded = preloaded || is_our_preload(list.images[i]);
  for (std::size_t i = 0; preloaded && i < list.count; ++i) {
    if (is_our_preload(list.images[i])) continue;
    const bool provider = search.is_provider(search.context, list.images[i].path);
    if (provider || any_import(list.images[i], is_hooked_name)) mark_hooked(list, i, provider);
  }
  for (std::size_t i = 0; i < list.count; ++i) {
    const Image& image = list.images[i];
    if (!image.hooked && !is_our_preload(image) && defines_blas(image)) search.found(search.context, image.path);
  }
}

}  // namespace llmprof::collect

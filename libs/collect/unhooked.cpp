#include "collect/unhooked.h"

#include <string.h>

namespace llmprof::collect {
namespace {

constexpr const char* kCpuNames[] = {
#define LLMPROF_BLAS_FUNCTION(name, abi, real, bits) #name,
#include "collect/blas/functions.def"
};
constexpr const char* kGpuNames[] = {
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) #name,
#include "collect/blas/functions.def"
};

template <std::size_t N>
bool contains(const char* const (&names)[N], const char* name) {
  for (const char* hooked : names) {
    if (strcmp(hooked, name) == 0) return true;
  }
  return false;
}

bool is_hooked_name(const char* name) {
  if (strncmp(name, "cublas", 6) == 0) return contains(kGpuNames, name);
  return strstr(name, "gem") != nullptr && contains(kCpuNames, name);
}

bool defines_blas(const Image& image) {
  if (is_cublas(image)) return true;
  for (const char* name : kCpuNames) {
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

bool is_cublas(const Image& image) {
  if (image.soname == nullptr) return false;
  return strncmp(image.soname, "libcublas.so.", 13) == 0 || strncmp(image.soname, "libcublasLt.so.", 15) == 0;
}

void find_unhooked_blas(ImageList list, bool (*is_provider)(const char* path)) {
  bool preloaded = false;
  for (std::size_t i = 0; i < list.count; ++i) preloaded = preloaded || is_our_preload(list.images[i]);
  for (std::size_t i = 0; preloaded && i < list.count; ++i) {
    if (is_our_preload(list.images[i])) continue;
    const bool provider = is_provider(list.images[i].path);
    const auto is_hooked_import = [](const Import& import) { return is_hooked_name(import.name); };
    const bool imports = !is_cublas(list.images[i]) && any_import(list.images[i], is_hooked_import);  // it calls itself
    if (provider || imports) mark_hooked(list, i, provider);
  }
  for (std::size_t i = 0; i < list.count; ++i) {
    Image& image = list.images[i];
    image.unhooked = !image.hooked && !is_our_preload(image) && defines_blas(image);
  }
}

}  // namespace llmprof::collect

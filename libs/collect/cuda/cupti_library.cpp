#include "collect/cuda/cupti_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/images.h"

namespace llmprof::collect::cupti {
namespace {

constexpr const char* kSonames[] = {"libcupti.so.13", "libcupti.so.12"};  // newest first
constexpr const char* kToolkits[] = {"/usr/local/cuda", "/usr/local/cuda-13", "/usr/local/cuda-12"};
constexpr const char* kInToolkit[] = {"extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib"};
// From the folder of libcudart: the same one, the layout of pip's packages, a toolkit.
constexpr const char* kBesideRuntime[] = {".", "../../cuda_cupti/lib", "../extras/CUPTI/lib64"};

struct Mapped {
  char cupti[512];
  char runtime_folder[512];
};

void put(char (&out)[512], const char* text, std::size_t length) {
  if (length >= sizeof(out)) return;
  memcpy(out, text, length);
  out[length] = '\0';
}

void look_at(ImageList list, Mapped* mapped) {
  for (std::size_t i = 0; i < list.count; ++i) {
    const char* path = list.images[i].path;
    if (is_cupti(path)) put(mapped->cupti, path, strlen(path));
    const char* base = base_name(path);
    if (strncmp(base, "libcudart.so", 12) == 0 && base > path)
      put(mapped->runtime_folder, path, static_cast<std::size_t>(base - path - 1));
  }
}

class Search {
 public:
  Search(Library* library, char (&tried)[kTriedBytes]) : library_(library), tried_(tried) { tried_[0] = '\0'; }

  bool run() {
    Mapped mapped{};
    with_images([&](ImageList list) { look_at(list, &mapped); });
    for (const char* soname : kSonames) {
      if (take(dlopen(soname, RTLD_LAZY | RTLD_NOLOAD), soname)) return true;
    }
    if (mapped.cupti[0] != '\0' && open(mapped.cupti)) return true;
    const char* wanted = secure_getenv("LLMPROF_CUPTI");
    if (wanted != nullptr && *wanted != '\0') return as_wanted(wanted);
    return beside_runtime(mapped.runtime_folder) || in_toolkits() || by_loader();
  }

 private:
  // Who names one means that one: another in its place would go unnoticed.
  bool as_wanted(const char* path) {
    if (open(path)) return true;
    if (tried_[0] == '\0') snprintf(tried_, sizeof(tried_), "LLMPROF_CUPTI: %s cannot be loaded", path);
    return false;
  }

  bool beside_runtime(const char* folder) {
    if (*folder == '\0') return false;
    for (const char* soname : kSonames) {
      for (const char* place : kBesideRuntime) {
        if (open_in(folder, place, soname)) return true;
      }
    }
    return false;
  }

  bool in_toolkits() {
    const char* const home = secure_getenv("CUDA_HOME");
    for (const char* soname : kSonames) {
      for (const char* place : kInToolkit) {
        if (home != nullptr && *home == '/' && open_in(home, place, soname)) return true;
        for (const char* toolkit : kToolkits) {
          if (open_in(toolkit, place, soname)) return true;
        }
      }
    }
    return false;
  }

  bool by_loader() {
    for (const char* soname : kSonames) {
      if (open(soname)) return true;
    }
    if (tried_[0] == '\0') snprintf(tried_, sizeof(tried_), "no libcupti.so.13 or .12 was found");
    return false;
  }

  bool open_in(const char* folder, const char* place, const char* soname) {
    char path[512];
    const int length = snprintf(path, sizeof(path), "%s/%s/%s", folder, place, soname);
    return length > 0 && static_cast<std::size_t>(length) < sizeof(path) && open(path);
  }

  bool open(const char* path) { return take(dlopen(path, RTLD_LAZY | RTLD_LOCAL), path); }

  // A library that is there but of no use is worth a word.
  bool take(void* handle, const char* path) {
    if (handle == nullptr) return false;
    const char* missing = nullptr;
#define LLMPROF_CUPTI_LOAD(member, call, needed, ...)                                                        \
  library_->member = reinterpret_cast<decltype(library_->member)>(dlsym(handle, wire::name_of(Call::call))); \
  if ((needed) && library_->member == nullptr) missing = wire::name_of(Call::call);
    LLMPROF_CUPTI_FUNCTIONS(LLMPROF_CUPTI_LOAD)
#undef LLMPROF_CUPTI_LOAD
    if (missing != nullptr) {
      snprintf(tried_, sizeof(tried_), "%s lacks %s", path, missing);
      return false;
    }
    library_->version = 0;
    if (library_->get_version(&library_->version) != kSuccess || library_->version < kOldestVersion) {
      snprintf(tried_, sizeof(tried_), "%s is of API version %u, older than %u", path, library_->version,
               kOldestVersion);
      return false;
    }
    snprintf(library_->path, sizeof(library_->path), "%s", path);
    library_->handle = handle;
    library_->address = reinterpret_cast<std::uintptr_t>(library_->get_version);
    return true;
  }

  Library* library_;
  char (&tried_)[kTriedBytes];
};

}  // namespace

std::uint32_t count_copies(const Library& library, char (&other)[512]) {
  std::uint32_t count = 0;
  other[0] = '\0';
  with_images([&](ImageList list) {
    for (std::size_t i = 0; i < list.count; ++i) {
      const Image& image = list.images[i];
      if (!is_cupti(image.path)) continue;
      ++count;
      const bool ours = library.address >= image.low && library.address < image.high;
      if (!ours) snprintf(other, sizeof(other), "%s", image.path);
    }
  });
  return count;
}

bool is_cupti(const char* path) { return strncmp(base_name(path), "libcupti.so", 11) == 0; }

bool find_library(Library* library, char (&tried)[kTriedBytes]) { return Search(library, tried).run(); }

}  // namespace llmprof::collect::cupti

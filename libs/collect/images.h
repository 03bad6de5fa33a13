#pragma once
// The shared objects of this process and the symbols they define or want, read from their own tables in memory.
// Why not dladdr/dlsym: those take the loader's lock, which a thread in dlopen holds while constructors run; a BLAS
// call from a thread that such a constructor waits for would never return. dl_iterate_phdr takes another, short one.

#include <link.h>
#include <cstddef>
#include <cstdint>

namespace llmprof::collect {

struct Image {
  const char* path;  // as the loader knows it; "" is the program itself
  const char* soname;
  std::uintptr_t base, low, high;
  const ElfW(Dyn) * dynamic;
  const char* strings;
  const ElfW(Sym) * symbols;
  const std::uint32_t* gnu_hash;
  const std::uint32_t* sysv_hash;
  const ElfW(Half) * versions;
  std::uintptr_t relro_low, relro_high;  // what the loader made read-only once it was done
  bool reached;                          // scratch of closure()
  bool hooked, unhooked;                 // scratch and answer of find_unhooked_blas()
};

struct ImageList {
  Image* images;
  std::size_t count;
  std::uint16_t* order;  // scratch: what closure() found
};

// Calls visit(context, list) once, while the list cannot change. False: no memory.
bool with_images(void (*visit)(void* context, ImageList list), void* context);
template <class Visit>
bool with_images(Visit visit) {
  return with_images([](void* context, ImageList list) { (*static_cast<Visit*>(context))(list); }, &visit);
}

// A function that the object defines and exports, or null.
const ElfW(Sym) * find_function(const Image& image, const char* name);
const ElfW(Sym) * find_variable(const Image& image, const char* name);

// A symbol that an object wants from others.
struct Import {
  const char* name;
  bool weak;              // it can do without
  std::uint16_t version;  // number of the version that is imported; 0: none
  // Of any_slot():
  void* slot;  // where the loader puts its address
  std::int64_t addend;
  bool is_call;  // bound at its first call, perhaps
};

// Calls visit(context, import) for every symbol that the object wants from others, or for every place where it wants
// the address of one, until it returns true.
bool any_import(const Image& image, bool (*visit)(void* context, const Import& import), void* context);
bool any_slot(const Image& image, bool (*visit)(void* context, const Import& import), void* context);
template <class Visit>
bool any_import(const Image& image, Visit visit) {
  return any_import(
      image, [](void* of, const Import& import) { return (*static_cast<Visit*>(of))(import); }, &visit);
}
template <class Visit>
bool any_slot(const Image& image, Visit visit) {
  return any_slot(
      image, [](void* of, const Import& import) { return (*static_cast<Visit*>(of))(import); }, &visit);
}

// Fills list.order with `root` and everything it needs, breadth first as the loader searches; returns how many.
std::size_t closure(ImageList list, std::size_t root);

// Index of the object that holds the address; list.count if none.
std::size_t image_at(ImageList list, std::uintptr_t address);

// Last component of a path.
const char* base_name(const char* path);

// The loader's list of objects, walked so that a fork at the same time does no harm. A forked child inherits the
// loader's lock as it is: were another thread of the parent walking just then, nobody would ever release it in the
// child, which would hang at its first walk, its own or ours. So a fork waits until our walks are over, and they wait
// for it; neither waits long, whatever happens.

// dl_iterate_phdr. Walks inside `visit` call that itself: they are part of this one.
void walk_objects(int (*visit)(dl_phdr_info* info, std::size_t size, void* context), void* context);

// How many objects were loaded and unloaded so far.
struct ObjectCounts {
  std::uint64_t loaded, unloaded;
};
ObjectCounts count_objects();

// Which BLAS libraries of this process are called without passing through libllmprof_blas.so. Used by both libraries.

// Whether an object is libcublas.so.N or libcublasLt.so.N.
bool is_cublas(const Image& image);

// Marks every object that defines a BLAS function and that no importer of such functions depends on (Image::unhooked):
// it is called through dlsym, or from inside the object itself, or not at all. `is_provider`: calls to it were seen.
void find_unhooked_blas(ImageList list, bool (*is_provider)(const char* path));

}  // namespace llmprof::collect

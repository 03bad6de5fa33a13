#pragma once
// Which BLAS libraries of this process are called without passing through libllmprof_blas.so. Used by both libraries.

#include "collect/images.h"

namespace llmprof::collect {

struct UnhookedSearch {
  bool (*is_provider)(void* context, const char* path);  // calls to it have been seen
  void (*found)(void* context, const char* path);
  void* context;
};

// Whether an object is libcublas.so.N or libcublasLt.so.N.
bool is_cublas(const Image& image);

// Reports every object that defines a BLAS function and that no importer of such functions depends on: it is called
// through dlsym, or from inside the object itself, or not at all.
void find_unhooked_blas(ImageList list, const UnhookedSearch& search);

}  // namespace llmprof::collect

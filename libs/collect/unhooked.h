#pragma once
// Which BLAS libraries of this process are called without passing through libllmprof_blas.so. Used by both libraries.

#include "collect/images.h"

namespace llmprof::collect {

// Whether an object is libcublas.so.N or libcublasLt.so.N.
bool is_cublas(const Image& image);

// Marks every object that defines a BLAS function and that no importer of such functions depends on (Image::unhooked):
// it is called through dlsym, or from inside the object itself, or not at all. `is_provider`: calls to it were seen.
void find_unhooked_blas(ImageList list, bool (*is_provider)(const char* path));

}  // namespace llmprof::collect

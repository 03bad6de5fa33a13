#pragma once
// The file an object names for a function that it imports. Libraries such as cuBLAS give their symbols the version
// "libcublas.so.13": an object linked with it must never end in a libcublas.so.12, whoever is loaded first.

#include "collect/images.h"

namespace llmprof::collect::blas {

// Null: the object does not import the function, or names no file for it.
const char* wanted_file(const Image& image, const char* function);

}  // namespace llmprof::collect::blas

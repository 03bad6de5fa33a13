#pragma once
// Programs that look a cuBLAS function up by dlsym() on a library's handle (JAX, cuDNN, our own tools) are given a hook
// in place of the function, so that their calls are seen too.

#include "collect/blas/resolve.h"

namespace llmprof::collect::blas {

// What a call to the hook of this function ends in. Only asked from such a hook, which was handed out after it was set.
Site* handle_site(Function function);

// The hook for callers that asked by name; null if the function has none.
void* handle_hook(Function function);

// What dlsym() should answer instead of `found`, for a name that begins as those of cuBLAS do.
void* hook_for(const char* name, void* found);

}  // namespace llmprof::collect::blas

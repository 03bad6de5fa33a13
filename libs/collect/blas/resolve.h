#pragma once
// From a call to a hooked symbol to the function that would have been called without us.

#include <atomic>
#include <cstdint>

#include "wire/format.h"

namespace llmprof::collect::blas {

enum Function : std::uint32_t {
#define LLMPROF_BLAS_FUNCTION(name, abi, real, bits) k_##name,
#define LLMPROF_BLAS_GUARDED(name, abi, real, bits) k_##name,
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) k_##name,
#include "collect/blas/functions.def"
  kFunctions,
};

const char* name_of(Function function);

// A hooked function, or one of cuBLAS, by its name; kFunctions: not one of them.
Function function_of(const char* name);
Function gpu_function(const char* name);

// Whether some library of this process but our own has a function of this name, or may have one.
bool is_defined_elsewhere(const char* name);

// One place in the program that calls one hooked symbol. Never changes once published, but for what is atomic.
struct Site {
  std::uintptr_t address;  // that the call returns to
  Function function;
  void* target;         // null: no library of this process defines the function
  const char* library;  // path, in memory of ours
  bool told;            // false: several libraries define it and the caller depends on none of them
  bool is_mkl;
  bool from_library;  // what calls there has hooked functions of its own, or is not known
  void* helpers[3];   // functions of cuBLAS in the same library: what a call means is asked of them. Null: it has none
  std::atomic<wire::StringId> library_id;  // 0: not asked for yet
  std::atomic<wire::StringId> function_id;
  std::atomic<std::uint32_t> generation;  // in which it was found right
};

// Lock-free after the first call from a place, until a library is unloaded: then each place is looked at again.
const Site* find_site(Function function, std::uintptr_t return_address);

// A library was unloaded: another one may be mapped where it was.
void library_unloaded();

// A call to a function that no library of this process has ends as it does where the loader finds none.
[[noreturn]] void end_unresolved(Function function);

// Whether the object that called there refers weakly to the function: without us it would not have called.
bool refers_weakly(Function function, std::uintptr_t return_address);

// Whether the address is in an object that is loaded.
bool is_loaded(const void* address);

// A place for a function of cuBLAS that a program looked up by name: it is known where its calls go. Null: no room, or
// the address belongs to no library of cuBLAS.
Site* make_handle_site(Function function, void* target);

// Path of this library, or null.
const char* own_path();

}  // namespace llmprof::collect::blas

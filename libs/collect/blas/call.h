#pragma once
// What the hooks share: the way to the collector, the function a call would have reached without us, the call itself.

#include <atomic>
#include <cstdint>

#include "wire/collector_v1.h"
#include "wire/format.h"

namespace llmprof::collect::blas {

// What the hooks of CPU and GPU libraries have in common: who called, whether it counts, and what is told before.

// The way from libllmprof_blas.so to the collector.
enum class Link : std::uint32_t { kUndecided, kConnecting, kOn, kOff };

struct Connection {
  std::atomic<Link> link{Link::kUndecided};
  std::atomic<std::int32_t> pid{0};  // of the process that is connecting
  const llmprof_collector_table* table = nullptr;
};
extern constinit Connection connection;

// Loads the collector beside this library, if this process is to be recorded. Decides once.
Link connect();

// The collector's table; null: not recording.
inline const llmprof_collector_table* collector() {
  const Link link = connection.link.load(std::memory_order_acquire);
  if (link == Link::kOff) return nullptr;
  if (link != Link::kOn && connect() != Link::kOn) return nullptr;
  return connection.table;
}

// Files of a model that the program opened, so that a report can say which model ran. A few paths in static memory,
// handed to the collector with the first BLAS call; a process that makes none leaves nothing.

extern constinit std::atomic<std::uint32_t> opened_waiting;  // noted, not handed over yet

void hand_over_opened(const llmprof_collector_table* table);

// From a call to a hooked symbol to the function that would have been called without us.
enum Function : std::uint32_t {
#define LLMPROF_BLAS_FUNCTION(name, abi, real, bits) k_##name,
#define LLMPROF_BLAS_GUARDED(name, abi, real, bits) k_##name,
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) k_##name,
#include "collect/blas/functions.def"
  kFunctions,
};

const char* name_of(Function function);

// A hooked function by its name, `first` or one after it; kFunctions: not one of them.
inline constexpr Function kFirstGpu = k_cublasSgemm_v2;  // from here on they are of cuBLAS
Function function_of(const char* name, Function first = Function{});

// Whether some library of this process but our own has a function of this name, or may have one.
bool is_defined_elsewhere(const char* name);

// What does the work of a call.
struct Answer {
  void* target;         // null: no library of this process defines the function
  const char* library;  // path, in memory of ours
  bool told;            // false: several libraries define it and the caller depends on none of them
  bool from_library;    // what calls there has hooked functions of its own, or is not known
  void* helpers[3];  // functions of cuBLAS in the same library: what a call means is asked of them. Null: it has none
  bool operator==(const Answer&) const = default;
};
// One place in the program that calls one hooked symbol. Never changes once published, but for what is atomic.
struct Site : Answer {
  std::uintptr_t address;  // that the call returns to
  Function function;
  bool is_mkl;
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

// ---- a call ---------------------------------------------------------------------------------------------------------

// Integers are passed on as whole registers and stack slots: whatever the width they were meant in, they arrive as sent
// (MKL's ILP64 interface has the same names as its LP64 one).
using Word = std::int64_t;

struct Call {
  Function function;
  std::uintptr_t return_address;
  std::uintptr_t frame;
};

#define LLMPROF_CALL(name)                                                   \
  Call {                                                                     \
    k_##name, reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)), \
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))         \
  }

// The frame of the outermost hooked call of this thread. Libraries call their own hooked functions (cblas to Fortran,
// cuBLAS to cuBLASLt): a frame below it is such a call. It stays behind when the outer call is left by an exception or
// longjmp; a frame above it shows that, and a caller that is no such library.
extern __thread std::uintptr_t outer_frame;

inline bool is_nested(const Site& site, std::uintptr_t frame) {
  constexpr std::uintptr_t kFarthest = 64u << 20;  // farther away it is another stack
  return outer_frame != 0 && frame < outer_frame && outer_frame - frame < kFarthest && site.from_library;
}

void name_site(const llmprof_collector_table* table, Site* site);

inline void before_recording(const llmprof_collector_table* table, Site* site) {
  if (site->library_id.load(std::memory_order_acquire) == 0) [[unlikely]]
    name_site(table, site);
  if (opened_waiting.load(std::memory_order_relaxed) != 0) [[unlikely]]
    hand_over_opened(table);
  if (!site->told) [[unlikely]]
    table->count_loss(static_cast<std::uint16_t>(wire::LossKind::kBlasUnresolved), 1);
}

// Programs that look a cuBLAS function up by dlsym() on a library's handle (JAX, cuDNN, our own tools) are given a hook
// in place of the function, so that their calls are seen too.

// What a call to the hook of this function ends in. Only asked from such a hook, which was handed out after it was set.
Site* handle_site(Function function);

// The hook for callers that asked by name; null if the function has none.
void* handle_hook(Function function);

// What dlsym() should answer instead of `found`, for a name that begins as those of cuBLAS do.
void* hook_for(const char* name, void* found);

// Programs refer weakly to functions of BLAS to learn whether there is one. Our hooks have the names, so the loader
// would tell them yes. Where no other library of the process has such a name, the reference is set back to what it
// would be without us: nothing.

// Looks at objects that were loaded since it was last called: cheap if there are none. Called as we are loaded, before
// constructors of the program, and when a program asks a library that it has opened for a function.
void clear_weak_references();

// An object was unloaded: another one may be where it was.
void forget_objects();

}  // namespace llmprof::collect::blas

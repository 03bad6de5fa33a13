// A collector that a test calls by name: what launch_stack() gives, as text.

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "collect/event.h"
#include "collect/lifecycle.h"
#include "collect/os.h"
#include "collect/stacks/launch_stack.h"

#define LLMPROF_EXPORT extern "C" [[gnu::visibility("default")]]

namespace llmprof::collect {
namespace {

int print_stack(wire::DefinitionId id, char* out, int bytes) {
  Shared* shared = shared_memory();
  int used = 0;
  while (id != 0 && shared->definitions.valid(id)) {
    const wire::StackRecord& stack = shared->definitions.record(id).stack;
    const wire::FrameRecord& frame = shared->definitions.record(stack.frame).frame;
    const char* function = frame.function != 0 ? shared->strings.text(frame.function) : "";
    const char* file = frame.file != 0 ? shared->strings.text(frame.file) : "";
    used += snprintf(out + used, static_cast<std::size_t>(bytes - used), "%d\t%s\t%s\t%u\t%llx\n",
                     static_cast<int>(frame.kind), function, file, frame.line,
                     static_cast<unsigned long long>(frame.offset));
    if (used >= bytes) return -1;
    id = stack.parent;
  }
  return used;
}

}  // namespace
}  // namespace llmprof::collect

// Innermost first, a line each: kind, function, file, line, offset. The length; -1: not recorded.
LLMPROF_EXPORT int probe_stack(char* out, int bytes);
LLMPROF_EXPORT int probe_stack(char* out, int bytes) {
  using namespace llmprof::collect;
  if (enter() == nullptr) return -1;
  const llmprof::wire::DefinitionId id = launch_stack();
  leave();
  out[0] = '\0';
  return print_stack(id, out, bytes);
}

// Compares a native stack with glibc's: the number of frames that are the same, or -1 - that number if the next is not.
LLMPROF_EXPORT int probe_native();
LLMPROF_EXPORT int probe_native() {
  using namespace llmprof::collect;
  if (enter() == nullptr) return -1000;
  const llmprof::wire::DefinitionId innermost = launch_stack();
  leave();
  void* addresses[80];
  const int count = backtrace(addresses, 80);
  const DefinitionTable& definitions = shared_memory()->definitions;
  llmprof::wire::DefinitionId id = innermost;
  int same = 0;
  for (int i = 0; i < count && same < 63; ++i) {
    dl_find_object object;
    const auto address = reinterpret_cast<std::uintptr_t>(addresses[i]) - 1;
    if (_dl_find_object(reinterpret_cast<void*>(address), &object) != 0) break;
    const auto here = reinterpret_cast<void*>(&probe_native);
    if (here >= object.dlfo_map_start && here < object.dlfo_map_end) continue;
    if (id == 0) return -1 - same;
    const llmprof::wire::StackRecord& stack = definitions.record(id).stack;
    const llmprof::wire::FrameRecord& frame = definitions.record(stack.frame).frame;
    if (frame.offset != address - object.dlfo_link_map->l_addr) return -1 - same;
    id = stack.parent;
    ++same;
  }
  return same;
}

namespace {

ucontext_t main_context, fiber_context;
void* in_large_frame;  // an address in a function whose caller is said to be 8 KiB up the stack
int frames_on_fiber;

[[gnu::noinline]] void note_caller() { in_large_frame = __builtin_return_address(0); }

[[gnu::noinline]] void large_frame() {
  volatile char room[8192];
  room[0] = 1;
  note_caller();
  room[1] = room[0];
}

// Says it was called by large_frame(): its caller would be behind the end of this stack.
[[gnu::noinline, gnu::optimize("no-omit-frame-pointer")]] void on_fiber() {
  void* volatile* const return_address = static_cast<void**>(__builtin_frame_address(0)) + 1;
  void* const caller = *return_address;
  *return_address = in_large_frame;
  char text[4096];
  frames_on_fiber = probe_stack(text, sizeof(text));
  *return_address = caller;
}

}  // namespace

// A stack that ends where memory does. The bytes of its text, 0 or more.
LLMPROF_EXPORT int probe_on_fiber();
LLMPROF_EXPORT int probe_on_fiber() {
  constexpr std::size_t kStack = 1 << 18;
  large_frame();
  void* memory = mmap(nullptr, 2 * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(static_cast<char*>(memory) + kStack, kStack, PROT_NONE) != 0) return -2;
  getcontext(&fiber_context);
  fiber_context.uc_stack.ss_sp = memory;
  fiber_context.uc_stack.ss_size = kStack;
  fiber_context.uc_link = &main_context;
  makecontext(&fiber_context, on_fiber, 0);
  swapcontext(&main_context, &fiber_context);
  munmap(memory, 2 * kStack);
  return frames_on_fiber;
}

// Nanoseconds for `count` stacks.
LLMPROF_EXPORT std::uint64_t probe_cost(int count);
LLMPROF_EXPORT std::uint64_t probe_cost(int count) {
  using namespace llmprof::collect;
  const std::uint64_t begin = now_ns();
  for (int i = 0; i < count; ++i) {
    if (enter() == nullptr) return 0;
    launch_stack();
    leave();
  }
  return now_ns() - begin;
}

LLMPROF_EXPORT const char* probe_reason();
LLMPROF_EXPORT const char* probe_reason() {
  using namespace llmprof::collect;
  const llmprof::wire::StringId id = stacks_off_reason();
  return id != 0 ? shared_memory()->strings.text(id) : "";
}

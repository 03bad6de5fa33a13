#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collect/images.h"
#include "collect/names.h"
#include "collect/stacks/frames.h"

namespace llmprof::collect {
namespace {

// How the interpreter's memory is read: with care until the offsets have proven right, where a plain load could end the
// program, then with plain loads.
struct CarefulMemory {
  static constexpr bool kCareful = true;
  static bool read(std::uint64_t address, void* out, std::size_t bytes) {
    const iovec to{out, bytes}, from{reinterpret_cast<void*>(address), bytes};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(bytes);
  }
};
struct TrustedMemory {
  static constexpr bool kCareful = false;
  static bool read(std::uint64_t address, void* out, std::size_t bytes) {
    __builtin_memcpy(out, reinterpret_cast<const void*>(address), bytes);
    return true;
  }
};
constinit CarefulMemory careful_memory;
constinit TrustedMemory trusted_memory;

// ---- the interpreter ------------------------------------------------------------------------------------------------

// The Python interpreter of this process: its functions that need no GIL, and where its structures have what a stack
// shows. Looked up in the mapped objects' own tables, once.
struct PythonRuntime {
  void* (*this_thread)();                // PyGILState_GetThisThreadState: reads a thread-specific key
  int (*line_of)(void* code, int byte);  // PyCode_Addr2Line: reads the code object, which never changes
  AddressRange code;                     // of the object that has the interpreter
  std::uintptr_t state;                  // _PyRuntime
  std::uintptr_t code_type, text_type;   // PyCode_Type, PyUnicode_Type
  std::uint64_t version;                 // PY_VERSION_HEX
  wire::PythonLayout layout;
};

enum class PythonFound : std::uint8_t { kNo, kReadable, kUnreadable };

template <class F>
void set_function(const Image& image, const char* name, F* function) {
  const ElfW(Sym)* symbol = find_function(image, name);
  if (symbol != nullptr) *function = reinterpret_cast<F>(image.base + symbol->st_value);
}

std::uintptr_t address_of(const Image& image, const char* name) {
  const ElfW(Sym)* symbol = find_variable(image, name);
  return symbol != nullptr ? image.base + symbol->st_value : 0;
}

void find_interpreter(ImageList list, PythonRuntime* runtime) {
  for (std::size_t i = 0; i < list.count && runtime->this_thread == nullptr; ++i) {
    const Image& image = list.images[i];
    set_function(image, "PyGILState_GetThisThreadState", &runtime->this_thread);
    if (runtime->this_thread == nullptr) continue;
    runtime->code = {image.low, image.high};
    set_function(image, "PyCode_Addr2Line", &runtime->line_of);
    runtime->state = address_of(image, "_PyRuntime");
    runtime->code_type = address_of(image, "PyCode_Type");
    runtime->text_type = address_of(image, "PyUnicode_Type");
    const std::uintptr_t version = address_of(image, "Py_Version");  // since 3.11
    std::uint32_t number = 0;
    if (version != 0 && CarefulMemory::read(version, &number, sizeof(number))) runtime->version = number;
  }
}

bool read_offsets(PythonRuntime* runtime) {
  std::uint64_t words[wire::kPythonOffsetWords];
  return CarefulMemory::read(runtime->state, words, sizeof(words)) &&
         memcmp(words, wire::kPythonOffsetCookie, 8) == 0 && words[1] >> 16 == runtime->version >> 16 &&
         wire::layout_from_offsets(words, &runtime->layout);
}

// kUnreadable: `why` is set to what a report can say.
PythonFound find_python(PythonRuntime* runtime, const char** why) {
  *runtime = {};
  with_images([&](ImageList list) { find_interpreter(list, runtime); });
  if (runtime->this_thread == nullptr) return PythonFound::kNo;
  if (runtime->line_of == nullptr || runtime->state == 0 || runtime->code_type == 0 || runtime->text_type == 0) {
    *why = "this Python does not say where its state is";
  } else if (const wire::PythonLayout* known = wire::python_layout(runtime->version)) {
    runtime->layout = *known;
    return PythonFound::kReadable;
  } else if (runtime->version == 0) {
    *why = "this Python is older than 3.11";
  } else if (read_offsets(runtime)) {
    return PythonFound::kReadable;
  } else {
    *why = "frames of this version or build of Python are not known (3.11 to 3.14 with a GIL are)";
  }
  return PythonFound::kUnreadable;
}

enum class State : std::uint32_t { kFresh, kLooking, kReading, kOff };

// So many stacks are read with care: every pointer is checked, so that a wrong offset shows and does no harm.
constexpr std::uint32_t kCarefulStacks = 16;

struct Python {
  std::atomic<State> state{State::kFresh};
  std::atomic<std::uint32_t> proven{0};   // stacks that were read with care and made sense
  std::atomic<std::uint32_t> unfound{0};  // stacks asked for while there was no Python
  const char* why = "";
  PythonRuntime runtime{};
};
constinit Python python;

void give_up(const char* why) {
  python.why = why;
  python.state.store(State::kOff, std::memory_order_release);
}

// Looks for an interpreter: at the first stack, and now and then if there was none (it may be loaded later).
bool look_for_python() {
  const std::uint32_t before = python.unfound.fetch_add(1, std::memory_order_relaxed);
  if ((before & (before - 1)) != 0) return false;
  State fresh = State::kFresh;
  if (!python.state.compare_exchange_strong(fresh, State::kLooking, std::memory_order_acquire)) return false;
  const char* why = "";
  const PythonFound found = find_python(&python.runtime, &why);
  if (found == PythonFound::kUnreadable) {
    give_up(why);
    return false;
  }
  const bool readable = found == PythonFound::kReadable;
  python.state.store(readable ? State::kReading : State::kFresh, std::memory_order_release);
  return readable;
}

struct Walk {
  std::uint32_t count;  // places, innermost first
  bool more;            // outer frames found no room
  bool good;            // what was read makes sense
  bool several;         // interpreters
};

bool has_type(std::uint64_t object, std::uintptr_t type) {
  std::uintptr_t found = 0;
  return (object & 7) == 0 && wire::load(careful_memory, object + wire::kPythonType, &found) && found == type;
}

// The thread's innermost frame; 0: none. `thread` belongs to the only interpreter, or the answer is `several`.
template <class Memory>
std::uint64_t current_frame(Memory& memory, std::uint64_t thread, Walk* walk) {
  const wire::PythonLayout& layout = python.runtime.layout;
  std::uint64_t owner = 0, newest = 0, next = 0, frame = 0;
  walk->good = wire::load(memory, thread + layout.thread_interpreter, &owner) &&
               wire::load(memory, python.runtime.state + layout.runtime_interpreters, &newest) &&
               wire::load(memory, newest + layout.interpreter_next, &next) &&
               read_current_frame(memory, layout, thread, &frame);
  walk->several = walk->good && (next != 0 || owner != newest);
  return walk->good && !walk->several ? frame : 0;
}

template <class Memory>
Walk walk_frames(Memory& memory, std::uint64_t thread, PythonPlace (&places)[kMaxPythonFrames]) {
  using wire::PythonWalk;
  Walk walk{};
  const std::uint64_t first = current_frame(memory, thread, &walk);
  const auto read = [&](std::uint64_t address, wire::PythonFrame* frame) {
    return read_python_frame(memory, python.runtime.layout, address, frame);
  };
  const auto visit = [&](const wire::PythonFrame& frame) {
    if (frame.is_shim) return PythonWalk::kGoOn;
    if (Memory::kCareful && !has_type(frame.code, python.runtime.code_type)) return PythonWalk::kUnreadable;
    walk.more = walk.count == kMaxPythonFrames;
    if (walk.more) return PythonWalk::kEnd;
    places[walk.count++] = {frame.code, frame.instruction};
    return PythonWalk::kGoOn;
  };
  if (wire::walk_python_frames(first, 4 * kMaxPythonFrames, read, visit) == PythonWalk::kUnreadable) walk.good = false;
  return walk;
}

// The line as the interpreter itself works it out; -1: the instruction does not lie in this code.
int line_of(const PythonPlace& place, std::int32_t first_line) {
  std::int64_t units = 0;
  if (!wire::load(careful_memory, place.code + wire::kPythonSize, &units)) return -1;
  const std::uint64_t begin = place.code + python.runtime.layout.code_instructions;
  const auto byte = static_cast<std::int64_t>(place.instruction - begin);
  if (byte < -2 || byte >= 2 * units || byte > (1 << 30)) return -1;  // -2: nothing of it was executed yet
  const int line = python.runtime.line_of(reinterpret_cast<void*>(place.code), static_cast<int>(byte));
  return line > 0 ? line : first_line;
}

int read_text(std::uint64_t object, char (&text)[kMaxText]) {
  if (!has_type(object, python.runtime.text_type)) return -1;
  return read_python_text(careful_memory, python.runtime.layout, object, text, kMaxText);
}

// A place seen for the first time: read with care. False: this is no code object.
bool define_place(const PythonPlace& place, wire::DefinitionId parent, char (&text)[kMaxText], KnownPython* known) {
  wire::PythonCodeParts parts{};
  if (!has_type(place.code, python.runtime.code_type) ||
      !read_code_parts(careful_memory, python.runtime.layout, place.code, &parts))
    return false;
  const int line = line_of(place, parts.first_line);
  const int name_bytes = read_text(parts.name, text);
  if (line < 0 || name_bytes < 0) return false;
  wire::FrameRecord frame{};
  frame.kind = wire::FrameKind::kPython;
  frame.line = static_cast<std::uint32_t>(line);
  frame.function = intern_bytes(text, static_cast<std::size_t>(name_bytes));
  const int file_bytes = read_text(parts.file, text);
  if (file_bytes > 0) frame.file = intern_bytes(text, static_cast<std::size_t>(file_bytes));
  *known = {place, parts, parent, define_stack(parent, frame)};
  return true;
}

bool is_known(const KnownPython& known, const PythonPlace& place, wire::DefinitionId parent) {
  if (known.place != place || known.parent != parent || known.stack == 0) return false;
  wire::PythonCodeParts parts{};
  read_code_parts(trusted_memory, python.runtime.layout, place.code, &parts);
  return known.parts == parts;
}

std::uint32_t slot_of(const PythonPlace& place, wire::DefinitionId parent) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
  const std::uint64_t hash = (place.instruction + parent * kOdd) * kOdd;
  return static_cast<std::uint32_t>(hash >> 40) % StackMemory::kKnown;
}

// Two places for each: the second gets what the first would lose.
bool stack_of(StackMemory* memory, const PythonPlace& place, wire::DefinitionId* stack) {
  const std::uint32_t slot = slot_of(place, *stack);
  KnownPython& first = memory->known_python[slot];
  KnownPython& second = memory->known_python[slot ^ 1];
  if (!is_known(first, place, *stack)) {
    if (is_known(second, place, *stack)) {
      *stack = second.stack;
      return true;
    }
    second = first;
    if (!define_place(place, *stack, memory->text, &first)) return false;
  }
  *stack = first.stack;
  return true;
}

PythonAnswer give_up_reading() {
  char probe = 0, copy = 1;
  const bool permitted = CarefulMemory::read(reinterpret_cast<std::uintptr_t>(&probe), &copy, 1);
  give_up(permitted ? "this Python's frames are not where those of its version are"
                    : "the offsets of this Python's frames cannot be verified (process_vm_readv is not permitted)");
  return PythonAnswer::kUnknownPython;
}

}  // namespace

const char* why_no_python() { return python.why; }

AddressRange python_code() {
  return python.state.load(std::memory_order_acquire) == State::kReading ? python.runtime.code : AddressRange{};
}

PythonAnswer add_python_frames(StackMemory* memory, wire::DefinitionId* stack) {
  State state = python.state.load(std::memory_order_acquire);
  if (state == State::kFresh && look_for_python()) state = State::kReading;
  if (state == State::kFresh) state = python.state.load(std::memory_order_acquire);
  if (state == State::kOff) return PythonAnswer::kUnknownPython;
  if (state == State::kLooking) return PythonAnswer::kNotYet;
  if (state != State::kReading) return PythonAnswer::kNothing;
  const auto thread = reinterpret_cast<std::uintptr_t>(python.runtime.this_thread());
  if (thread == 0) return PythonAnswer::kNothing;
  const bool careful = python.proven.load(std::memory_order_relaxed) < kCarefulStacks;
  const Walk walk = careful ? walk_frames(careful_memory, thread, memory->python)
                            : walk_frames(trusted_memory, thread, memory->python);
  if (!walk.good) return give_up_reading();
  if (walk.several) return PythonAnswer::kSeveral;
  wire::DefinitionId at = walk.more && *stack == 0 ? left_out() : *stack;
  for (std::uint32_t i = walk.count; i > 0; --i) {
    if (!stack_of(memory, memory->python[i - 1], &at)) return give_up_reading();
    if (at == 0) return PythonAnswer::kNothing;  // no room for definitions: counted
  }
  if (careful && walk.count > 0) python.proven.fetch_add(1, std::memory_order_relaxed);
  *stack = at;
  return walk.count > 0 ? PythonAnswer::kStack : PythonAnswer::kNothing;
}

}  // namespace llmprof::collect

#include "collect/stacks/python_frames.h"

#include "collect/names.h"
#include "collect/stacks/own_memory.h"
#include "collect/stacks/python_text.h"

namespace llmprof::collect {
namespace {

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

template <class Memory>
bool is_code(std::uintptr_t object) {
  std::uintptr_t type = 0;
  return (object & 7) == 0 && Memory::load(object + 8, &type) && type == python.runtime.code_type;
}

// The thread's innermost frame; 0: none. `thread` belongs to the only interpreter, or the answer is `several`.
template <class Memory>
std::uintptr_t current_frame(std::uintptr_t thread, Walk* walk) {
  const wire::PythonLayout& layout = python.runtime.layout;
  std::uintptr_t owner = 0, newest = 0, next = 0, frame = 0;
  walk->good = Memory::load(thread + layout.thread_interpreter, &owner) &&
               Memory::load(python.runtime.state + layout.runtime_interpreters, &newest) &&
               Memory::load(newest + layout.interpreter_next, &next) &&
               Memory::load(thread + layout.thread_cframe, &frame);
  walk->several = walk->good && (next != 0 || owner != newest);
  if (walk->good && layout.has_cframe) walk->good = Memory::load(frame + layout.cframe_current, &frame);
  return walk->good && !walk->several ? frame : 0;
}

template <class Memory>
Walk walk_frames(std::uintptr_t thread, PythonPlace (&places)[kMaxPythonFrames]) {
  const wire::PythonLayout& layout = python.runtime.layout;
  Walk walk{};
  std::uintptr_t frame = current_frame<Memory>(thread, &walk);
  for (std::uint32_t steps = 0; walk.good && frame != 0; ++steps) {
    std::uint8_t owner = 0;
    PythonPlace place{};
    std::uintptr_t previous = 0;
    walk.good = (frame & 7) == 0 && Memory::load(frame + layout.frame_owner, &owner) &&
                Memory::load(frame + layout.frame_code, &place.code) &&
                Memory::load(frame + layout.frame_instruction, &place.instruction) &&
                Memory::load(frame + layout.frame_previous, &previous);
    if (owner < wire::kPythonFrameOfLoop) {
      place.code &= ~std::uintptr_t{7};  // since 3.14 the low bits are a tag
      if (Memory::kCareful && !is_code<Memory>(place.code)) walk.good = false;
      walk.more = walk.count == kMaxPythonFrames;
      if (walk.more) break;
      places[walk.count++] = place;
    }
    if (steps == 4 * kMaxPythonFrames) walk.good = false;
    frame = previous;
  }
  return walk;
}

// What a code object consists of, besides its code.
struct Code {
  std::uintptr_t name, file, lines;
  std::uint32_t first_line;
};

template <class Memory>
bool read_code(std::uintptr_t object, Code* code) {
  const wire::PythonLayout& layout = python.runtime.layout;
  return Memory::load(object + layout.code_name, &code->name) && Memory::load(object + layout.code_file, &code->file) &&
         Memory::load(object + layout.code_lines, &code->lines) &&
         Memory::load(object + layout.code_first_line, &code->first_line);
}

// The line as the interpreter itself works it out; -1: the instruction does not lie in this code.
int line_of(const PythonPlace& place, const Code& code) {
  constexpr std::uintptr_t kCodeUnits = 16;  // PyVarObject::ob_size
  std::int64_t units = 0;
  if (!read_own_memory(place.code + kCodeUnits, &units, sizeof(units))) return -1;
  const std::uintptr_t begin = place.code + python.runtime.layout.code_instructions;
  const auto byte = static_cast<std::int64_t>(place.instruction - begin);
  if (byte < -2 || byte >= 2 * units || byte > (1 << 30)) return -1;  // -2: nothing of it was executed yet
  const int line = python.runtime.line_of(reinterpret_cast<void*>(place.code), static_cast<int>(byte));
  return line > 0 ? line : static_cast<int>(code.first_line);
}

// A place seen for the first time: read with care. False: this is no code object.
bool define_place(const PythonPlace& place, wire::DefinitionId parent, char (&text)[kMaxText], KnownPython* known) {
  Code code{};
  if (!is_code<CarefulMemory>(place.code) || !read_code<CarefulMemory>(place.code, &code)) return false;
  const int line = line_of(place, code);
  const int name_bytes = read_python_text(python.runtime, code.name, text);
  if (line < 0 || name_bytes < 0) return false;
  wire::FrameRecord frame{};
  frame.kind = wire::FrameKind::kPython;
  frame.line = static_cast<std::uint32_t>(line);
  frame.function = intern_bytes(text, static_cast<std::size_t>(name_bytes));
  const int file_bytes = read_python_text(python.runtime, code.file, text);
  if (file_bytes > 0) frame.file = intern_bytes(text, static_cast<std::size_t>(file_bytes));
  *known = {place, code.name, code.file, code.lines, code.first_line, parent, define_stack(parent, frame)};
  return true;
}

bool is_known(const KnownPython& known, const PythonPlace& place, wire::DefinitionId parent) {
  if (known.place.code != place.code || known.place.instruction != place.instruction || known.parent != parent)
    return false;
  Code code{};
  read_code<TrustedMemory>(place.code, &code);
  return known.stack != 0 && known.name == code.name && known.file == code.file && known.lines == code.lines &&
         known.first_line == code.first_line;
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
  const bool permitted = read_own_memory(reinterpret_cast<std::uintptr_t>(&probe), &copy, 1);
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
  const Walk walk =
      careful ? walk_frames<CarefulMemory>(thread, memory->python) : walk_frames<TrustedMemory>(thread, memory->python);
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

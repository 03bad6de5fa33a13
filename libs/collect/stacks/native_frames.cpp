#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collect/event.h"
#include "collect/images.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/stacks/frames.h"
#include "collect/stacks/launch_stack.h"
#include "collect/tables.h"

namespace llmprof::collect {

namespace {

constexpr std::uintptr_t kMaxStackBytes = 1u << 30;

struct Registers {
  std::uintptr_t ip, sp, fp;
};

// The tables of a mapped object, where they lie.
struct MappedTables {
  static bool read(std::uint64_t address, void* out, std::size_t bytes) {
    memcpy(out, reinterpret_cast<const void*>(address), bytes);
    return true;
  }
  static const std::uint8_t* view(std::uint64_t address, std::size_t) {
    return reinterpret_cast<const std::uint8_t*>(address);
  }
};

// Whether the rule is the expression "rbp + offset", and nothing else, perhaps dereferenced: the only ones that
// compilers make for ordinary functions (those that align their stack).
bool is_frame_pointer_plus(const wire::UnwindRow& row, const wire::Rule& rule, bool dereferenced,
                           std::int32_t* offset) {
  constexpr std::uint8_t kRbpPlus = 0x76, kDereference = 0x06;
  wire::ByteReader reader(row.expression(rule));
  if (reader.fixed<std::uint8_t>() != kRbpPlus) return false;
  const std::int64_t distance = reader.sleb();
  *offset = static_cast<std::int32_t>(distance);
  if (dereferenced && reader.fixed<std::uint8_t>() != kDereference) return false;
  return reader.ok() && reader.left() == 0 && distance == *offset;
}

UnwindStep step_of(const wire::UnwindRow& row) {
  using wire::RuleKind;
  constexpr std::int32_t kReturnAddress = -8;
  UnwindStep step{UnwindStep::Cfa::kUnknown, UnwindStep::Frame::kLost, row.cfa.offset, 0};
  const wire::Rule& back = row.rules[wire::kRip];
  const wire::Rule& frame = row.rules[wire::kRbp];
  if (row.signal_frame || back.kind != RuleKind::kAtCfa || back.offset != kReturnAddress) return step;
  if (row.cfa.kind == RuleKind::kRegister && row.cfa.number == wire::kRsp) step.cfa = UnwindStep::Cfa::kStackPointer;
  if (row.cfa.kind == RuleKind::kRegister && row.cfa.number == wire::kRbp) step.cfa = UnwindStep::Cfa::kFramePointer;
  if (row.cfa.kind == RuleKind::kExpression && is_frame_pointer_plus(row, row.cfa, true, &step.cfa_offset))
    step.cfa = UnwindStep::Cfa::kAtFramePointer;
  if (frame.kind == RuleKind::kSame) step.frame = UnwindStep::Frame::kKept;
  if (frame.kind == RuleKind::kAtCfa) step.frame = UnwindStep::Frame::kAtCfa, step.frame_offset = frame.offset;
  std::int32_t offset = 0;
  if (frame.kind == RuleKind::kAtExpression && is_frame_pointer_plus(row, frame, false, &offset) && offset == 0)
    step.frame = UnwindStep::Frame::kAtFramePointer;
  return step;
}

UnwindStep step_at(const void* index_header, std::uintptr_t address) {
  MappedTables tables;
  const auto index = wire::read_unwind_index(tables, reinterpret_cast<std::uintptr_t>(index_header), UINT64_MAX);
  wire::UnwindRow row;
  const bool found = wire::find_unwind_row(tables, index, address, &row);
  return found ? step_of(row) : UnwindStep{};
}

// The part of the stack that can be read. Where a stack ends nobody says for certain: fibers have their own, and a
// child that was forked by a thread has that thread's. So the kernel is asked, for sixteen pages at a time.
class ReadableStack {
 public:
  explicit ReadableStack(std::uintptr_t sp) : begin_(sp), end_(sp & ~(kPage - 1)) {}

  bool holds(std::uintptr_t address, std::size_t bytes) {
    if (address < begin_ || address - begin_ > kMaxStackBytes) return false;
    while (address + bytes > end_) {
      if (!extend()) return false;
    }
    return true;
  }

 private:
  static constexpr std::uintptr_t kPage = 4096;
  static constexpr std::size_t kPages = 16;

  bool extend() {
    if (complete_) return false;
    char bytes[kPages];
    iovec pages[kPages];
    for (std::size_t i = 0; i < kPages; ++i) pages[i] = {reinterpret_cast<void*>(end_ + i * kPage), 1};
    const iovec here{bytes, kPages};
    const ssize_t read = process_vm_readv(getpid(), &here, 1, pages, kPages, 0);
    complete_ = read < static_cast<ssize_t>(kPages);
    if (read <= 0) return false;  // the end, or not permitted
    end_ += static_cast<std::uintptr_t>(read) * kPage;
    return true;
  }

  std::uintptr_t begin_, end_;
  bool complete_ = false;
};

class Walker {
 public:
  Walker(StackMemory* memory, const AddressRange& until) : memory_(memory), until_(until) {}

  // Fills memory->native, innermost first.
  void walk(Registers at) {
    readable_ = ReadableStack(at.sp);
    bool skipping = true;
    while (at.ip != 0 && (at.ip - until_.begin) >= until_.end - until_.begin) {
      const KnownStep& known = step_from(at.ip);
      if (!known.mapped) return;
      skipping = skipping && known.skipped;
      if (!skipping) {
        more_ = count_ == kMaxNativeFrames;
        if (more_) return;
        memory_->native[count_++] = at.ip;
      }
      if (!step(known.step, &at)) return;
    }
  }
  std::uint32_t count() const { return count_; }
  bool more() const { return more_; }

 private:
  const KnownStep& step_from(std::uintptr_t ip) {
    static_assert(StackMemory::kKnown == 1u << 12);
    KnownStep& known = memory_->known_steps[ip * 0x9E3779B97F4A7C15u >> 52];
    if (known.address == ip) return known;
    dl_find_object object;
    known = {ip, {}, _dl_find_object(reinterpret_cast<void*>(ip), &object) == 0, false};
    if (!known.mapped) return known;
    known.skipped = is_ours_or_drivers(object);
    if (object.dlfo_eh_frame != nullptr) known.step = step_at(object.dlfo_eh_frame, ip);
    return known;
  }
  bool load(std::uintptr_t address, std::uintptr_t* value) {
    if (address < floor_ || (address & 7) != 0 || !readable_.holds(address, sizeof(*value))) return false;
    memcpy(value, reinterpret_cast<const void*>(address), sizeof(*value));
    return true;
  }
  // To the caller; its address is one behind the call: back into it.
  bool step(const UnwindStep& rule, Registers* at) {
    using Cfa = UnwindStep::Cfa;
    using Frame = UnwindStep::Frame;
    const auto plus = [](std::uintptr_t base, std::int32_t offset) {
      return base + static_cast<std::uintptr_t>(std::intptr_t{offset});
    };
    std::uintptr_t cfa = 0;
    floor_ = at->sp;
    if (rule.cfa == Cfa::kStackPointer) cfa = plus(at->sp, rule.cfa_offset);
    if (rule.cfa == Cfa::kFramePointer) cfa = plus(at->fp, rule.cfa_offset);
    if (rule.cfa == Cfa::kAtFramePointer && !load(plus(at->fp, rule.cfa_offset), &cfa)) return false;
    Registers caller{0, cfa, rule.frame == Frame::kLost ? 0 : at->fp};
    if (cfa <= at->sp || !load(cfa - 8, &caller.ip)) return false;
    if (rule.frame == Frame::kAtFramePointer && !load(at->fp, &caller.fp)) return false;
    if (rule.frame == Frame::kAtCfa && !load(plus(cfa, rule.frame_offset), &caller.fp)) return false;
    if (caller.ip != 0) --caller.ip;
    *at = caller;
    return true;
  }
  static bool is_ours_or_drivers(const dl_find_object& object) {
    const auto here = reinterpret_cast<void*>(&add_native_frames);
    if (here >= object.dlfo_map_start && here < object.dlfo_map_end) return true;
    const char* name = base_name(object.dlfo_link_map->l_name);
    return strncmp(name, "libcupti.", 9) == 0 || strncmp(name, "libcuda.", 8) == 0;
  }

  StackMemory* memory_;
  AddressRange until_;
  ReadableStack readable_{0};
  std::uintptr_t floor_ = 0;
  std::uint32_t count_ = 0;
  bool more_ = false;
};

wire::StringId path_of(const link_map* object, char (&text)[kMaxText]) {
  if (object->l_name[0] != '\0') return intern(object->l_name);
  const ssize_t bytes = readlink("/proc/self/exe", text, sizeof(text));
  return bytes > 0 ? intern_bytes(text, static_cast<std::size_t>(bytes)) : 0;
}

wire::DefinitionId stack_of(StackMemory* memory, std::uintptr_t address, wire::DefinitionId parent) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
  KnownNative& known = memory->known_native[(address + parent * kOdd) * kOdd >> 52];
  if (known.address == address && known.parent == parent && known.stack != 0) return known.stack;
  dl_find_object object;
  if (_dl_find_object(reinterpret_cast<void*>(address), &object) != 0) return 0;
  wire::FrameRecord frame{};
  frame.kind = wire::FrameKind::kNative;
  frame.file = path_of(object.dlfo_link_map, memory->text);
  frame.offset = address - object.dlfo_link_map->l_addr;
  known = {address, parent, define_stack(parent, frame)};
  return known.stack;
}

}  // namespace

#if defined(__x86_64__)
[[gnu::noinline]] bool add_native_frames(StackMemory* memory, const AddressRange& until, wire::DefinitionId* stack) {
  Registers here{};
  // Into registers that are not themselves asked for.
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=a"(here.ip), "=d"(here.sp), "=c"(here.fp));
  Walker walker(memory, until);
  walker.walk(here);
  wire::DefinitionId at = walker.more() && *stack == 0 ? left_out() : *stack;
  for (std::uint32_t i = walker.count(); i > 0; --i) {
    const wire::DefinitionId inner = stack_of(memory, memory->native[i - 1], at);
    if (inner == 0) return true;  // no room for definitions: counted
    at = inner;
  }
  *stack = at;
  return walker.count() > 0;
}
#else
bool add_native_frames(StackMemory*, const AddressRange&, wire::DefinitionId*) { return false; }
#endif

namespace {

constexpr std::uint32_t kParts = 64;

constinit std::atomic<wire::StringId> off_reason{0};
constinit std::atomic<StackMemory*> parts{nullptr};

StackMemory* map_parts() {
  constexpr std::size_t kBytes = kParts * sizeof(StackMemory);
  auto* memory = static_cast<StackMemory*>(map_memory(kBytes));
  StackMemory* expected = nullptr;
  if (memory == nullptr || parts.compare_exchange_strong(expected, memory)) return memory;
  munmap(memory, kBytes);
  return expected;
}

// Null: no memory, or too many threads at once.
StackMemory* take_stack_memory() {
  constexpr std::uint32_t kTries = 8;
  StackMemory* all = parts.load(std::memory_order_acquire);
  if (all == nullptr) all = map_parts();
  if (all == nullptr) return nullptr;
  // A thread finds what it knew, unless there are more than kParts of them.
  const auto first = static_cast<std::uint32_t>(tl.thread - g.shared.load(std::memory_order_relaxed)->threads);
  for (std::uint32_t i = 0; i < kTries; ++i) {
    StackMemory* part = &all[(first + i) % kParts];
    if (part->taken.exchange(1, std::memory_order_acquire) == 0) return part;
  }
  return nullptr;
}

void count_missing(const char* why) {
  count_loss(wire::LossKind::kStacksOff);
  wire::StringId none = 0;
  if (off_reason.load(std::memory_order_relaxed) != 0) return;
  if (off_reason.compare_exchange_strong(none, intern(why), std::memory_order_relaxed)) note("stacks", "%s", why);
}

// True: there are Python frames.
bool add_python(StackMemory* memory, wire::DefinitionId* stack) {
  switch (add_python_frames(memory, stack)) {
    case PythonAnswer::kStack:
      return true;
    case PythonAnswer::kNothing:
      return false;
    case PythonAnswer::kSeveral:
      count_missing("several Python interpreters in one process: frames are not read");
      return false;
    case PythonAnswer::kNotYet:  // the first milliseconds of a program whose threads begin together: nobody waits
      count_loss(wire::LossKind::kStacksOff);
      return false;
    case PythonAnswer::kUnknownPython:
      count_missing(why_no_python());
      return false;
  }
  return false;
}

}  // namespace

wire::DefinitionId define_stack(wire::DefinitionId parent, const wire::FrameRecord& frame) {
  wire::Record definition = wire::blank(wire::RecordKind::kFrame);
  // Member by member: the padding counts when a definition is looked up.
  definition.frame.function = frame.function;
  definition.frame.file = frame.file;
  definition.frame.line = frame.line;
  definition.frame.kind = frame.kind;
  definition.frame.offset = frame.offset;
  const wire::DefinitionId id = define(definition);
  if (id == 0) return 0;
  definition = wire::blank(wire::RecordKind::kStack);
  definition.stack.parent = parent;
  definition.stack.frame = id;
  return define(definition);
}

wire::DefinitionId left_out() {
  wire::FrameRecord frame{};
  frame.kind = wire::FrameKind::kUnknown;
  frame.function = intern("<outer frames left out>");
  return define_stack(0, frame);
}

wire::StringId stacks_off_reason() { return off_reason.load(std::memory_order_relaxed); }

wire::DefinitionId launch_stack() {
  if (g.settings.stacks == 0) return 0;
  StackMemory* memory = take_stack_memory();
  if (memory == nullptr) {
    count_missing("no memory, or more than 64 threads launch at once");
    return 0;
  }
  wire::DefinitionId stack = 0;
  const bool python = (g.settings.stacks & kStacksPython) != 0 && add_python(memory, &stack);
  if ((g.settings.stacks & kStacksNative) != 0) {
    const AddressRange until = python ? python_code() : AddressRange{};
    if (!add_native_frames(memory, until, &stack) && !python) count_missing("native frames are not readable here");
  }
  memory->taken.store(0, std::memory_order_release);
  return stack;
}

wire::DefinitionId stack_here() {
  if (g.settings.stacks == 0 || enter() == nullptr) return 0;
  const wire::DefinitionId stack = launch_stack();
  leave();
  return stack;
}

}  // namespace llmprof::collect

#include "host/stacks/python.h"

#include <fmt/format.h>

#include <sys/uio.h>
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "wire/byte_reader.h"

namespace llmprof::host {

namespace {

constexpr std::size_t kMaxCodes = 32768;
constexpr std::size_t kMaxTextBytes = 1024, kMaxLineBytes = 1 << 20;
constexpr std::uint64_t kMaxUnits = 1 << 24;

std::uint32_t six_bits(wire::ByteReader& reader) {
  std::uint32_t value = 0;
  for (unsigned shift = 0;; shift += 6) {
    const auto byte = reader.fixed<std::uint8_t>();
    if (shift < 32) value |= static_cast<std::uint32_t>(byte & 0x3f) << shift;
    if ((byte & 0x40) == 0) return value;
  }
}

std::int32_t signed_six_bits(wire::ByteReader& reader) {
  const std::uint32_t value = six_bits(reader);
  const auto half = static_cast<std::int32_t>(value >> 1);
  return (value & 1) != 0 ? -half : half;
}

}  // namespace

// Each entry: a byte with its form and how many code units it covers, then what the form needs.
std::int32_t line_in_table(const std::vector<std::uint8_t>& table, std::int32_t first_line, std::uint64_t unit) {
  wire::ByteReader reader(table);
  std::int64_t line = first_line;
  std::uint64_t end = 0;
  while (reader.ok() && reader.left() > 0) {
    const auto head = reader.fixed<std::uint8_t>();
    if ((head & 0x80) == 0) break;  // not the begin of an entry
    const unsigned form = head >> 3 & 15;
    end += (head & 7u) + 1;
    bool has_line = true;
    if (form == 15) {
      has_line = false;
    } else if (form == 14) {
      line += signed_six_bits(reader);
      for (int i = 0; i < 3; ++i) six_bits(reader);
    } else if (form == 13) {
      line += signed_six_bits(reader);
    } else if (form >= 10) {
      line += form - 10;
      reader.block(2);
    } else {
      reader.block(1);
    }
    if (!reader.ok()) break;
    if (unit < end) return has_line && line > 0 && line <= INT32_MAX ? static_cast<std::int32_t>(line) : first_line;
  }
  return first_line;
}

std::uint32_t PythonCode::line_of(std::uint64_t instruction) const {
  const std::uint64_t unit = (instruction - first_instruction) / 2;
  const std::int32_t line = contains(instruction) ? line_in_table(lines, parts.first_line, unit) : parts.first_line;
  return static_cast<std::uint32_t>(std::max(0, line));
}

std::string PythonCodes::text(std::uint64_t object) {
  std::array<char, kMaxTextBytes> text;
  const int bytes = wire::read_python_text(memory_, layout_, object, text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max(0, bytes))};
}

bool PythonCodes::is_code(std::uint64_t type) {
  if (type == 0) return false;
  if (code_type_ != 0) return type == code_type_;
  const auto name = memory_.value<std::uint64_t>(type + wire::kPythonTypeName);
  if (!name || memory_.text(*name, 16) != "code") return false;
  code_type_ = type;
  return true;
}

// A code object's strings and lines never change: only what tells it from another is read again.
const PythonCode* PythonCodes::at(std::uint64_t address) {
  const auto type = memory_.value<std::uint64_t>(address + wire::kPythonType);
  PythonCode code;
  if (!type || !is_code(*type) || !wire::read_code_parts(memory_, layout_, address, &code.parts)) return nullptr;
  const auto known = codes_.find(address);
  if (known != codes_.end() && known->second.parts == code.parts) return &known->second;
  if (known != codes_.end()) codes_.erase(known);
  if (codes_.size() >= kMaxCodes) codes_.clear();
  if (!read(address, code)) return nullptr;
  return &codes_.emplace(address, std::move(code)).first->second;
}

const PythonCode* PythonCodes::containing(std::uint64_t instruction) const {
  auto after = codes_.upper_bound(instruction);
  if (after == codes_.begin()) return nullptr;
  const PythonCode& code = std::prev(after)->second;
  return code.contains(instruction) ? &code : nullptr;
}

bool PythonCodes::read(std::uint64_t address, PythonCode& code) {
  const auto units = memory_.value<std::uint64_t>(address + wire::kPythonSize);
  const auto bytes = memory_.value<std::uint64_t>(code.parts.lines + wire::kPythonSize);
  if (!units || *units > kMaxUnits || !bytes || *bytes > kMaxLineBytes) return false;
  code.address = address;
  code.first_instruction = address + layout_.code_instructions;
  code.end_instruction = code.first_instruction + 2 * *units;
  code.lines.resize(*bytes);
  code.name = text(code.parts.name);
  code.file = text(code.parts.file);
  return !code.name.empty() && memory_.read(code.parts.lines + wire::kPythonBytes, code.lines.data(), *bytes);
}

namespace {

constexpr int kMaxDepth = 512, kMaxThreads = 4096, kMaxInterpreters = 16;
constexpr std::size_t kFrameBytes = 72;             // of an interpreter frame, up to the last member that is read
constexpr std::size_t kVerifiedFrames = 16;         // innermost: those further out change seldom
constexpr std::uint64_t kMaxLoopFrameBytes = 4096;  // of the C stack, for one call of the interpreter loop

// Registers that a called function leaves alone: rbx, rbp, r12 to r15.
constexpr std::array<std::uint8_t, 6> kKept{3, 6, 12, 13, 14, 15};

// Values of the registers that are those of this frame.
std::vector<std::uint64_t> register_values(const NativeFrame& frame, bool innermost) {
  std::vector<std::uint64_t> values;
  for (std::size_t number = 0; number < kRip; ++number) {
    const bool kept = innermost || std::find(kKept.begin(), kKept.end(), number) != kKept.end();
    if (kept && frame.registers.has(number)) values.push_back(frame.registers.value[number]);
  }
  return values;
}

}  // namespace

// While the loop executes a code object it keeps a pointer to the next instruction, in a register or in its stack
// frame. Both were copied when the sample was taken: if no such pointer is there, the code ran at another time.
//
// A loop that waits for what it called: registers that point into the code prove it. Where they say nothing the pointer
// is somewhere in the loop's stack frame, so that must not have changed at all (unchanged()).
//
// A loop that is itself executing: its stack frame also holds what is left of earlier instructions, so it is believed
// only while this interpreter was never seen to use a register for it.
bool PythonProcess::was_executing(const PythonCode& code, const NativeFrame& frame, bool innermost,
                                  const StackMemory& stack) {
  bool here = false, other = false;
  const auto look = [&](std::uint64_t value) {
    const PythonCode* found = codes_->containing(value);
    here = here || found == &code;
    other = other || (found != nullptr && found != &code);
  };
  for (const std::uint64_t value : register_values(frame, innermost)) look(value);
  if (!innermost) {
    proven_ = here;
    return here || !other;
  }
  if (here) ++found_in_registers_;
  if (here || other) return here;
  for (std::uint64_t at = frame.registers.value[kRsp]; at < frame.cfa; at += 8) {
    if (const auto word = stack.word(at)) look(*word);
  }
  if (!here || other) return false;
  ++found_on_stack_;
  constexpr std::uint64_t kRatio = 8;
  return found_in_registers_ < kRatio * found_on_stack_;
}

PythonProcess::PythonProcess(pid_t pid, const AddressSpace::Place& place) : memory_(pid) {
  const auto runtime = place.module->symbol("_PyRuntime"), version = place.module->symbol("Py_Version");
  std::uint64_t number = 0;
  if (!runtime || !version || !place.module->file().read_address(*version, &number, sizeof number)) {
    why_ = "its Python is older than 3.11, or does not say where its state is";
    return;
  }
  layout_ = wire::python_layout(number);
  if (layout_ == nullptr) {
    why_ = fmt::format("Python {}.{}: llmprof reads the frames of 3.11 and 3.12", number >> 24, number >> 16 & 0xff);
    return;
  }
  runtime_ = *runtime + place.bias;
  codes_ = std::make_unique<PythonCodes>(*layout_, memory_);
  std::uint64_t probe = 0;
  if (!memory_.read(runtime_ + layout_->runtime_interpreters, &probe, sizeof probe))
    why_ = "reading its memory is not permitted (process_vm_readv)";
}

bool PythonProcess::read_frame(std::uint64_t address, const StackMemory* stack, wire::PythonFrame* frame) {
  std::array<std::uint8_t, kFrameBytes> bytes{};
  const bool copied = stack != nullptr && stack->read(address, bytes.data(), bytes.size());
  if (!copied && !memory_.read(address, bytes.data(), bytes.size())) return false;
  const StackMemory words(address, bytes);
  if (!wire::read_python_frame(words, *layout_, address, frame)) return false;
  if (!copied && walked_.size() < kVerifiedFrames) walked_.push_back({address, frame->code, frame->previous});
  return true;
}

bool PythonProcess::walk(std::uint64_t address, const StackMemory* stack, std::vector<PythonFrame>& out) {
  using wire::PythonWalk;
  const PythonWalk end_of_loop = stack == nullptr ? PythonWalk::kGoOn : PythonWalk::kEnd;
  const auto read = [&](std::uint64_t at, wire::PythonFrame* frame) { return read_frame(at, stack, frame); };
  const auto visit = [&](const wire::PythonFrame& frame) {
    if (frame.is_shim) return end_of_loop;
    const PythonCode* code = codes_->at(frame.code);
    if (code == nullptr) return PythonWalk::kUnreadable;
    out.push_back({code->name, code->file, code->line_of(frame.instruction)});
    return frame.is_entry ? end_of_loop : PythonWalk::kGoOn;
  };
  return wire::walk_python_frames(address, kMaxDepth, read, visit) == end_of_loop;
}

std::vector<std::uint64_t> PythonProcess::threads() {
  std::vector<std::uint64_t> found;
  auto interpreter = memory_.value<std::uint64_t>(runtime_ + layout_->runtime_interpreters);
  for (int i = 0; interpreter && *interpreter != 0 && i < kMaxInterpreters; ++i) {
    auto thread = memory_.value<std::uint64_t>(*interpreter + layout_->interpreter_threads);
    for (int j = 0; thread && *thread != 0 && j < kMaxThreads; ++j) {
      // A thread knows its interpreter: if it does not, these are not threads.
      if (memory_.value<std::uint64_t>(*thread + layout_->thread_interpreter) != interpreter) break;
      found.push_back(*thread);
      thread = memory_.value<std::uint64_t>(*thread + layout_->thread_next);
    }
    interpreter = memory_.value<std::uint64_t>(*interpreter + layout_->interpreter_next);
  }
  return found;
}

// Some thread's innermost _PyCFrame lies in one of the loop's stack frames of this sample: that is the distance, unless
// the thread has moved on and it lies there by chance. Several samples in a row must agree.
bool PythonProcess::learn_distance(const std::vector<NativeFrame>& frames, const StackMemory& stack) {
  for (const std::uint64_t thread : threads()) {
    const auto cframe = memory_.value<std::uint64_t>(thread + layout_->thread_cframe);
    for (std::size_t i = 0; cframe && i < frames.size(); ++i) {
      const NativeFrame& frame = frames[i];
      if (frame.cfa == 0 || *cframe < frame.registers.value[kRsp] || *cframe >= frame.cfa) continue;
      if (frame.place.module == nullptr || !frame.place.module->function(frame.place.address).python_loop) continue;
      const auto current = stack.word(*cframe + layout_->cframe_current);
      std::vector<PythonFrame> ignored;
      if (frame.cfa - *cframe > kMaxLoopFrameBytes || !current || !walk(*current, &stack, ignored)) continue;
      const std::uint64_t found = frame.cfa - *cframe;
      agreed_ = found == candidate_ ? agreed_ + 1 : 1;
      candidate_ = found;
      constexpr int kSure = 3;
      if (agreed_ >= kSure) distance_ = found;
      return distance_ != 0;
    }
  }
  return false;
}

std::optional<std::uint64_t> PythonProcess::current_frame(const NativeFrame& frame, const StackMemory& stack) {
  if (frame.cfa < distance_) return std::nullopt;
  return stack.word(frame.cfa - distance_ + layout_->cframe_current);
}

// Whether the loop's own stack frame (or, where registers have proven what it executes, its current Python frame) is
// still what the sample has, and the Python frames are still those that were read. All is read in one system call, the
// loop before and after the frames: within a microsecond or two the program cannot have gone away and come back.
bool PythonProcess::unchanged(const NativeFrame& frame, const StackMemory& stack) {
  const std::uint64_t cframe = frame.cfa - distance_ + layout_->cframe_current;
  const std::uint64_t begin = proven_ ? cframe : frame.registers.value[kRsp];
  const std::uint64_t end = proven_ ? cframe + sizeof(std::uint64_t) : frame.cfa;
  if (end <= begin || end - begin > kMaxLoopFrameBytes) return false;
  const std::size_t bytes = end - begin;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::vector<std::uint8_t> then(bytes), now(2 * bytes + 2 * walked_.size() * kWord);
  if (!stack.read(begin, then.data(), bytes)) return false;
  std::vector<iovec> remote;
  const auto add = [&](std::uint64_t address, std::size_t size) {
    remote.push_back({reinterpret_cast<void*>(address), size});  // NOLINT: an address of the other process
  };
  add(begin, bytes);
  for (const WalkedFrame& walked : walked_) {
    add(walked.address + layout_->frame_code, kWord);
    add(walked.address + layout_->frame_previous, kWord);
  }
  add(begin, bytes);
  if (!memory_.read_scattered(remote, now)) return false;
  const auto at = [&](std::size_t offset) { return now.begin() + static_cast<std::ptrdiff_t>(offset); };
  if (!std::equal(then.begin(), then.end(), at(0)) || !std::equal(then.begin(), then.end(), at(now.size() - bytes)))
    return false;
  for (std::size_t i = 0; i < walked_.size(); ++i) {  // its place in the code may go on, unless it waits too
    const std::uint64_t before[2] = {walked_[i].code, walked_[i].previous};
    if (std::memcmp(now.data() + bytes + i * sizeof before, before, sizeof before) != 0) return false;
  }
  return true;
}

PythonProcess::Answer PythonProcess::frames_of(const std::vector<NativeFrame>& frames, std::size_t index,
                                               const StackMemory& stack, std::vector<PythonFrame>& out) {
  const NativeFrame& frame = frames[index];
  if (layout_ == nullptr || frame.cfa == 0) return Answer::kMovedOn;
  if (distance_ == 0 && (std::exchange(asked_, true) || !learn_distance(frames, stack))) return Answer::kMovedOn;
  walked_.clear();
  const auto current = current_frame(frame, stack);
  wire::PythonFrame innermost{};
  const bool read = current && read_frame(*current, &stack, &innermost);
  if (read && innermost.is_shim) return Answer::kNone;
  const PythonCode* code = read ? codes_->at(innermost.code) : nullptr;
  if (code == nullptr || !was_executing(*code, frame, index == 0, stack)) return innermost_of(frame, index == 0, out);
  const std::size_t before = out.size();
  if (walk(*current, &stack, out) && (index == 0 || unchanged(frame, stack))) return Answer::kFrames;
  out.resize(before);
  return innermost_of(frame, index == 0, out);
}

// The one function that registers point into, if it is one that was read before and is still there.
PythonProcess::Answer PythonProcess::innermost_of(const NativeFrame& frame, bool innermost,
                                                  std::vector<PythonFrame>& out) {
  const PythonCode* code = nullptr;
  std::uint64_t instruction = 0;
  for (const std::uint64_t value : register_values(frame, innermost)) {
    const PythonCode* found = codes_->containing(value);
    if (found == nullptr) continue;
    if (code != nullptr && found != code) return Answer::kMovedOn;
    code = found;
    instruction = value;
  }
  if (code == nullptr || codes_->at(code->address) != code) return Answer::kMovedOn;
  out.push_back({code->name, code->file, code->line_of(instruction)});
  return Answer::kInnermost;
}

std::vector<PythonFrame> PythonProcess::stack_of_thread(pid_t tid) {
  std::vector<PythonFrame> out;
  if (layout_ == nullptr) return out;
  memory_.refresh();
  for (const std::uint64_t thread : threads()) {
    if (memory_.value<std::uint64_t>(thread + layout_->thread_native_id) != static_cast<std::uint64_t>(tid)) continue;
    std::uint64_t current = 0;
    if (!wire::read_current_frame(memory_, *layout_, thread, &current) || !walk(current, nullptr, out)) out.clear();
    return out;
  }
  return out;
}

}  // namespace llmprof::host

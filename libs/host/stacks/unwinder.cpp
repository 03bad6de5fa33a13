#include "host/stacks/unwinder.h"

#include <algorithm>
#include <array>

#include "wire/byte_reader.h"

namespace llmprof::host {

namespace {

using wire::RuleKind;

constexpr int kMaxScans = 3;                    // guesses per stack
constexpr std::uint64_t kScanBytes = 24 << 10;  // the buffers that BLAS kernels keep on the stack are smaller

class Walk {
 public:
  Walk(const StackMemory& stack, AddressSpace& space, std::uint64_t now_ns)
      : stack_(stack), space_(space), now_ns_(now_ns) {}

  enum class Step { kCaller, kOutermost, kLost };

  // Replaces the registers by those of the caller.
  Step step(NativeFrame& frame, bool innermost, Registers& registers, bool& interrupted) {
    Module* module = frame.place.module;
    const UnwindRow* row = module != nullptr ? module->row(frame.place.address) : nullptr;
    interrupted = row != nullptr && row->signal_frame;
    if (row != nullptr) {
      if (row->outermost()) return Step::kOutermost;
      Registers caller = registers;
      const bool stepped = by_row(*row, frame, caller);
      if (stepped && !innermost && caller.value[kRip] == 0) return Step::kOutermost;
      if (stepped && believable(registers, caller, interrupted)) {
        registers = caller;
        return Step::kCaller;
      }
    } else if (module != nullptr && is_start(*module, frame.place.address)) {
      return Step::kOutermost;
    }
    interrupted = false;
    Registers caller = registers;
    const bool tables = module != nullptr && module->has_unwind_table();
    if ((tables && by_scan(frame, caller)) || by_frame_pointer(frame, caller)) {
      registers = caller;
      return Step::kCaller;
    }
    return Step::kLost;
  }

 private:
  // The loader begins with some instructions that have no table and no caller.
  static bool is_start(const Module& module, std::uint64_t address) {
    constexpr std::uint64_t kEntryBytes = 64;
    return address - module.file().entry() < kEntryBytes;
  }

  std::optional<std::uint64_t> value_of(const UnwindRow& row, std::size_t number, std::uint64_t cfa,
                                        const Registers& registers) const {
    const wire::Rule& rule = row.rules[number];
    switch (rule.kind) {
      case RuleKind::kSame:
        return registers.get(number);
      case RuleKind::kUndefined:
        return std::nullopt;
      case RuleKind::kAtCfa:
        return stack_.word(cfa + static_cast<std::uint64_t>(std::int64_t{rule.offset}));
      case RuleKind::kCfaPlus:
        return cfa + static_cast<std::uint64_t>(std::int64_t{rule.offset});
      case RuleKind::kRegister:
        return registers.get(rule.number);
      case RuleKind::kAtExpression: {
        const auto address = evaluate(row.expression(rule), cfa, registers, stack_);
        return address ? stack_.word(*address) : std::nullopt;
      }
      case RuleKind::kExpression:
        return evaluate(row.expression(rule), cfa, registers, stack_);
    }
    return std::nullopt;
  }

  bool by_row(const UnwindRow& row, NativeFrame& frame, Registers& registers) const {
    if (row.rules[kRip].kind == RuleKind::kSame) return false;
    std::optional<std::uint64_t> cfa;
    if (row.cfa.kind == RuleKind::kRegister) {
      cfa = registers.get(row.cfa.number);
      if (cfa) *cfa += static_cast<std::uint64_t>(std::int64_t{row.cfa.offset});
    } else {
      cfa = evaluate(row.expression(row.cfa), std::nullopt, registers, stack_);
    }
    if (!cfa) return false;
    Registers caller = registers;
    for (std::size_t number = 0; number < kRegisters; ++number) {
      if (row.rules[number].kind == RuleKind::kSame) continue;
      const auto value = value_of(row, number, *cfa, registers);
      if (value) {
        caller.set(number, *value);
      } else {
        caller.forget(number);
      }
    }
    if (row.rules[kRsp].kind == RuleKind::kSame) caller.set(kRsp, *cfa);
    if (!caller.has(kRip) || !caller.has(kRsp)) return false;
    frame.cfa = *cfa;
    registers = caller;
    return true;
  }

  bool is_return_address(std::uint64_t address) const {
    AddressSpace::Place place;
    if (address == 0 || !space_.find(address - 1, now_ns_, place)) return false;
    return place.module == nullptr || place.module->follows_call(place.address + 1);
  }

  bool believable(const Registers& callee, const Registers& caller, bool interrupted) const {
    const std::uint64_t pc = caller.value[kRip];
    AddressSpace::Place place;
    if (interrupted) return space_.find(pc, now_ns_, place);
    if (caller.value[kRsp] <= callee.value[kRsp]) return false;
    if (is_return_address(pc)) return true;
    // A signal handler returns to a place that nothing called.
    if (!space_.find(pc, now_ns_, place) || place.module == nullptr) return false;
    const UnwindRow* row = place.module->row(place.address);
    return row != nullptr && row->signal_frame;
  }

  bool by_scan(NativeFrame& frame, Registers& registers) {
    if (scans_ == kMaxScans) return false;
    const std::uint64_t function = frame.place.module->function(frame.place.address).begin;
    const std::uint64_t begin = (registers.value[kRsp] + 7) & ~std::uint64_t{7};
    for (std::uint64_t at = begin; at < begin + kScanBytes; at += 8) {
      const auto word = stack_.word(at);
      if (!word) return false;
      AddressSpace::Place place;
      if (*word < 4096 || !space_.find(*word - 1, now_ns_, place) || place.module == nullptr) continue;
      if (!place.module->follows_call(place.address + 1)) continue;
      const auto target = place.module->call_target(place.address + 1);
      if (target && *target + place.bias != function + frame.place.bias) continue;  // it called something else
      ++scans_;
      frame.cfa = at + 8;
      registers.set(kRip, *word);
      registers.set(kRsp, at + 8);
      return true;
    }
    return false;
  }

  bool by_frame_pointer(NativeFrame& frame, Registers& registers) const {
    if (!registers.has(kRbp)) return false;
    const std::uint64_t base = registers.value[kRbp];
    const auto outer = stack_.word(base), back = stack_.word(base + 8);
    if (base < registers.value[kRsp] || !outer || !back || !is_return_address(*back)) return false;
    frame.cfa = base + 16;
    registers.set(kRip, *back);
    registers.set(kRsp, base + 16);
    registers.set(kRbp, *outer);
    return true;
  }

  const StackMemory& stack_;
  AddressSpace& space_;
  std::uint64_t now_ns_;
  int scans_ = 0;
};

}  // namespace

void unwind(const Registers& start, const StackMemory& stack, AddressSpace& space, std::uint64_t now_ns,
            NativeStack& out) {
  out.frames.clear();
  out.truncated = true;
  Walk walk(stack, space, now_ns);
  Registers registers = start;
  bool exact = true;  // pc is the next instruction itself, not the one after a call
  while (out.frames.size() < kMaxFrames) {
    NativeFrame& frame = out.frames.emplace_back();
    frame.pc = registers.value[kRip] - (exact ? 0 : 1);
    frame.registers = registers;
    space.find(frame.pc, now_ns, frame.place);
    bool interrupted = false;
    const Walk::Step step = walk.step(frame, out.frames.size() == 1, registers, interrupted);
    if (step == Walk::Step::kOutermost) out.truncated = false;
    if (step != Walk::Step::kCaller) return;
    exact = interrupted;
  }
}

namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr int kMaxSteps = 1000;  // jumps can go backwards

class Machine {
 public:
  Machine(std::span<const std::uint8_t> program, const Registers& registers, const StackMemory& stack)
      : reader_(program), registers_(registers), stack_(stack) {}

  void push(std::uint64_t value) {
    if (depth_ == kMaxDepth) return reader_.fail();
    values_[depth_++] = value;
  }

  std::optional<std::uint64_t> run() {
    for (int step = 0; reader_.ok() && reader_.left() > 0; ++step) {
      if (step == kMaxSteps) return std::nullopt;
      const auto code = reader_.fixed<std::uint8_t>();
      if (!constant(code) && !arrange(code) && !unary(code) && !jump(code) && !binary(code)) return std::nullopt;
    }
    if (!reader_.ok() || depth_ == 0) return std::nullopt;
    return values_[depth_ - 1];
  }

 private:
  std::uint64_t pop() {
    if (depth_ == 0) {
      reader_.fail();
      return 0;
    }
    return values_[--depth_];
  }
  std::uint64_t peek(std::size_t below) {
    if (below >= depth_) {
      reader_.fail();
      return 0;
    }
    return values_[depth_ - 1 - below];
  }
  void push_register(std::uint64_t number, std::int64_t offset) {
    if (!registers_.has(number)) return reader_.fail();
    push(registers_.value[number] + static_cast<std::uint64_t>(offset));
  }
  std::uint64_t fixed(std::size_t bytes, bool is_signed) {
    std::uint64_t value = 0;
    const auto block = reader_.block(bytes);
    std::copy(block.begin(), block.end(), reinterpret_cast<std::uint8_t*>(&value));
    const auto unused = static_cast<unsigned>(64 - 8 * bytes);
    return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused) : value;
  }

  bool constant(std::uint8_t code) {
    if (code >= 0x30 && code <= 0x4f) return push(code - 0x30u), true;  // lit0…lit31
    if (code >= 0x70 && code <= 0x8f) {                                 // breg0…breg31
      const std::int64_t offset = reader_.sleb();
      return push_register(code - 0x70u, offset), true;
    }
    if (code >= 0x08 && code <= 0x0f)  // const1u, const1s, const2u … const8s
      return push(fixed(std::size_t{1} << (code - 0x08) / 2, code % 2 != 0)), true;
    switch (code) {
      case 0x03:  // addr
        return push(fixed(8, false)), true;
      case 0x10:  // constu
        return push(reader_.uleb()), true;
      case 0x11:  // consts
        return push(static_cast<std::uint64_t>(reader_.sleb())), true;
      case 0x92: {  // bregx
        const std::uint64_t number = reader_.uleb();
        return push_register(number, reader_.sleb()), true;
      }
      default:
        return false;
    }
  }

  bool arrange(std::uint8_t code) {
    switch (code) {
      case 0x12:  // dup
        return push(peek(0)), true;
      case 0x13:  // drop
        return pop(), true;
      case 0x14:  // over
        return push(peek(1)), true;
      case 0x15:  // pick
        return push(peek(reader_.fixed<std::uint8_t>())), true;
      case 0x16: {  // swap
        const std::uint64_t top = pop(), below = pop();
        return push(top), push(below), true;
      }
      case 0x17: {  // rot: the top goes below the next two
        const std::uint64_t top = pop(), second = pop(), third = pop();
        return push(top), push(third), push(second), true;
      }
      case 0x96:  // nop
        return true;
      default:
        return false;
    }
  }

  bool unary(std::uint8_t code) {
    switch (code) {
      case 0x06: {  // deref
        const std::optional<std::uint64_t> word = stack_.word(pop());
        if (!word) reader_.fail();
        return push(word.value_or(0)), true;
      }
      case 0x19: {  // abs
        const std::uint64_t value = pop();
        return push(static_cast<std::int64_t>(value) < 0 ? 0 - value : value), true;
      }
      case 0x1f:  // neg
        return push(0 - pop()), true;
      case 0x20:  // not
        return push(~pop()), true;
      case 0x23: {  // plus_uconst
        const std::uint64_t more = reader_.uleb();
        return push(pop() + more), true;
      }
      default:
        return false;
    }
  }

  bool jump(std::uint8_t code) {
    if (code != 0x2f && code != 0x28) return false;  // skip, bra
    const auto distance = reader_.fixed<std::int16_t>();
    if (code == 0x28 && pop() == 0) return true;
    reader_.seek(reader_.at() + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance)));
    return true;
  }

  // Not div, mod and shra: unwind rules do not use them.
  bool binary(std::uint8_t code) {
    using Word = std::uint64_t;
    using Signed = std::int64_t;
    struct Operation {
      std::uint8_t code;
      Word (*apply)(Word left, Word right);
    };
    static constexpr Operation kOperations[] = {
        {0x1a, [](Word left, Word right) { return left & right; }},
        {0x1c, [](Word left, Word right) { return left - right; }},
        {0x1e, [](Word left, Word right) { return left * right; }},
        {0x21, [](Word left, Word right) { return left | right; }},
        {0x22, [](Word left, Word right) { return left + right; }},
        {0x24, [](Word left, Word right) { return right < 64 ? left << right : 0; }},
        {0x25, [](Word left, Word right) { return right < 64 ? left >> right : 0; }},
        {0x27, [](Word left, Word right) { return left ^ right; }},
        {0x29, [](Word left, Word right) { return Word{left == right}; }},
        {0x2a, [](Word left, Word right) { return Word{static_cast<Signed>(left) >= static_cast<Signed>(right)}; }},
        {0x2b, [](Word left, Word right) { return Word{static_cast<Signed>(left) > static_cast<Signed>(right)}; }},
        {0x2c, [](Word left, Word right) { return Word{static_cast<Signed>(left) <= static_cast<Signed>(right)}; }},
        {0x2d, [](Word left, Word right) { return Word{static_cast<Signed>(left) < static_cast<Signed>(right)}; }},
        {0x2e, [](Word left, Word right) { return Word{left != right}; }},
    };
    const auto found = std::ranges::find(kOperations, code, &Operation::code);
    if (found == std::end(kOperations)) return false;
    const Word right = pop(), left = pop();
    return push(found->apply(left, right)), true;
  }

  wire::ByteReader reader_;
  const Registers& registers_;
  const StackMemory& stack_;
  std::array<std::uint64_t, kMaxDepth> values_{};
  std::size_t depth_ = 0;
};

}  // namespace

std::optional<std::uint64_t> evaluate(std::span<const std::uint8_t> program, std::optional<std::uint64_t> first,
                                      const Registers& registers, const StackMemory& stack) {
  Machine machine(program, registers, stack);
  if (first) machine.push(*first);
  return machine.run();
}

}  // namespace llmprof::host

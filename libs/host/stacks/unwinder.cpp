#include "host/stacks/unwinder.h"

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

}  // namespace llmprof::host

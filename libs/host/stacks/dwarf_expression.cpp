#include "host/stacks/unwinder.h"

#include <array>

#include "wire/byte_reader.h"

namespace llmprof::host {
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
  template <class T>
  void push_signed() {
    push(static_cast<std::uint64_t>(static_cast<std::int64_t>(reader_.fixed<T>())));
  }

  bool constant(std::uint8_t code) {
    if (code >= 0x30 && code <= 0x4f) return push(code - 0x30u), true;  // lit0…lit31
    if (code >= 0x70 && code <= 0x8f) {                                 // breg0…breg31
      const std::int64_t offset = reader_.sleb();
      return push_register(code - 0x70u, offset), true;
    }
    switch (code) {
      case 0x03:  // addr
      case 0x0e:  // const8u
      case 0x0f:  // const8s
        return push(reader_.fixed<std::uint64_t>()), true;
      case 0x08:
        return push(reader_.fixed<std::uint8_t>()), true;
      case 0x09:
        return push_signed<std::int8_t>(), true;
      case 0x0a:
        return push(reader_.fixed<std::uint16_t>()), true;
      case 0x0b:
        return push_signed<std::int16_t>(), true;
      case 0x0c:
        return push(reader_.fixed<std::uint32_t>()), true;
      case 0x0d:
        return push_signed<std::int32_t>(), true;
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

  bool binary(std::uint8_t code) {
    if ((code < 0x1a || code > 0x2e) || code == 0x1f || code == 0x20) return false;
    const std::uint64_t right = pop(), left = pop();
    const auto signed_left = static_cast<std::int64_t>(left), signed_right = static_cast<std::int64_t>(right);
    switch (code) {
      case 0x1a:
        return push(left & right), true;
      case 0x1c:
        return push(left - right), true;
      case 0x1e:
        return push(left * right), true;
      case 0x21:
        return push(left | right), true;
      case 0x22:
        return push(left + right), true;
      case 0x24:
        return push(right < 64 ? left << right : 0), true;
      case 0x25:
        return push(right < 64 ? left >> right : 0), true;
      case 0x27:
        return push(left ^ right), true;
      case 0x29:
        return push(left == right), true;
      case 0x2a:
        return push(signed_left >= signed_right), true;
      case 0x2b:
        return push(signed_left > signed_right), true;
      case 0x2c:
        return push(signed_left <= signed_right), true;
      case 0x2d:
        return push(signed_left < signed_right), true;
      case 0x2e:
        return push(left != right), true;
      default:  // div, mod, shra: unwind rules do not use them
        return false;
    }
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

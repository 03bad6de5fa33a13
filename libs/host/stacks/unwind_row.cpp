#include "host/stacks/unwind_row.h"

#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "host/stacks/byte_reader.h"

namespace llmprof::host {
namespace {

constexpr std::uint8_t kOmitted = 0xff;
constexpr std::size_t kMaxRemembered = 16;

struct Cie {
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint8_t pointer_encoding = 0;
  bool augmented = false, signal_frame = false;
  std::span<const std::uint8_t> program;
};

// A pointer in one of the DW_EH_PE encodings; `base` is the address of the entry's first byte.
std::optional<std::uint64_t> encoded(ByteReader& reader, std::uint8_t encoding, std::uint64_t base) {
  const std::uint64_t here = base + reader.at();
  std::uint64_t value = 0;
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      value = reader.fixed<std::uint64_t>();
      break;
    case 0x01:
      value = reader.uleb();
      break;
    case 0x02:
      value = reader.fixed<std::uint16_t>();
      break;
    case 0x03:
      value = reader.fixed<std::uint32_t>();
      break;
    case 0x09:
      value = static_cast<std::uint64_t>(reader.sleb());
      break;
    case 0x0a:
      value = static_cast<std::uint64_t>(std::int64_t{reader.fixed<std::int16_t>()});
      break;
    case 0x0b:
      value = static_cast<std::uint64_t>(std::int64_t{reader.fixed<std::int32_t>()});
      break;
    default:
      return std::nullopt;
  }
  switch (encoding & 0x70) {
    case 0x00:
      break;
    case 0x10:  // relative to where it stands
      value += here;
      break;
    default:
      return std::nullopt;
  }
  if (!reader.ok() || (encoding & 0x80) != 0) return std::nullopt;
  return value;
}

bool read_augmentation(ByteReader& reader, const std::string& letters, std::uint64_t base, Cie& cie) {
  if (letters.empty()) return true;
  if (letters[0] != 'z') return false;
  cie.augmented = true;
  const std::uint64_t bytes = reader.uleb();
  const std::uint64_t end = reader.at() + bytes;
  for (const char letter : letters.substr(1)) {
    if (letter == 'R') {
      cie.pointer_encoding = reader.fixed<std::uint8_t>();
    } else if (letter == 'S') {
      cie.signal_frame = true;
    } else if (letter == 'L') {
      reader.fixed<std::uint8_t>();
    } else if (letter == 'P') {
      const auto encoding = reader.fixed<std::uint8_t>();
      // Indirect or not, it takes the same room; the address itself is not wanted.
      if (encoding != kOmitted && !encoded(reader, encoding & 0x0f, base)) return false;
    } else {
      break;  // unknown letters: the length says where they end
    }
  }
  if (end < bytes) return false;
  reader.seek(end);
  return reader.ok();
}

std::optional<Cie> parse_cie(const FrameEntry& entry) {
  ByteReader reader(entry.bytes);
  Cie cie;
  if (reader.fixed<std::uint32_t>() != 0) return std::nullopt;  // the id of a CIE
  const auto version = reader.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return std::nullopt;
  std::string letters;
  while (const char letter = static_cast<char>(reader.fixed<std::uint8_t>())) letters += letter;
  cie.code_factor = reader.uleb();
  cie.data_factor = reader.sleb();
  const std::uint64_t return_register = version == 1 ? reader.fixed<std::uint8_t>() : reader.uleb();
  if (return_register != kRip || !read_augmentation(reader, letters, entry.address, cie)) return std::nullopt;
  cie.program = reader.block(reader.left());
  return cie;
}

// Runs the instructions of a CIE and an FDE up to one address.
class RowProgram {
 public:
  RowProgram(const Cie& cie, std::uint64_t begin, std::uint64_t pc, UnwindRow& row)
      : cie_(cie), location_(begin), pc_(pc), row_(row) {}

  void remember_initial() { initial_ = row_.rules; }

  bool run(std::span<const std::uint8_t> program, std::uint64_t address) {
    ByteReader reader(program);
    while (reader.ok() && reader.left() > 0) {
      const auto code = reader.fixed<std::uint8_t>();
      if ((code & 0xc0) != 0) {
        short_form(reader, code);
      } else if (!advance(reader, code, address) && !registers(reader, code) && !cfa(reader, code)) {
        return false;
      }
      if (location_ > pc_) return good_;  // what was set so far holds for pc
    }
    return reader.ok() && good_;
  }

 private:
  using Rules = std::array<Rule, kRegisters>;

  std::int32_t scaled(std::int64_t value) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(value, cie_.data_factor, &product)) good_ = false;
    return narrow(product);
  }
  std::int32_t narrow(std::int64_t value) {
    if (value > std::numeric_limits<std::int32_t>::max() || value < std::numeric_limits<std::int32_t>::min()) {
      good_ = false;
      return 0;
    }
    return static_cast<std::int32_t>(value);
  }
  std::int32_t narrow_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
      return static_cast<std::int32_t>(value);
    good_ = false;
    return 0;
  }
  // Vector registers have rules too; nobody here wants them.
  void set(std::uint64_t number, const Rule& rule) {
    if (number < kRegisters) row_.rules[number] = rule;
  }
  void restore(std::uint64_t number) {
    if (number < kRegisters) row_.rules[number] = initial_[number];
  }
  Rule expression(ByteReader& reader, RuleKind kind) {
    const auto program = reader.block(reader.uleb());
    if (program.size() > std::numeric_limits<std::uint16_t>::max()) good_ = false;
    Rule rule{.kind = kind, .bytes = static_cast<std::uint16_t>(program.size())};
    rule.offset = narrow_unsigned(row_.programs.size());
    row_.programs.insert(row_.programs.end(), program.begin(), program.end());
    return rule;
  }
  void move(std::uint64_t units) { location_ += units * cie_.code_factor; }

  void short_form(ByteReader& reader, std::uint8_t code) {
    const std::uint8_t low = code & 0x3f;
    if ((code & 0xc0) == 0x40) {
      move(low);
    } else if ((code & 0xc0) == 0x80) {
      set(low, {.kind = RuleKind::kAtCfa, .offset = scaled(narrow_unsigned(reader.uleb()))});
    } else {
      restore(low);
    }
  }

  bool advance(ByteReader& reader, std::uint8_t code, std::uint64_t address) {
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x01: {  // set_loc
        const auto target = encoded(reader, cie_.pointer_encoding, address);
        location_ = target.value_or(0);
        return target.has_value();
      }
      case 0x02:
        return move(reader.fixed<std::uint8_t>()), true;
      case 0x03:
        return move(reader.fixed<std::uint16_t>()), true;
      case 0x04:
        return move(reader.fixed<std::uint32_t>()), true;
      case 0x2e:  // size of pushed arguments
        return reader.uleb(), true;
      default:
        return false;
    }
  }

  bool registers(ByteReader& reader, std::uint8_t code) {
    if (code == 0x0a) return remember();
    if (code == 0x0b) return recall();
    if ((code < 0x05 || code > 0x09) && code != 0x10 && code != 0x11 && (code < 0x14 || code > 0x16)) return false;
    const std::uint64_t number = reader.uleb();
    switch (code) {
      case 0x05:
        return set(number, {.kind = RuleKind::kAtCfa, .offset = scaled(narrow_unsigned(reader.uleb()))}), true;
      case 0x06:
        return restore(number), true;
      case 0x07:
        return set(number, {.kind = RuleKind::kUndefined}), true;
      case 0x08:
        return set(number, {.kind = RuleKind::kSame}), true;
      case 0x09: {
        const std::uint64_t other = reader.uleb();
        if (other >= kRegisters) return false;
        return set(number, {.kind = RuleKind::kRegister, .number = static_cast<std::uint8_t>(other)}), true;
      }
      case 0x10:
        return set(number, expression(reader, RuleKind::kAtExpression)), true;
      case 0x11:
        return set(number, {.kind = RuleKind::kAtCfa, .offset = scaled(reader.sleb())}), true;
      case 0x14:
        return set(number, {.kind = RuleKind::kCfaPlus, .offset = scaled(narrow_unsigned(reader.uleb()))}), true;
      case 0x15:
        return set(number, {.kind = RuleKind::kCfaPlus, .offset = scaled(reader.sleb())}), true;
      default:  // 0x16
        return set(number, expression(reader, RuleKind::kExpression)), true;
    }
  }

  bool cfa(ByteReader& reader, std::uint8_t code) {
    switch (code) {
      case 0x0c:
      case 0x12: {
        const std::uint64_t number = reader.uleb();
        if (number >= kRegisters) return false;
        row_.cfa = {.kind = RuleKind::kRegister, .number = static_cast<std::uint8_t>(number)};
        row_.cfa.offset = code == 0x0c ? narrow_unsigned(reader.uleb()) : scaled(reader.sleb());
        return true;
      }
      case 0x0d: {
        const std::uint64_t number = reader.uleb();
        if (number >= kRegisters || row_.cfa.kind != RuleKind::kRegister) return false;
        row_.cfa.number = static_cast<std::uint8_t>(number);
        return true;
      }
      case 0x0e:
      case 0x13:
        row_.cfa.offset = code == 0x0e ? narrow_unsigned(reader.uleb()) : scaled(reader.sleb());
        return row_.cfa.kind == RuleKind::kRegister;
      case 0x0f:
        row_.cfa = expression(reader, RuleKind::kExpression);
        return true;
      default:
        return false;
    }
  }

  bool remember() {
    if (remembered_.size() == kMaxRemembered) return false;
    remembered_.emplace_back(row_.cfa, row_.rules);
    return true;
  }
  bool recall() {
    if (remembered_.empty()) return false;
    std::tie(row_.cfa, row_.rules) = remembered_.back();
    remembered_.pop_back();
    return true;
  }

  const Cie& cie_;
  std::uint64_t location_, pc_;
  UnwindRow& row_;
  Rules initial_{};
  std::vector<std::pair<Rule, Rules>> remembered_;
  bool good_ = true;
};

}  // namespace

std::optional<UnwindRow> unwind_row(const FrameEntry& cie_entry, const FrameEntry& fde, std::uint64_t pc) {
  const std::optional<Cie> cie = parse_cie(cie_entry);
  if (!cie) return std::nullopt;
  ByteReader reader(fde.bytes);
  reader.fixed<std::uint32_t>();  // where the CIE is
  const auto begin = encoded(reader, cie->pointer_encoding, fde.address);
  const auto bytes = encoded(reader, cie->pointer_encoding & 0x0f, fde.address);
  if (!begin || !bytes || pc < *begin || pc - *begin >= *bytes) return std::nullopt;
  if (cie->augmented) reader.block(reader.uleb());
  if (!reader.ok()) return std::nullopt;

  UnwindRow row;
  row.function_begin = *begin;
  row.function_end = *begin + *bytes;
  row.signal_frame = cie->signal_frame;
  row.cfa.kind = RuleKind::kUndefined;
  RowProgram program(*cie, *begin, pc, row);
  if (!program.run(cie->program, cie_entry.address)) return std::nullopt;
  program.remember_initial();
  const std::uint64_t program_address = fde.address + reader.at();
  if (!program.run(reader.block(reader.left()), program_address)) return std::nullopt;
  if (row.cfa.kind == RuleKind::kUndefined) return std::nullopt;
  return row;
}

}  // namespace llmprof::host

#pragma once
// Call frame information (.eh_frame, DWARF's CFI) of x86-64: the rules that lead from one frame to its caller at one
// instruction. One reader for both unwinders: the collector's, inside the process, and the host's, which reads files.
// All bytes are untrusted. Libc only, no allocation, about 2 KiB of stack.

#include <cstdint>
#include <span>

#include "wire/byte_reader.h"

namespace llmprof::wire {

// Registers by their DWARF numbers; 16 is the return address.
inline constexpr std::size_t kRegisters = 17;
inline constexpr std::uint8_t kRbp = 6, kRsp = 7, kRip = 16;

enum class RuleKind : std::uint8_t {
  kSame,          // the caller's value is still in the register
  kUndefined,     // lost
  kAtCfa,         // in memory at CFA + offset
  kCfaPlus,       // CFA + offset itself
  kRegister,      // in another register
  kAtExpression,  // in memory at the value of an expression
  kExpression,    // the value of an expression
};

struct Rule {
  RuleKind kind = RuleKind::kSame;
  std::uint8_t number = 0;  // register; of an expression: the entry it stands in
  std::uint16_t bytes = 0;  // of the expression
  std::int32_t offset = 0;  // from the CFA; of an expression: where it begins in its entry
};

// An entry of .eh_frame without its length field, and the address of its first byte after that field.
struct FrameEntry {
  std::uint64_t address = 0;
  std::span<const std::uint8_t> bytes;
};

struct UnwindRow {
  std::uint64_t function_begin = 0, function_end = 0;  // what the FDE covers
  Rule cfa;                                            // kRegister with offset, or kExpression
  Rule rules[kRegisters];
  const std::uint8_t* entries[2] = {};  // the bytes of the CIE and of the FDE: expressions are read from them
  bool signal_frame = false;            // the frame was interrupted, not called

  bool outermost() const { return rules[kRip].kind == RuleKind::kUndefined; }
  std::span<const std::uint8_t> expression(const Rule& rule) const {
    return {entries[rule.number] + rule.offset, rule.bytes};
  }
};

// A pointer in one of the DW_EH_PE encodings; `base` is the address of the reader's first byte.
inline std::uint64_t read_encoded(ByteReader& reader, std::uint8_t encoding, std::uint64_t base) {
  const std::uint64_t here = base + reader.at();
  const auto extended = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
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
      value = extended(reader.sleb());
      break;
    case 0x0a:
      value = extended(reader.fixed<std::int16_t>());
      break;
    case 0x0b:
      value = extended(reader.fixed<std::int32_t>());
      break;
    default:
      reader.fail();
  }
  const std::uint8_t relative = encoding & 0xf0;
  if (relative != 0 && relative != 0x10) reader.fail();  // only relative to where it stands
  return relative == 0x10 ? value + here : value;
}

struct CommonEntry {  // a CIE
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint8_t pointer_encoding = 0;
  bool augmented = false, signal_frame = false;
  std::size_t program = 0;  // where its instructions begin
};

inline void read_augmentation(ByteReader& reader, const char* letters, std::uint64_t base, CommonEntry* cie) {
  constexpr std::uint8_t kOmitted = 0xff;
  if (*letters == '\0') return;
  if (*letters != 'z') return reader.fail();
  cie->augmented = true;
  const std::uint64_t bytes = reader.uleb();
  const std::uint64_t end = reader.at() + bytes;
  for (++letters;; ++letters) {
    if (*letters == 'R') {
      cie->pointer_encoding = reader.fixed<std::uint8_t>();
    } else if (*letters == 'S') {
      cie->signal_frame = true;
    } else if (*letters == 'L') {
      reader.fixed<std::uint8_t>();
    } else if (*letters == 'P') {
      const auto encoding = reader.fixed<std::uint8_t>();
      // Indirect or not, it takes the same space; the address itself is not needed.
      if (encoding != kOmitted) read_encoded(reader, encoding & 0x0f, base);
    } else {
      break;  // unknown letters: the length says where they end
    }
  }
  if (end < bytes) return reader.fail();
  reader.seek(end);
}

inline bool read_cie(const FrameEntry& entry, CommonEntry* cie) {
  ByteReader reader(entry.bytes);
  if (reader.fixed<std::uint32_t>() != 0) return false;  // the id of a CIE
  const auto version = reader.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  char letters[8] = {};
  for (std::size_t i = 0; (letters[i] = static_cast<char>(reader.fixed<std::uint8_t>())) != '\0'; ++i) {
    if (i + 2 == sizeof(letters)) return false;
  }
  cie->code_factor = reader.uleb();
  cie->data_factor = reader.sleb();
  if ((version == 1 ? reader.fixed<std::uint8_t>() : reader.uleb()) != kRip) return false;
  read_augmentation(reader, letters, entry.address, cie);
  cie->program = reader.at();
  return reader.ok();
}

// Runs the instructions of a CIE and an FDE up to one address.
class RowProgram {
 public:
  RowProgram(const CommonEntry& cie, std::uint64_t begin, std::uint64_t pc, UnwindRow* row)
      : cie_(cie), location_(begin), pc_(pc), row_(*row) {}

  // What `restore` goes back to: the rules after the CIE's instructions.
  void remember_initial() { __builtin_memcpy(initial_, row_.rules, sizeof(initial_)); }

  bool run(const FrameEntry& entry, std::size_t begin, std::uint8_t number) {
    ByteReader reader(entry.bytes);
    reader.seek(begin);
    entry_ = number;
    while (reader.ok() && reader.left() > 0) {
      const auto code = reader.fixed<std::uint8_t>();
      const std::uint8_t low = code & 0x3f;
      if ((code & 0xc0) == 0x40) {
        move(low);
      } else if ((code & 0xc0) == 0x80) {
        set(low, {.kind = RuleKind::kAtCfa, .offset = scaled(reader.uleb())});
      } else if ((code & 0xc0) == 0xc0) {
        restore(low);
      } else if (!step(reader, code, entry.address)) {
        return false;
      }
      if (location_ > pc_) return good_;  // what was set so far holds for pc
    }
    return reader.ok() && good_;
  }

 private:
  static constexpr std::size_t kMaxRemembered = 8;

  std::int32_t narrow(std::int64_t value) {
    good_ = good_ && value == static_cast<std::int32_t>(value);
    return static_cast<std::int32_t>(value);
  }
  std::int32_t narrow(std::uint64_t value) {
    good_ = good_ && value <= INT32_MAX;
    return static_cast<std::int32_t>(value);
  }
  std::int32_t scaled(std::int64_t value) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(value, cie_.data_factor, &product)) good_ = false;
    return narrow(product);
  }
  std::int32_t scaled(std::uint64_t value) { return scaled(std::int64_t{narrow(value)}); }
  // Vector registers have rules too; nobody here needs them.
  void set(std::uint64_t number, const Rule& rule) {
    if (number < kRegisters) row_.rules[number] = rule;
  }
  void restore(std::uint64_t number) {
    if (number < kRegisters) row_.rules[number] = initial_[number];
  }
  Rule expression(ByteReader& reader, RuleKind kind) {
    const std::uint64_t bytes = reader.uleb();
    const std::size_t begin = reader.at();
    reader.block(bytes);
    good_ = good_ && bytes <= UINT16_MAX;
    return {kind, entry_, static_cast<std::uint16_t>(bytes), narrow(std::uint64_t{begin})};
  }
  void move(std::uint64_t units) { location_ += units * cie_.code_factor; }
  bool set_cfa_register(std::uint64_t number) {
    row_.cfa.kind = RuleKind::kRegister;
    row_.cfa.number = static_cast<std::uint8_t>(number);
    return number < kRegisters;
  }
  bool set_cfa_offset(std::int32_t offset) {
    row_.cfa.offset = offset;
    return row_.cfa.kind == RuleKind::kRegister;
  }
  bool remember() {
    if (remembered_count_ == kMaxRemembered) return false;
    State& state = remembered_[remembered_count_++];
    state.cfa = row_.cfa;
    __builtin_memcpy(state.rules, row_.rules, sizeof(state.rules));
    return true;
  }
  bool recall() {
    if (remembered_count_ == 0) return false;
    const State& state = remembered_[--remembered_count_];
    row_.cfa = state.cfa;
    __builtin_memcpy(row_.rules, state.rules, sizeof(state.rules));
    return true;
  }

  bool step(ByteReader& reader, std::uint8_t code, std::uint64_t base) {
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x01:  // set_loc
        location_ = read_encoded(reader, cie_.pointer_encoding, base);
        return reader.ok();
      case 0x02:
        return move(reader.fixed<std::uint8_t>()), true;
      case 0x03:
        return move(reader.fixed<std::uint16_t>()), true;
      case 0x04:
        return move(reader.fixed<std::uint32_t>()), true;
      case 0x0a:
        return remember();
      case 0x0b:
        return recall();
      case 0x0e:  // def_cfa_offset
        return set_cfa_offset(narrow(reader.uleb()));
      case 0x0f:  // def_cfa_expression
        row_.cfa = expression(reader, RuleKind::kExpression);
        return true;
      case 0x13:  // def_cfa_offset_sf
        return set_cfa_offset(scaled(reader.sleb()));
      case 0x2e:  // size of pushed arguments
        return reader.uleb(), true;
      default:
        return step_register(reader, code, reader.uleb());
    }
  }

  // Instructions whose first operand is a register.
  bool step_register(ByteReader& reader, std::uint8_t code, std::uint64_t number) {
    switch (code) {
      case 0x05:
        return set(number, {.kind = RuleKind::kAtCfa, .offset = scaled(reader.uleb())}), true;
      case 0x06:
        return restore(number), true;
      case 0x07:
        return set(number, {.kind = RuleKind::kUndefined}), true;
      case 0x08:
        return set(number, {.kind = RuleKind::kSame}), true;
      case 0x09: {
        const std::uint64_t other = reader.uleb();
        return set(number, {.kind = RuleKind::kRegister, .number = static_cast<std::uint8_t>(other)}),
               other < kRegisters;
      }
      case 0x0c:  // def_cfa
        return set_cfa_register(number) && set_cfa_offset(narrow(reader.uleb()));
      case 0x0d:  // def_cfa_register
        return row_.cfa.kind == RuleKind::kRegister && set_cfa_register(number);
      case 0x10:
        return set(number, expression(reader, RuleKind::kAtExpression)), true;
      case 0x11:
        return set(number, {.kind = RuleKind::kAtCfa, .offset = scaled(reader.sleb())}), true;
      case 0x12:  // def_cfa_sf
        return set_cfa_register(number) && set_cfa_offset(scaled(reader.sleb()));
      case 0x14:
        return set(number, {.kind = RuleKind::kCfaPlus, .offset = scaled(reader.uleb())}), true;
      case 0x15:
        return set(number, {.kind = RuleKind::kCfaPlus, .offset = scaled(reader.sleb())}), true;
      case 0x16:
        return set(number, expression(reader, RuleKind::kExpression)), true;
      default:
        return false;
    }
  }

  struct State {
    Rule cfa;
    Rule rules[kRegisters];
  };
  const CommonEntry& cie_;
  std::uint64_t location_, pc_;
  UnwindRow& row_;
  Rule initial_[kRegisters];
  State remembered_[kMaxRemembered];
  std::size_t remembered_count_ = 0;
  std::uint8_t entry_ = 0;
  bool good_ = true;
};

// The row of `pc`; false if the FDE does not cover it or cannot be understood.
inline bool unwind_row(const FrameEntry& cie_entry, const FrameEntry& fde, std::uint64_t pc, UnwindRow* row) {
  CommonEntry cie;
  if (!read_cie(cie_entry, &cie)) return false;
  ByteReader reader(fde.bytes);
  reader.fixed<std::uint32_t>();  // where the CIE is
  const std::uint64_t begin = read_encoded(reader, cie.pointer_encoding, fde.address);
  const std::uint64_t bytes = read_encoded(reader, cie.pointer_encoding & 0x0f, fde.address);
  if (cie.augmented) reader.block(reader.uleb());
  if (!reader.ok() || pc < begin || pc - begin >= bytes) return false;
  *row = {};
  row->function_begin = begin;
  row->function_end = begin + bytes;
  row->signal_frame = cie.signal_frame;
  row->cfa.kind = RuleKind::kUndefined;
  row->entries[0] = cie_entry.bytes.data();
  row->entries[1] = fde.bytes.data();
  RowProgram program(cie, begin, pc, row);
  if (!program.run(cie_entry, cie.program, 0)) return false;
  program.remember_initial();
  return program.run(fde, reader.at(), 1) && row->cfa.kind != RuleKind::kUndefined;
}

// ---- finding entries ------------------------------------------------------------------------------------------------
//
// Memory, where tables are read from by address:
//   bool read(std::uint64_t address, void* out, std::size_t bytes);
//   const std::uint8_t* view(std::uint64_t address, std::size_t bytes);  // valid as long as the row is; null: cannot

// The sorted index that linkers add (.eh_frame_hdr).
struct UnwindIndex {
  std::uint64_t address = 0;  // its offsets are relative to it
  std::uint64_t entries = 0;  // 0: there is none, or it is of another form
};

struct UnwindIndexHeader {
  std::uint8_t version, frame_encoding, count_encoding, table_encoding;
  std::int32_t frame;
  std::uint32_t count;
};

struct UnwindIndexPair {
  std::int32_t function, fde;
};

// Only the form that all linkers write: a 4-byte count, then pairs of 4-byte offsets from the index's begin.
template <class Memory>
UnwindIndex read_unwind_index(Memory& memory, std::uint64_t address, std::uint64_t bytes) {
  UnwindIndexHeader header{};
  if (bytes < sizeof(header) || !memory.read(address, &header, sizeof(header))) return {};
  if (header.version != 1 || header.frame_encoding != 0x1b || header.count_encoding != 0x03 ||
      header.table_encoding != 0x3b || header.count > (bytes - sizeof(header)) / sizeof(UnwindIndexPair))
    return {};
  return {address, header.count};
}

template <class Memory>
bool read_frame_entry(Memory& memory, std::uint64_t address, FrameEntry* entry) {
  constexpr std::uint32_t kMaxEntryBytes = 64 << 10;
  std::uint32_t bytes = 0;
  if (!memory.read(address, &bytes, sizeof(bytes)) || bytes < sizeof(bytes) || bytes > kMaxEntryBytes) return false;
  const std::uint8_t* at = memory.view(address + sizeof(bytes), bytes);
  *entry = {address + sizeof(bytes), {at, bytes}};
  return at != nullptr;
}

template <class Memory>
bool find_unwind_row(Memory& memory, const UnwindIndex& index, std::uint64_t address, UnwindRow* row) {
  const auto wanted = static_cast<std::int64_t>(address - index.address);
  const std::uint64_t table = index.address + sizeof(UnwindIndexHeader);
  UnwindIndexPair pair{}, found{};
  std::uint64_t low = 0, high = index.entries;  // the first pair whose function lies behind the address
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (!memory.read(table + middle * sizeof(pair), &pair, sizeof(pair))) return false;
    if (pair.function <= wanted) {
      found = pair;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  FrameEntry fde, cie;
  const std::uint64_t entry = index.address + static_cast<std::uint64_t>(std::int64_t{found.fde});
  if (low == 0 || !read_frame_entry(memory, entry, &fde)) return false;
  const auto back = ByteReader(fde.bytes).fixed<std::uint32_t>();  // from this field to the CIE
  return back != 0 && read_frame_entry(memory, fde.address - back, &cie) && unwind_row(cie, fde, address, row);
}

}  // namespace llmprof::wire

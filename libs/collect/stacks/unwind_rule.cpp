#include "collect/stacks/unwind_rule.h"

#include <string.h>

namespace llmprof::collect {
namespace {

constexpr std::uint64_t kFramePointer = 6, kStackPointer = 7, kReturnAddress = 16;  // DWARF's numbers on x86-64
constexpr std::uint8_t kOmitted = 0xff, kRelativeToHere = 0x10, kSigned4 = 0x0b;
constexpr std::uint8_t kRbpPlus = 0x76, kDereference = 0x06;  // DWARF operations
constexpr std::uint32_t kMaxRemembered = 8;

constexpr UnwindRule kNone{CfaKind::kUnknown, FrameKind::kLost, 0, 0};

// Reads on while there is something left; afterwards everything is 0 and good() is false.
class Cursor {
 public:
  Cursor(const std::uint8_t* at, const std::uint8_t* end) : at_(at), end_(end) {}

  bool good() const { return good_; }
  bool more() const { return good_ && at_ < end_; }
  const std::uint8_t* at() const { return at_; }
  const std::uint8_t* end() const { return end_; }

  template <class T>
  T fixed() {
    T value{};
    if (take(sizeof(T))) memcpy(&value, at_ - sizeof(T), sizeof(T));
    return value;
  }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    unsigned shift = 0;
    std::uint8_t byte = 0;
    do {
      byte = fixed<std::uint8_t>();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      shift += 7;
    } while ((byte & 0x80) != 0);
    if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }
  bool take(std::uint64_t bytes) {
    if (!good_ || bytes > static_cast<std::uint64_t>(end_ - at_)) return good_ = false;
    at_ += bytes;
    return true;
  }
  // A pointer as the tables have it: 8 or 4 bytes, signed or not, relative to its own place or not.
  std::uint64_t pointer(std::uint8_t encoding) {
    const auto here = reinterpret_cast<std::uint64_t>(at_);
    std::uint64_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        value = fixed<std::uint64_t>();
        break;
      case 0x03:
        value = fixed<std::uint32_t>();
        break;
      case kSigned4:
        value = static_cast<std::uint64_t>(std::int64_t{fixed<std::int32_t>()});
        break;
      default:
        good_ = false;
    }
    const std::uint8_t base = encoding & 0xf0;
    if (base == kRelativeToHere) {
      value += here;
    } else if (base != 0) {
      good_ = false;
    }
    return value;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool good_ = true;
};

// The bytes of an entry behind its length; nothing in it: not to be read.
Cursor entry_at(const std::uint8_t* at) {
  std::uint32_t bytes = 0;
  memcpy(&bytes, at, sizeof(bytes));
  return {at + 4, bytes == 0xffffffff ? at + 4 : at + 4 + bytes};
}

// The entry of .eh_frame that covers the address, found in the sorted table; null: none.
const std::uint8_t* find_entry(const std::uint8_t* header, std::uintptr_t address) {
  constexpr std::uint8_t kRelativeToHeader4 = 0x3b;
  if (header[0] != 1 || header[1] != (kRelativeToHere | kSigned4) || header[2] != 0x03 ||
      header[3] != kRelativeToHeader4)
    return nullptr;
  std::uint32_t count = 0;
  memcpy(&count, header + 8, sizeof(count));
  struct Row {
    std::int32_t begin, entry;
  };
  const auto* rows = reinterpret_cast<const Row*>(header + 12);
  const auto wanted = static_cast<std::int64_t>(address) - reinterpret_cast<std::int64_t>(header);
  std::uint32_t low = 0, high = count;  // the first row behind the address
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (rows[middle].begin <= wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? nullptr : header + rows[low - 1].entry;
}

struct Cie {
  std::uint64_t code_factor;
  std::int64_t data_factor;
  std::uint8_t encoding;
  bool augmented, interrupted;
  Cursor program;
};

bool read_cie(const std::uint8_t* at, Cie* cie) {
  Cursor cursor = entry_at(at);
  if (cursor.fixed<std::uint32_t>() != 0) return false;
  const auto version = cursor.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  const char* letters = reinterpret_cast<const char*>(cursor.at());
  if (!cursor.take(strnlen(letters, 8) + 1)) return false;
  cie->code_factor = cursor.uleb();
  cie->data_factor = cursor.sleb();
  if ((version == 1 ? cursor.fixed<std::uint8_t>() : cursor.uleb()) != kReturnAddress) return false;
  cie->augmented = letters[0] == 'z';
  if (!cie->augmented && letters[0] != '\0') return false;
  if (cie->augmented) {
    const std::uint64_t bytes = cursor.uleb();
    Cursor data = cursor;
    if (!cursor.take(bytes)) return false;
    for (const char* letter = letters + 1; *letter != '\0'; ++letter) {
      if (*letter == 'R') cie->encoding = data.fixed<std::uint8_t>();
      if (*letter == 'L') data.fixed<std::uint8_t>();
      if (*letter == 'S') cie->interrupted = true;
      if (*letter == 'P') {
        const auto encoding = data.fixed<std::uint8_t>();
        if (encoding != kOmitted) data.pointer(encoding & 0x0f);
      }
    }
    if (!data.good()) return false;
  }
  cie->program = cursor;
  return cursor.good();
}

// What the instructions of a CIE and an FDE have made of the two registers that matter, up to an address.
struct Row {
  CfaKind cfa;
  FrameKind frame;
  bool outermost;
  std::int64_t cfa_offset, frame_offset, return_offset;  // return_offset 0: something that is not understood
};

class Program {
 public:
  Program(const Cie& cie, std::uint64_t begin, std::uint64_t address)
      : cie_(cie), location_(begin), address_(address) {}

  // False: an instruction that is not known.
  bool run(Cursor cursor) {
    while (cursor.more() && location_ <= address_) {
      const auto code = cursor.fixed<std::uint8_t>();
      const std::uint64_t low = code & 0x3f;
      if ((code & 0xc0) == 0x40) {
        move(low);
      } else if ((code & 0xc0) == 0x80) {
        saved(low, cie_.data_factor * static_cast<std::int64_t>(cursor.uleb()));
      } else if ((code & 0xc0) == 0xc0) {
        restored(low);
      } else if (!step(code, &cursor)) {
        return false;
      }
    }
    return cursor.good();
  }
  void begin_function() { initial_ = row_; }
  const Row& row() const { return row_; }

 private:
  void move(std::uint64_t units) { next(location_ + units * cie_.code_factor); }
  void next(std::uint64_t location) { location_ = location; }
  void saved(std::uint64_t number, std::int64_t offset) {
    if (number == kFramePointer) row_.frame = FrameKind::kAtCfa, row_.frame_offset = offset;
    if (number == kReturnAddress) row_.outermost = false, row_.return_offset = offset;
  }
  void restored(std::uint64_t number) {
    if (number == kFramePointer) row_.frame = initial_.frame, row_.frame_offset = initial_.frame_offset;
    if (number == kReturnAddress) row_.outermost = initial_.outermost, row_.return_offset = initial_.return_offset;
  }
  void undefined(std::uint64_t number) {
    if (number == kFramePointer) row_.frame = FrameKind::kLost;
    if (number == kReturnAddress) row_.outermost = true;
  }
  void elsewhere(std::uint64_t number) {  // in another register, or where an expression says
    if (number == kFramePointer) row_.frame = FrameKind::kLost;
    if (number == kReturnAddress) row_.return_offset = 0;
  }
  // A function that aligned its stack has the caller's rbp where its own rbp points: the expression "rbp + 0".
  void saved_by(std::uint64_t number, Cursor expression) {
    elsewhere(number);
    if (number != kFramePointer || expression.fixed<std::uint8_t>() != kRbpPlus) return;
    if (expression.sleb() == 0 && expression.good() && !expression.more()) row_.frame = FrameKind::kAtFrame;
  }
  void define_cfa(std::uint64_t number, std::int64_t offset) {
    row_.cfa_offset = offset;
    row_.cfa = number == kStackPointer   ? CfaKind::kStackPointer
               : number == kFramePointer ? CfaKind::kFramePointer
                                         : CfaKind::kUnknown;
  }
  // "The word at rbp + offset" is the one expression that compilers make for ordinary functions.
  void define_cfa_by(Cursor expression) {
    row_.cfa = CfaKind::kUnknown;
    if (expression.fixed<std::uint8_t>() != kRbpPlus) return;
    row_.cfa_offset = expression.sleb();
    if (expression.fixed<std::uint8_t>() == kDereference && expression.good() && !expression.more())
      row_.cfa = CfaKind::kAtFrame;
  }
  Cursor block(Cursor* cursor) {
    const std::uint64_t bytes = cursor->uleb();
    const std::uint8_t* begin = cursor->at();
    return cursor->take(bytes) ? Cursor(begin, begin + bytes) : Cursor(begin, begin);
  }
  bool remember() {
    if (remembered_count_ == kMaxRemembered) return false;
    remembered_[remembered_count_++] = row_;
    return true;
  }
  bool recall() {
    if (remembered_count_ == 0) return false;
    row_ = remembered_[--remembered_count_];
    return true;
  }
  std::int64_t scaled(std::int64_t value) const { return value * cie_.data_factor; }

  bool step(std::uint8_t code, Cursor* cursor) {
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x01:
        return next(cursor->pointer(cie_.encoding)), true;
      case 0x02:
        return move(cursor->fixed<std::uint8_t>()), true;
      case 0x03:
        return move(cursor->fixed<std::uint16_t>()), true;
      case 0x04:
        return move(cursor->fixed<std::uint32_t>()), true;
      case 0x0a:
        return remember();
      case 0x0b:
        return recall();
      case 0x0e:
        return row_.cfa_offset = static_cast<std::int64_t>(cursor->uleb()), true;
      case 0x0f:
        return define_cfa_by(block(cursor)), true;
      case 0x13:
        return row_.cfa_offset = scaled(cursor->sleb()), true;
      case 0x2e:  // size of pushed arguments
        return cursor->uleb(), true;
      default:
        return step_register(code, cursor->uleb(), cursor);
    }
  }
  // Those that name a register first.
  bool step_register(std::uint8_t code, std::uint64_t number, Cursor* cursor) {
    switch (code) {
      case 0x05:
        return saved(number, scaled(static_cast<std::int64_t>(cursor->uleb()))), true;
      case 0x06:
        return restored(number), true;
      case 0x07:
        return undefined(number), true;
      case 0x08:  // same value
        if (number == kFramePointer) row_.frame = FrameKind::kKept;
        return true;
      case 0x09:
        return cursor->uleb(), elsewhere(number), true;
      case 0x0c:
        return define_cfa(number, static_cast<std::int64_t>(cursor->uleb())), true;
      case 0x0d:
        return define_cfa(number, row_.cfa_offset), true;
      case 0x10:
        return saved_by(number, block(cursor)), true;
      case 0x16:
        return block(cursor), elsewhere(number), true;
      case 0x11:
        return saved(number, scaled(cursor->sleb())), true;
      case 0x12:
        return define_cfa(number, scaled(cursor->sleb())), true;
      case 0x14:
        return cursor->uleb(), elsewhere(number), true;
      case 0x15:
        return cursor->sleb(), elsewhere(number), true;
      default:
        return false;
    }
  }

  const Cie& cie_;
  std::uint64_t location_, address_;
  Row row_{};
  Row initial_{};
  Row remembered_[kMaxRemembered];
  std::uint32_t remembered_count_ = 0;
};

bool is_near(std::int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; }

UnwindRule rule_of(const Row& row) {
  if (row.outermost) return {CfaKind::kOutermost, FrameKind::kLost, 0, 0};
  if (row.return_offset != -8 || !is_near(row.cfa_offset) || !is_near(row.frame_offset)) return kNone;
  return {row.cfa, row.frame, static_cast<std::int32_t>(row.cfa_offset), static_cast<std::int32_t>(row.frame_offset)};
}

}  // namespace

UnwindRule unwind_rule(const std::uint8_t* header, std::uintptr_t address) {
  const std::uint8_t* entry = find_entry(header, address);
  if (entry == nullptr) return kNone;
  Cursor cursor = entry_at(entry);
  const std::uint8_t* cie_field = cursor.at();
  const auto distance = cursor.fixed<std::uint32_t>();
  Cie cie{1, 1, 0, false, false, cursor};
  if (distance == 0 || !cursor.good() || !read_cie(cie_field - distance, &cie)) return kNone;
  const std::uint64_t begin = cursor.pointer(cie.encoding);
  const std::uint64_t bytes = cursor.pointer(cie.encoding & 0x0f);
  if (cie.augmented) cursor.take(cursor.uleb());
  if (!cursor.good() || cie.interrupted || address < begin || address - begin >= bytes) return kNone;
  Program program(cie, begin, address);
  if (!program.run(cie.program)) return kNone;
  program.begin_function();
  if (!program.run(cursor)) return kNone;
  return rule_of(program.row());
}

}  // namespace llmprof::collect

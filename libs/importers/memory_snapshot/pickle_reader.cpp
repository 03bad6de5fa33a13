#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/human.h"
#include "base/numbers.h"
#include "importers/memory_snapshot/pickle.h"

namespace llmprof::importers {
namespace {

constexpr std::uint64_t kStepsBetweenChecks = 1 << 14;
constexpr std::uint64_t kMemoGap = 1024;  // numbers that a writer may skip
constexpr std::size_t kMaxMarks = 10'000;
constexpr std::size_t kBufferBytes = 256 << 10;

// Opcodes that call something, or refer to something outside.
struct Refused {
  unsigned char code;
  std::string_view name;
};
constexpr Refused kRefused[] = {
    {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'b', "BUILD"},        {'i', "INST"},
    {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {0x82, "EXT1"},        {0x83, "EXT2"},
    {0x84, "EXT4"},  {'P', "PERSID"},        {'Q', "BINPERSID"},  {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

std::uint64_t little_endian(const char* bytes, std::size_t count) {  // at most 8
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

double big_endian_double(const char* bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<unsigned char>(bytes[i]);
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

constexpr std::array<PickleReader::Action, 256> PickleReader::actions() {
  std::array<Action, 256> all{};
  const auto set = [&](std::initializer_list<unsigned char> codes, Action action) {
    for (const unsigned char code : codes) all[code] = action;
  };
  set({0x80}, &PickleReader::protocol);
  set({0x95}, &PickleReader::frame);
  set({'N', 0x88, 0x89, 'J', 'K', 'M', 'G', 0x8a, 0x8b}, &PickleReader::scalar);  // None, bool, int, float in binary
  set({'I', 'L', 'F'}, &PickleReader::text_number);                               // the same as a line of text
  set({'S', 'V', 'T', 'U', 'X', 0x8c, 0x8d, 'B', 'C', 0x8e, 0x96}, &PickleReader::text);
  set({'(', '0', '1', '2', ']', '}', ')', 'a', 's', 'e', 'u', 'l', 'd', 't', 0x85, 0x86, 0x87, 0x8f, 0x90, 0x91},
      &PickleReader::container);
  set({0x94, 'q', 'r', 'h', 'j', 'p', 'g'}, &PickleReader::memo);
  for (const Refused& refused : kRefused) set({refused.code}, &PickleReader::refuse);
  return all;
}

PickleReader::PickleReader(Input& input, Sink& sink, PickleShapes& shapes)
    : bytes_(input), sink_(sink), shapes_(shapes) {}

Result<PickleValue> PickleReader::read() {
  for (;;) {
    at_ = bytes_.offset();
    const char* code = bytes_.take(1);
    if (code == nullptr) return bytes_.error();
    if (*code == '.') break;
    static constexpr std::array<Action, 256> kActions = actions();
    const auto number = static_cast<unsigned char>(*code);
    const Action action = kActions[number];
    if (action == nullptr) return std::move(corrupt(fmt::format("0x{:02x} is no opcode of a pickle", number)).error());
    if (auto done = (this->*action)(number); !done) return std::move(done.error());
    if (++steps_ % kStepsBetweenChecks == 0) LLMPROF_TRY(check_limits());
  }
  LLMPROF_TRY(check_limits());
  if (stack_.size() != 1 || !marks_.empty()) {
    return std::move(corrupt(fmt::format("the pickle ends with {} values instead of one", stack_.size())).error());
  }
  return stack_.back();
}

Result<void> PickleReader::corrupt(std::string_view what) const {
  return Error{ErrorCode::kCorruptInput, fmt::format("byte {}: {}", at_, what),
               "this is no pickle that Python wrote; write the snapshot again"};
}

Result<void> PickleReader::check_limits() {
  if (!sink_.progress(bytes_.stored_offset())) return Error{ErrorCode::kInterrupted, "interrupted", ""};
  const std::size_t held = heap_.held_bytes() + shapes_.held_bytes() + (stack_.capacity() + memo_.size()) * 8;
  if (heap_.objects() <= kMaxObjects && held <= kMaxHeldBytes) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("byte {}: {} objects and {} are needed to read this; {} objects and {} are the limit", at_,
                           heap_.objects(), base::human_bytes(static_cast<double>(held)), kMaxObjects,
                           base::human_bytes(static_cast<double>(kMaxHeldBytes))),
               "record less: a smaller max_entries of torch.cuda.memory._record_memory_history"};
}

Result<void> PickleReader::protocol(unsigned char) {
  LLMPROF_LET(const std::uint64_t version, length(1));
  if (version <= 5) return {};
  return Error{ErrorCode::kUnsupported, fmt::format("byte {}: pickle protocol {}; 0 to 5 are known", at_, version), ""};
}

Result<void> PickleReader::frame(unsigned char) {
  LLMPROF_LET(const std::uint64_t size, length(8));
  if (bytes_.possible(size)) return {};
  return Error{ErrorCode::kCorruptInput, fmt::format("byte {}: a frame of {} bytes, more than the file has", at_, size),
               "the file was cut, or is no pickle; write the snapshot again"};
}

Result<std::uint64_t> PickleReader::length(std::size_t bytes) {
  const char* text = bytes_.take(bytes);
  if (text == nullptr) return bytes_.error();
  return little_endian(text, bytes);
}

Result<std::size_t> PickleReader::pop_mark() {
  if (marks_.empty()) return std::move(corrupt("a mark is missing").error());
  const std::size_t from = marks_.back();
  marks_.pop_back();
  return from;
}

Result<void> PickleReader::build(PickleHeap::Type type, std::size_t from) {
  const Value made = heap_.add(type);
  stack_.push_back(made);
  std::rotate(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end() - 1, stack_.end());
  return extend(from + 1, type);
}

// The values from `from` on go into the container below them.
Result<void> PickleReader::extend(std::size_t from, PickleHeap::Type type) {
  if (from == 0 || from > stack_.size() || (!marks_.empty() && marks_.back() >= from)) {
    return corrupt("a container is missing");
  }
  const Value below = stack_[from - 1];
  if (!below.is_object() || heap_.object(below.number()).type != type) {
    return corrupt(fmt::format("values are put into what is no {}", type == PickleHeap::Type::kDict ? "dict" : "list"));
  }
  if (type == PickleHeap::Type::kDict && (stack_.size() - from) % 2 != 0) return corrupt("a key without a value");
  for (std::size_t i = from; i < stack_.size(); ++i) LLMPROF_TRY(use(from - 1, stack_[i]));
  stack_.resize(from);
  return {};
}

Result<void> PickleReader::use(std::size_t parent_at, Value child) {
  const PickleHeap::Id parent = stack_[parent_at].number();
  const std::uint64_t size = [&]() -> std::uint64_t {
    if (!child.is_object()) return 1;
    PickleHeap::Object& object = heap_.object(child.number());
    if (!object.sealed) {
      object.sealed = true;
      if (object.type == PickleHeap::Type::kDict && child.number() != parent) shapes_.dict_done(heap_, child.number());
    }
    return heap_.expanded_size(child);
  }();
  PickleHeap::Object& above = heap_.object(parent);
  if (above.sealed) return corrupt("a container that contains itself");
  std::uint64_t& expanded = heap_.expanded(parent);
  expanded += size;
  if (expanded > kMaxExpanded) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("byte {}: more than {} values when its references are followed", at_, kMaxExpanded),
                 "no memory snapshot is like that; it may be made to exhaust memory"};
  }
  if (child.is_object()) {
    const PickleHeap::Object& below = heap_.object(child.number());
    if (below.depth >= kMaxDepth) return corrupt(fmt::format("more than {} containers in each other", kMaxDepth));
    above.depth = std::max<std::uint8_t>(above.depth, static_cast<std::uint8_t>(below.depth + 1));
    const bool to_list = above.type == PickleHeap::Type::kList;
    if (to_list && below.type == PickleHeap::Type::kRecord &&
        shapes_.take(heap_, std::span(stack_).first(parent_at + 1), below))
      return {};
  }
  heap_.push(parent, child);
  return {};
}

Result<void> PickleReader::container(unsigned char code) {
  using Type = PickleHeap::Type;
  const auto at_top = [&](std::size_t count) { return stack_.size() - std::min(count, stack_.size()); };
  switch (code) {
    case '(':
      if (marks_.size() >= kMaxMarks) return corrupt("too many marks");
      marks_.push_back(stack_.size());
      return {};
    case '0':
      if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) return corrupt("nothing to pop");
      stack_.pop_back();
      return {};
    case '2':
      return stack_.empty() ? corrupt("nothing to duplicate") : push(stack_.back());
    case ']':
    case 0x8f:
      return push(heap_.add(Type::kList));
    case '}':
      return push(heap_.add(Type::kDict));
    case ')':
      return push(heap_.add(Type::kTuple));
    case 'a':
      return stack_.empty() ? corrupt("a list is missing") : extend(at_top(1), Type::kList);
    case 's':
      return stack_.size() < 2 ? corrupt("a dict is missing") : extend(at_top(2), Type::kDict);
    case 0x85:
    case 0x86:
    case 0x87: {
      const std::size_t count = code - 0x84u;
      const std::size_t least = marks_.empty() ? 0 : marks_.back();
      if (stack_.size() < least + count) return corrupt("values of a tuple are missing");
      return build(Type::kTuple, stack_.size() - count);
    }
    default:
      break;
  }
  LLMPROF_LET(const std::size_t from, pop_mark());
  if (code == '1') return stack_.resize(from), Result<void>();
  if (code == 'e' || code == 0x90) return extend(from, Type::kList);
  if (code == 'u') return extend(from, Type::kDict);
  return build(code == 'l' ? Type::kList : code == 'd' ? Type::kDict : Type::kTuple, from);  // 't', and a frozen set
}

Result<void> PickleReader::memo(unsigned char code) {
  if (code == 0x94) return store(memo_.size());
  const bool stores = code == 'q' || code == 'r' || code == 'p';
  if (code != 'p' && code != 'g') {
    LLMPROF_LET(const std::uint64_t index, length(code == 'q' || code == 'h' ? 1 : 4));
    return stores ? store(index) : load(index);
  }
  std::string_view digits;
  if (!bytes_.line(digits)) return bytes_.error();
  const auto index = base::parse_number<std::uint64_t>(digits);
  if (!index) return corrupt("a memo number that is no number");
  return stores ? store(*index) : load(*index);
}

Result<void> PickleReader::store(std::uint64_t index) {
  if (stack_.empty()) return corrupt("nothing to memorise");
  if (index > memo_.size() + kMemoGap) return corrupt(fmt::format("memo number {} after {}", index, memo_.size()));
  if (index >= memo_.size()) memo_.resize(index + 1, Value::other());
  memo_[index] = stack_.back();
  return {};
}

Result<void> PickleReader::load(std::uint64_t index) {
  if (index >= memo_.size()) return corrupt(fmt::format("memo number {} was never stored", index));
  return push(memo_[index]);
}

Result<void> PickleReader::refuse(unsigned char code) {
  std::string what(std::ranges::find(kRefused, code, &Refused::code)->name);
  std::string_view module, name;
  if (code == 'c' || code == 'i') {  // GLOBAL, INST: module and name follow
    if (!bytes_.line(module)) return bytes_.error();
    what = shown(module);
    if (!bytes_.line(name)) return bytes_.error();
    what += "." + shown(name);
  } else if (code == 0x93 && stack_.size() >= 2) {  // STACK_GLOBAL
    module = heap_.text(stack_[stack_.size() - 2]), name = heap_.text(stack_.back());
    if (!module.empty()) what = shown(module) + "." + shown(name);
  }
  const bool outside = code == 'P' || code == 'Q' || code == 0x97 || code == 0x98;
  return Error{ErrorCode::kUnsupported,
               fmt::format("byte {}: {} ({} at byte {}); not executed", at_,
                           outside ? "refers to objects outside the file" : "contains code", what, at_),
               "a memory snapshot holds plain values only; torch.cuda.memory._dump_snapshot writes one"};
}

// The opcodes of a pickle that push one plain value.
Result<void> PickleReader::scalar(unsigned char code) {
  if (code == 'N') return push({});
  if (code == 0x88 || code == 0x89) return push(Value::boolean(code == 0x88));
  if (code == 'G') {
    const char* bytes = bytes_.take(8);
    return bytes == nullptr ? Result<void>(bytes_.error()) : push(Value::real(big_endian_double(bytes)));
  }
  const bool is_long = code == 0x8a || code == 0x8b;
  LLMPROF_LET(const std::uint64_t value, length(code == 'K' || code == 0x8a ? 1 : code == 'M' ? 2 : 4));
  if (is_long) return push_long(value);
  return push(Value::integer(code == 'J' ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value)));
}

// Two's complement, little endian.
Result<void> PickleReader::push_long(std::uint64_t bytes) {
  const char* text = bytes_.take(bytes);
  if (text == nullptr) return bytes_.error();
  if (bytes > 8) return push(Value::other());
  std::uint64_t value = little_endian(text, static_cast<std::size_t>(bytes));
  if (bytes > 0 && bytes < 8 && (static_cast<unsigned char>(text[bytes - 1]) & 0x80) != 0) {
    value |= ~std::uint64_t{0} << (8 * bytes);
  }
  return push(Value::integer(static_cast<std::int64_t>(value)));
}

Result<void> PickleReader::text_number(unsigned char code) {
  std::string_view digits;
  if (!bytes_.line(digits)) return bytes_.error();
  if (code == 'I' && (digits == "00" || digits == "01")) return push(Value::boolean(digits == "01"));
  if (code == 'F') {
    const auto value = base::parse_number<double>(digits);
    return value ? push(Value::real(*value)) : corrupt("a float that is no number");
  }
  if (code == 'L' && digits.ends_with('L')) digits.remove_suffix(1);
  if (digits.find_first_not_of("-0123456789") != std::string_view::npos || digits.empty()) {
    return corrupt("an int that is no number");
  }
  const auto value = base::parse_number<std::int64_t>(digits);
  return push(value ? Value::integer(*value) : Value::other());
}

Result<void> PickleReader::text(unsigned char code) {
  struct Sized {
    unsigned char code;
    std::uint8_t length_bytes;
    bool is_text;
  };
  constexpr Sized kSized[] = {{0x8c, 1, true}, {'U', 1, true},  {'X', 4, true},   {'T', 4, true},  {0x8d, 8, true},
                              {'C', 1, false}, {'B', 4, false}, {0x8e, 8, false}, {0x96, 8, false}};
  for (const Sized& sized : kSized) {
    if (sized.code != code) continue;
    LLMPROF_LET(const std::uint64_t bytes, length(sized.length_bytes));
    return push_bytes(bytes, sized.is_text);
  }
  std::string_view line;
  if (!bytes_.line(line)) return bytes_.error();
  if (code == 'S') {
    while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() < 2 || line.front() != line.back() || (line.front() != '\'' && line.front() != '"')) {
      return corrupt("a text without quotes");
    }
    line = line.substr(1, line.size() - 2);
  }
  return push(heap_.add_text(unescaped(line.substr(0, Sink::kMaxNameBytes), code == 'S')));
}

Result<void> PickleReader::push_bytes(std::uint64_t bytes, bool text) {
  const char* begin = bytes_.take(bytes);
  if (begin == nullptr) return bytes_.error();
  // Longer texts are cut where they become names; nothing of a snapshot is as long.
  const std::size_t kept = std::min<std::size_t>(static_cast<std::size_t>(bytes), Sink::kMaxNameBytes);
  return push(text ? heap_.add_text({begin, kept}) : Value::other());
}

ByteReader::ByteReader(Input& input) : input_(input), buffer_(kBufferBytes) {}

bool ByteReader::possible(std::uint64_t count) const {
  return input_.compressed() || (offset() <= input_.file_bytes() && count <= input_.file_bytes() - offset());
}

// Moves what is not used yet to the front and reads behind it.
bool ByteReader::fill(std::size_t wanted) {
  std::memmove(buffer_.data(), buffer_.data() + at_, filled_ - at_);
  begin_ += at_;
  filled_ -= at_;
  at_ = 0;
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  while (filled_ < wanted) {
    auto got = input_.read(buffer_.data() + filled_, buffer_.size() - filled_);
    if (!got) {
      failed_ = std::move(got.error());
      return false;
    }
    if (*got == 0) return false;
    filled_ += *got;
  }
  return true;
}

const char* ByteReader::take_slowly(std::uint64_t count) {
  wanted_ = count;
  if (count > kMaxPiece || !possible(count) || !fill(static_cast<std::size_t>(count))) return nullptr;
  at_ = static_cast<std::size_t>(count);
  return buffer_.data();
}

bool ByteReader::line(std::string_view& text) {
  for (std::size_t looked = 0;;) {
    const char* begin = buffer_.data() + at_;
    if (const void* end = std::memchr(begin + looked, '\n', filled_ - at_ - looked)) {
      text = {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
      at_ += text.size() + 1;
      return true;
    }
    looked = filled_ - at_;
    wanted_ = looked + 1;
    if (wanted_ > kMaxPiece || !fill(looked + 1)) return false;
    looked = std::min(looked, filled_);
  }
}

Error ByteReader::error() const {
  if (!failed_) return failed_.error();
  if (wanted_ > kMaxPiece && possible(wanted_)) {
    return {ErrorCode::kUnsupported,
            fmt::format("byte {}: a value of {} bytes; {} are read at most", offset(), wanted_, kMaxPiece), ""};
  }
  const std::string claim = wanted_ > 1 ? fmt::format("{} more bytes are announced, but ", wanted_) : std::string();
  return {ErrorCode::kCorruptInput, fmt::format("byte {}: {}the file ends before the pickle does", offset(), claim),
          "the file was cut, or is no pickle; write the snapshot again"};
}

}  // namespace llmprof::importers

#pragma once
// Pickles, read without executing anything.

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/input.h"
#include "importers/sink.h"
#include "trace/strings.h"

namespace llmprof::importers {

// The bytes of an input one after another, buffered, with their place. Lengths that the input claims are held against
// what is left of it before anything is reserved for them.
class ByteReader {
 public:
  static constexpr std::size_t kMaxPiece = 64u << 20;  // one text or number

  explicit ByteReader(Input& input);

  // The next `count` bytes, valid until the next call; nullptr: see error().
  const char* take(std::uint64_t count) {
    if (count <= filled_ - at_) {
      const char* bytes = buffer_.data() + at_;
      at_ += static_cast<std::size_t>(count);
      return bytes;
    }
    return take_slowly(count);
  }
  // Up to the next newline, which is left out. False: see error().
  bool line(std::string_view& text);

  std::uint64_t offset() const { return begin_ + at_; }  // of the next byte
  std::uint64_t stored_offset() const { return input_.stored_offset(); }
  // Whether `count` more bytes can be there; a compressed input does not tell.
  bool possible(std::uint64_t count) const;
  Error error() const;

 private:
  const char* take_slowly(std::uint64_t count);
  bool fill(std::size_t wanted);

  Input& input_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, filled_ = 0;
  std::uint64_t begin_ = 0;  // place of buffer_[0]
  std::uint64_t wanted_ = 0;
  Result<void> failed_;
};

// What a pickle builds: plain values, and containers in a heap that does not grow with what is only looked at.
// A container is *sealed* when something else first uses it; nothing may be added from then on, so no container can
// come to contain itself. A dictionary that was recognised as a record (below) gives its members back.
//
// 8 bytes: what it is in the low 4 bits, the rest above them.
class PickleValue {
 public:
  enum class Kind : std::uint8_t { kNone, kBool, kInt, kFloat, kText, kOther, kObject };

  PickleValue() = default;
  static PickleValue boolean(bool value) { return PickleValue(Kind::kBool, value ? 1 : 0); }
  static PickleValue text(std::uint32_t number) { return PickleValue(Kind::kText, number); }
  static PickleValue object(std::uint32_t number) { return PickleValue(Kind::kObject, number); }
  static PickleValue other() { return PickleValue(Kind::kOther, 0); }  // bytes, and integers that do not fit
  static PickleValue integer(std::int64_t value);
  static PickleValue real(double value);  // loses the last 4 bits of 53

  Kind kind() const { return static_cast<Kind>(bits_ & 15); }
  bool is_object() const { return kind() == Kind::kObject; }
  std::uint32_t number() const { return static_cast<std::uint32_t>(bits_ >> 4); }
  bool as_bool() const { return bits_ >> 4 != 0; }
  std::optional<std::int64_t> as_int() const {  // of a bool, too
    if (kind() != Kind::kInt && kind() != Kind::kBool) return std::nullopt;
    return static_cast<std::int64_t>(bits_) >> 4;
  }
  double as_real() const;

 private:
  PickleValue(Kind kind, std::uint64_t payload) : bits_(payload << 4 | static_cast<std::uint64_t>(kind)) {}
  std::uint64_t bits_ = 0;
};

class PickleHeap {
 public:
  using Id = std::uint32_t;
  enum class Type : std::uint8_t { kList, kTuple, kDict, kRecord };
  struct Object {
    std::uint32_t payload = 0;  // kRecord: whatever the record is; else the place of the members
    Type type = Type::kList;
    std::uint8_t record_type = 0;
    std::uint8_t depth = 0;  // levels of containers inside
    bool sealed = false;
  };
  static_assert(sizeof(Object) == 8);

  PickleValue add_text(std::string_view text);
  std::string_view text(PickleValue value) const;  // "" if it is none
  PickleValue add(Type type);
  Object& object(Id id) { return objects_[id]; }
  const Object& object(Id id) const { return objects_[id]; }
  bool is(PickleValue value, Type type) const { return value.is_object() && objects_[value.number()].type == type; }
  void push(Id id, PickleValue member) {
    pool_[objects_[id].payload].members.push_back(member);
    ++members_held_;
  }
  const std::vector<PickleValue>& members(Id id) const { return pool_[objects_[id].payload].members; }
  // How many values it would be if nothing were shared. A record counts as one.
  std::uint64_t& expanded(Id id) { return pool_[objects_[id].payload].expanded; }
  std::uint64_t expanded_size(PickleValue value) const;
  // The value of a key in a dictionary.
  std::optional<PickleValue> find(Id dict, std::string_view key) const;
  // Gives the members back; the object stays what it was made to.
  void make_record(Id id, std::uint8_t record_type, std::uint32_t payload);
  const Object* record(PickleValue value, std::uint8_t record_type) const;  // nullptr: it is none of this type

  std::size_t objects() const { return objects_.size(); }
  std::size_t held_bytes() const;
  std::string describe(PickleValue value) const;  // "a dict with the keys a, b": for messages

 private:
  struct Members {
    std::vector<PickleValue> members;
    std::uint64_t expanded = 1;
  };
  std::deque<Object> objects_;
  std::deque<Members> pool_;
  std::vector<std::uint32_t> unused_;  // of pool_
  trace::Strings texts_;
  std::size_t text_bytes_ = 0, members_held_ = 0;
};

// Texts of protocol 0, and of messages.
std::string unescaped(std::string_view text, bool quoted);  // \xNN, \uNNNN, \UNNNNNNNN, \n … as UTF-8
std::string shown(std::string_view text);                   // short and printable

// Reads a pickle (protocols 0 to 5) without executing anything: opcodes that build plain values are understood, every
// other one is refused with its place. What is read goes to PickleShapes, which may take it away, so that a file of any
// size is read in bounded memory.
//
// Who knows what the dictionaries mean.
class PickleShapes {
 public:
  virtual ~PickleShapes() = default;
  // A dictionary is whole and used for the first time: it may be made a record.
  virtual void dict_done(PickleHeap& heap, PickleHeap::Id dict) = 0;
  // A record is appended to a list. True: it was taken; the list need not keep it. `stack` ends with the list: what
  // stands before it is what the list is about to become a part of.
  virtual bool take(PickleHeap& heap, std::span<const PickleValue> stack, const PickleHeap::Object& record) = 0;
  virtual std::size_t held_bytes() const = 0;
};

class PickleReader {
 public:
  static constexpr std::size_t kMaxObjects = 50'000'000;
  static constexpr std::uint8_t kMaxDepth = 100;
  static constexpr std::uint64_t kMaxExpanded = 1'000'000'000;  // values, if nothing were shared
  static constexpr std::size_t kMaxHeldBytes = 320u << 20;

  PickleReader(Input& input, Sink& sink, PickleShapes& shapes);
  // The value that the pickle is.
  Result<PickleValue> read();
  const PickleHeap& heap() const { return heap_; }
  PickleHeap& heap() { return heap_; }

 private:
  using Value = PickleValue;

  // What an opcode does, by its number; nullptr: there is none of this number. Facts from Python's pickletools.
  using Action = Result<void> (PickleReader::*)(unsigned char code);
  static constexpr std::array<Action, 256> actions();
  Result<void> scalar(unsigned char code);
  Result<void> text_number(unsigned char code);
  Result<void> text(unsigned char code);
  Result<void> container(unsigned char code);
  Result<void> memo(unsigned char code);
  Result<void> protocol(unsigned char code);
  Result<void> frame(unsigned char code);
  Result<void> refuse(unsigned char code);
  Result<void> corrupt(std::string_view what) const;

  Result<void> push(Value value) {
    stack_.push_back(value);
    return {};
  }
  Result<void> push_long(std::uint64_t bytes);
  Result<void> push_bytes(std::uint64_t bytes, bool text);
  Result<std::uint64_t> length(std::size_t bytes);  // little endian, of so many bytes
  Result<std::size_t> pop_mark();
  Result<void> build(PickleHeap::Type type, std::size_t from);
  Result<void> extend(std::size_t from, PickleHeap::Type type);  // the container below takes all from there on
  Result<void> use(std::size_t parent_at, Value child);          // place of the parent on the stack
  Result<void> store(std::uint64_t index);
  Result<void> load(std::uint64_t index);
  Result<void> check_limits();

  ByteReader bytes_;
  Sink& sink_;
  PickleShapes& shapes_;
  PickleHeap heap_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;  // sizes of stack_
  std::deque<Value> memo_;
  std::uint64_t at_ = 0;  // place of the opcode
  std::uint64_t steps_ = 0;
};

}  // namespace llmprof::importers

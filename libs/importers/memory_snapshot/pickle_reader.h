#pragma once
// Reads a pickle (protocols 0 to 5) without executing anything: opcodes that build plain values are understood, every
// other one is refused with its place. What is read goes to PickleShapes, which may take it away, so that a file of any
// size is read in bounded memory.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "importers/memory_snapshot/byte_reader.h"
#include "importers/memory_snapshot/pickle_values.h"
#include "importers/sink.h"

namespace llmprof::importers {

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

  Result<void> step(unsigned char code);
  Result<void> scalar(unsigned char code);
  Result<void> text_number(unsigned char code);
  Result<void> text(unsigned char code);
  Result<void> container(unsigned char code);
  Result<void> memo(unsigned char code);
  Result<void> frame();
  Result<void> refuse(unsigned char code);
  Result<void> corrupt(std::string_view what) const;

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

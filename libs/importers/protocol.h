#pragma once
// What a reader in its child process says, as frames over a pipe: a header and its payload. Both ends are the same
// program, so rows travel as the structs they are. The child is not trusted: whoever takes a frame checks it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "importers/sink.h"

namespace llmprof::importers {

enum class FrameKind : std::uint32_t {
  kFormat = 1,  // number: place of the importer in importers()
  kClock,       // number: wall_of_zero_ns, count: whether it is known; payload: its name
  kFacts,       // five texts, each a length and its bytes
  kNames,       // number: id of the first, count: how many; each a length and its bytes
  kRows,        // number: place of the table in trace::tables(), count: rows
  kLoss,        // number: trace::Loss, count; payload: detail
  kProgress,    // number: stored bytes done
  kError,       // number: ErrorCode; two texts, message and hint
  kDone,
};

struct Frame {
  FrameKind kind = FrameKind::kDone;
  std::uint32_t bytes = 0;  // of the payload
  std::int64_t number = 0;
  std::int64_t count = 0;
};
static_assert(sizeof(Frame) == 24);

inline constexpr std::size_t kMostPayload = 4 << 20;

// Takes frames in order. false: nobody wants more.
using FrameTaker = std::function<bool(const Frame& frame, std::span<const std::byte> payload)>;
FrameTaker write_frames_to(int descriptor);

// A sink that says everything in frames.
class FrameSink : public Sink {
 public:
  explicit FrameSink(FrameTaker taker) : taker_(std::move(taker)) {}
  void say_format(std::size_t place) { send({FrameKind::kFormat, 0, static_cast<std::int64_t>(place), 0}, {}); }
  void say_error(const Error& error);
  void say_done() { send({FrameKind::kDone, 0, 0, 0}, {}); }
  void set_clock(FileClock clock) override;
  void set_facts(FileFacts facts) override;
  bool progress(std::uint64_t stored_bytes_done) override;

 private:
  void take_names(trace::Name first, std::span<const std::string_view> texts) override;
  void take_rows(const trace::Table& table, const std::byte* rows, std::size_t count) override;
  void take_loss(trace::Loss loss, std::int64_t count, std::string_view detail) override;
  void send(Frame frame, std::span<const std::byte> payload);

  FrameTaker taker_;
  bool wanted_ = true;
  std::uint64_t reported_ = 0;
};

// Texts of a payload, one after the other; nothing is read past its end.
class TextReader {
 public:
  explicit TextReader(std::span<const std::byte> payload) : left_(payload) {}
  bool next(std::string_view& text);  // false: there is no whole text
  bool at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

// Frames from a descriptor that does not block. `idle` is asked now and then, and while nothing comes; false: stop.
class FrameReader {
 public:
  FrameReader(int descriptor, std::function<bool()> idle);
  // The next frame; the payload may be changed in place and lives until the next call. `kDone` also at the end of the
  // pipe, then ended() is true. Errors: kInterrupted, or a child that breaks the protocol.
  Result<Frame> next();
  std::span<std::byte> payload() { return {reinterpret_cast<std::byte*>(payload_.data()), payload_bytes_}; }
  bool ended() const { return ended_; }

 private:
  Result<bool> fill(void* out, std::size_t bytes);  // false: the pipe ended

  int descriptor_;
  std::function<bool()> idle_;
  std::vector<std::max_align_t> payload_;  // rows are used where they arrive
  std::size_t payload_bytes_ = 0;
  bool ended_ = false;
};

Error broken_protocol(std::string_view what);

}  // namespace llmprof::importers

#include "importers/protocol.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kNamesPayload = 1 << 20;
constexpr std::size_t kMostFact = 1 << 20;
constexpr std::size_t kMostMessage = 16 << 10;
constexpr std::uint64_t kProgressBytes = 1 << 20;
constexpr int kIdleMilliseconds = 200;

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

void append(std::string& payload, std::string_view text, std::size_t most) {
  text = text.substr(0, most);
  const auto bytes = static_cast<std::uint32_t>(text.size());
  payload.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  payload.append(text);
}

bool write_all(int descriptor, const Frame& frame, std::span<const std::byte> payload) {
  iovec parts[2] = {{const_cast<Frame*>(&frame), sizeof frame},
                    {const_cast<std::byte*>(payload.data()), payload.size()}};
  std::size_t left = sizeof frame + payload.size();
  while (left > 0) {
    const ssize_t put = ::writev(descriptor, parts, 2);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    left -= static_cast<std::size_t>(put);
    auto done = static_cast<std::size_t>(put);
    for (iovec& part : parts) {
      const std::size_t taken = std::min(done, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + taken;
      part.iov_len -= taken;
      done -= taken;
    }
  }
  return true;
}

}  // namespace

FrameTaker write_frames_to(int descriptor) {
  return [descriptor](const Frame& frame, std::span<const std::byte> payload) {
    return write_all(descriptor, frame, payload);
  };
}

void FrameSink::send(Frame frame, std::span<const std::byte> payload) {
  frame.bytes = static_cast<std::uint32_t>(payload.size());
  if (wanted_) wanted_ = taker_(frame, payload);
}

void FrameSink::say_error(const Error& error) {
  std::string payload;
  append(payload, error.message, kMostMessage);
  append(payload, error.hint, kMostMessage);
  send({FrameKind::kError, 0, static_cast<std::int64_t>(error.code), 0}, bytes_of(payload));
}

void FrameSink::set_clock(FileClock clock) {
  const bool known = clock.wall_of_zero_ns.has_value();
  send({FrameKind::kClock, 0, clock.wall_of_zero_ns.value_or(0), known ? 1 : 0},
       bytes_of(std::string_view(clock.name).substr(0, kMostMessage)));
}

void FrameSink::set_facts(FileFacts facts) {
  std::string payload;
  for (const std::string* text : {&facts.tool, &facts.command, &facts.host, &facts.model_config, &facts.rank})
    append(payload, *text, text == &facts.model_config ? kMostFact : kMostMessage);
  send({FrameKind::kFacts, 0, 0, 0}, bytes_of(payload));
}

void FrameSink::take_names(trace::Name first, std::span<const std::string_view> texts) {
  std::string payload;
  std::int64_t next = first.id, count = 0;
  const auto hand_over = [&] {
    send({FrameKind::kNames, 0, next, count}, bytes_of(payload));
    next += count, count = 0;
    payload.clear();
  };
  for (const std::string_view text : texts) {
    append(payload, text, 4 * kMaxNameBytes);  // U+FFFD is longer than what it stands for
    ++count;
    if (payload.size() > kNamesPayload) hand_over();
  }
  if (count > 0) hand_over();
}

void FrameSink::take_rows(const trace::Table& table, const std::byte* rows, std::size_t count) {
  const auto tables = trace::tables();
  const auto place = std::find(tables.begin(), tables.end(), &table) - tables.begin();
  const std::size_t most = kMostPayload / table.row_bytes;
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t some = std::min(most, count - at);
    send({FrameKind::kRows, 0, place, static_cast<std::int64_t>(some)},
         {rows + at * table.row_bytes, some * table.row_bytes});
  }
}

void FrameSink::take_loss(trace::Loss loss, std::int64_t count, std::string_view detail) {
  send({FrameKind::kLoss, 0, static_cast<std::int64_t>(loss), count}, bytes_of(detail.substr(0, kMostMessage)));
}

bool FrameSink::progress(std::uint64_t stored_bytes_done) {
  if (stored_bytes_done >= reported_ + kProgressBytes) {
    reported_ = stored_bytes_done;
    send({FrameKind::kProgress, 0, static_cast<std::int64_t>(stored_bytes_done), 0}, {});
  }
  return wanted_;
}

bool TextReader::next(std::string_view& text) {
  std::uint32_t bytes = 0;
  if (left_.size() < sizeof bytes) return false;
  std::memcpy(&bytes, left_.data(), sizeof bytes);
  left_ = left_.subspan(sizeof bytes);
  if (left_.size() < bytes) return false;
  text = {reinterpret_cast<const char*>(left_.data()), bytes};
  left_ = left_.subspan(bytes);
  return true;
}

FrameReader::FrameReader(int descriptor, std::function<bool()> idle)
    : descriptor_(descriptor), idle_(std::move(idle)), payload_(kMostPayload / sizeof(std::max_align_t)) {}

Result<bool> FrameReader::fill(void* out, std::size_t bytes) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::read(descriptor_, to, bytes);
    if (got == 0) return false;
    if (got > 0) {
      to += got;
      bytes -= static_cast<std::size_t>(got);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return base::errno_error(ErrorCode::kIo, "pipe", errno);
    if (!idle_()) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    pollfd wait{descriptor_, POLLIN, 0};
    ::poll(&wait, 1, kIdleMilliseconds);
  }
  return true;
}

Result<Frame> FrameReader::next() {
  Frame frame;
  payload_bytes_ = 0;
  LLMPROF_LET(const bool header, fill(&frame, sizeof frame));
  if (header && frame.bytes > kMostPayload) return broken_protocol("a frame is too long");
  bool whole = header;
  if (header) {
    LLMPROF_LET(whole, fill(payload_.data(), frame.bytes));
  }
  if (!whole) {
    ended_ = true;
    return Frame{};
  }
  payload_bytes_ = frame.bytes;
  return frame;
}

Error broken_protocol(std::string_view what) {
  return Error{ErrorCode::kCorruptInput, fmt::format("the reader of the file broke its protocol: {}", what),
               "nothing was imported; if the file is a good one, this is a bug of llmprof"};
}

}  // namespace llmprof::importers

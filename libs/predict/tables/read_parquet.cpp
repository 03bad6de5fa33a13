#include "predict/tables/read_parquet.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/errors.h"
#include "base/file.h"
#include "importers/sandbox.h"
#include "trace/foreign_parquet.h"

namespace llmprof::predict {
namespace {

// The child ends what it says with one of these: a text without an end was cut off.
constexpr std::string_view kDone =
                               "\x04"
                               "done",
                           kFailed = "\x04";

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(0);  // nobody listens
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool holds_plainly(std::string_view text) { return text.find_first_of("\",\r\n\x04") == std::string_view::npos; }

bool append(const trace::Value& value, std::string& line) {
  using Type = trace::Value::Type;
  switch (value.type) {
    case Type::kNull:
      return true;
    case Type::kInt:
    case Type::kBool:
      line += fmt::format("{}", value.integer);
      return true;
    case Type::kDouble:
      line += fmt::format("{}", value.real);  // as short as comes back the same
      return true;
    case Type::kText:
      break;
  }
  line += value.text;
  return holds_plainly(value.text);
}

// In the child.
Result<void> send(const trace::ForeignParquet& file, int output) {
  constexpr std::size_t kPiece = 1 << 16;
  std::string text;
  bool plain = true;
  const auto end_line = [&] {
    text.back() = '\n';
    if (text.size() < kPiece) return;
    write_all(output, text);
    text.clear();
  };
  LLMPROF_TRY(file.each(
      [&](const std::vector<std::string>& names) {
        for (const std::string& name : names) {
          plain = plain && holds_plainly(name);
          text += name + ",";
        }
        if (!names.empty()) end_line();
      },
      [&](const std::vector<trace::Value>& row) {
        for (const trace::Value& value : row) {
          plain = plain && append(value, text);
          text += ",";
        }
        if (!row.empty()) end_line();
        return plain;
      }));
  if (!plain) return Error{ErrorCode::kUnsupported, "a text in it has commas, quotes or line ends", ""};
  write_all(output, text);
  return {};
}

void be_reader(const trace::ForeignParquet& file, int output) {
  const Result<void> sent = send(file, output);
  write_all(output, sent ? std::string(kDone) : std::string(kFailed) + sent.error().message);
}

Result<std::string> read_all(int descriptor, std::uint64_t most, const std::string& path) {
  std::string text;
  char piece[1 << 16];
  for (;;) {
    pollfd ready{descriptor, POLLIN, 0};
    if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return base::errno_error(ErrorCode::kIo, path, errno);
    const ssize_t got = ::read(descriptor, piece, sizeof piece);
    if (got == 0) return text;
    if (got < 0 && errno != EINTR && errno != EAGAIN) return base::errno_error(ErrorCode::kIo, path, errno);
    if (got < 0) continue;
    text.append(piece, static_cast<std::size_t>(got));
    if (text.size() > most) return corrupt_error("{}: more than {} bytes of text", path, most);
  }
}

}  // namespace

Result<std::string> parquet_as_csv(const std::string& path, std::uint64_t most) {
  if (!base::is_file(path)) return Error{ErrorCode::kNotFound, path + ": no such file", ""};
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();  // the engine checks the path as it is
  if (error) return Error{ErrorCode::kIo, fmt::format("{}: {}", path, error.message()), ""};
  LLMPROF_LET(const trace::ForeignParquet file, trace::ForeignParquet::prepare(real));
  LLMPROF_LET(importers::Child child,
              importers::Child::start(path, [&](const importers::Child::Ends& ends) { be_reader(file, ends.output); },
                                      {}, {.cpu_seconds = 60, .readable_file = real}));
  LLMPROF_LET(std::string text, read_all(child.output(), most, path));
  if (const auto ended = child.wait(); !ended) {
    return Error{ended.error().code, ended.error().message, "a table written as CSV needs no sandbox"};
  }
  const std::size_t end = text.rfind('\x04');
  if (end == std::string::npos) return corrupt_error("{}: what was read of it is cut off", path);
  if (std::string_view(text).substr(end) != kDone) return corrupt_error("{}: {}", path, text.substr(end + 1));
  text.resize(end);
  return text;
}

}  // namespace llmprof::predict

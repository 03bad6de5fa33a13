#include "importers/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "base/file.h"
#include "base/human.h"
#include "base/regular_file.h"

namespace llmprof::importers {
namespace {

// Compression undone piece by piece, in bounded memory: gzip (several members) by ISA-L, zstd (several frames).
class Unpacker {
 public:
  // The next stored bytes, at most `most` of them; 0 at the end of the file.
  using Source = std::function<Result<std::size_t>(char* out, std::size_t most)>;

  enum class End : std::uint8_t {
    kNotYet,
    kWhole,      // the compressed data ends where the file ends
    kTruncated,  // the file ends within the compressed data
    kDamaged,    // the data breaks its format or its checksum
    kTrailing,   // after whole data stands something else
  };

  Unpacker(std::string_view format, Source source)
      : format_(format), source_(std::move(source)), stored_(kStoredBytes) {}
  virtual ~Unpacker() = default;

  // Fills `out` unless the content ends; then end() tells how. Errors are those of the source.
  Result<std::size_t> read(char* out, std::size_t most) {
    std::size_t made = 0;
    while (made < most && end_ == End::kNotYet) {
      if (available_ == 0 && !source_ended_) LLMPROF_TRY(fill());
      const bool after_member = between_ && members_ > 0 && available_ > 0;
      if (available_ == 0 && between_) {
        end_ = members_ > 0 ? End::kWhole : End::kTruncated;
      } else if (after_member && only_zeros()) {
        available_ = 0;  // padding, as tapes and block devices leave it
      } else if (after_member && !may_begin(*next_)) {
        end_ = End::kTrailing;
      } else {
        made += step(out + made, most - made);
      }
    }
    return made;
  }

  End end() const { return end_; }
  std::uint64_t used_bytes() const { return used_; }   // stored bytes that were understood
  const std::string& why() const { return why_; }      // what is damaged, in words
  std::string_view format() const { return format_; }  // "gzip"

 protected:
  // Unpacks from next_/available_ to `out`, sets between_, or end_ and why_. Called with no input left only when the
  // source has ended.
  virtual std::size_t step(char* out, std::size_t most) = 0;
  virtual bool may_begin(char first) const = 0;  // whether a member can begin with this byte

  void consume(std::size_t bytes) { next_ += bytes, available_ -= bytes, used_ += bytes; }
  void fail(std::string_view why) {
    end_ = between_ && members_ > 0 ? End::kTrailing : End::kDamaged;
    why_ = why;
  }
  // After a step that went well: whether a member ended with it, and what it made.
  void stepped(bool ended, std::size_t made) {
    members_ += ended ? 1 : 0;
    if (!ended && source_ended_ && made == 0) end_ = End::kTruncated;
    between_ = ended;
  }

  const char* next_ = nullptr;
  std::size_t available_ = 0;
  bool source_ended_ = false;
  bool between_ = true;      // before the first member, or after one
  std::size_t members_ = 0;  // whole ones

 private:
  Result<void> fill() {
    LLMPROF_LET(available_, source_(stored_.data(), stored_.size()));
    next_ = stored_.data();
    source_ended_ = available_ == 0;
    return {};
  }
  bool only_zeros() const {
    return std::all_of(next_, next_ + available_, [](char c) { return c == 0; });
  }

  static constexpr std::size_t kStoredBytes = 256 << 10;  // read at a time
  std::string_view format_;
  Source source_;
  std::vector<char> stored_;
  End end_ = End::kNotYet;
  std::uint64_t used_ = 0;
  std::string why_;
};

using namespace std::string_view_literals;

constexpr int kWindowLog = 27;  // 128 MiB: the most that zstd itself takes without being told to

class Gzip final : public Unpacker {
 public:
  explicit Gzip(Source source) : Unpacker("gzip", std::move(source)) { begin_member(); }

 private:
  void begin_member() {
    isal_inflate_reset(&state_);
    state_.crc_flag = ISAL_GZIP;  // reads header and trailer, compares the checksum
  }

  std::size_t step(char* out, std::size_t most) override {
    if (between_ && members_ > 0) begin_member();
    most = std::min<std::size_t>(most, 1u << 30);
    state_.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(next_));
    state_.avail_in = static_cast<std::uint32_t>(available_);
    state_.next_out = reinterpret_cast<std::uint8_t*>(out);
    state_.avail_out = static_cast<std::uint32_t>(most);
    const int status = isal_inflate(&state_);
    const std::size_t taken = available_ - state_.avail_in;
    const std::size_t made = most - state_.avail_out;
    if (status < 0) {
      fail(status == ISAL_INCORRECT_CHECKSUM ? "its checksum is wrong" : "its content is damaged");
      consume(taken);
      return made;
    }
    consume(taken);
    stepped(state_.block_state == ISAL_BLOCK_FINISH, made);
    return made;
  }

  bool may_begin(char first) const override { return first == '\x1f'; }

  inflate_state state_ = make_state();
  static inflate_state make_state() {
    inflate_state state;
    isal_inflate_init(&state);
    return state;
  }
};

class Zstd final : public Unpacker {
 public:
  explicit Zstd(Source source) : Unpacker("zstd", std::move(source)), stream_(ZSTD_createDStream()) {
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kWindowLog);
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ZSTD_freeDStream(stream_); }

 private:
  std::size_t step(char* out, std::size_t most) override {
    ZSTD_inBuffer in{next_, available_, 0};
    ZSTD_outBuffer to{out, most, 0};
    const std::size_t status = ZSTD_decompressStream(stream_, &to, &in);
    if (ZSTD_isError(status) != 0) {
      fail(ZSTD_getErrorName(status));
      return to.pos;
    }
    consume(in.pos);
    stepped(status == 0, to.pos);
    return to.pos;
  }

  bool may_begin(char first) const override { return first == '\x28' || (first & 0xf0) == 0x50; }

  ZSTD_DStream* stream_;
};

// "gzip", "zstd"; "" if it is not compressed.
std::string_view compression_of(std::string_view beginning) {
  if (beginning.starts_with("\x1f\x8b"sv)) return "gzip";
  if (beginning.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  const bool skippable =
      beginning.size() >= 4 && (beginning[0] & 0xf0) == 0x50 && beginning.substr(1, 3) == "\x2a\x4d\x18"sv;
  return skippable ? "zstd" : "";
}

// By the first bytes of the file; nullptr: it is not compressed.
std::unique_ptr<Unpacker> make_unpacker(std::string_view beginning, Unpacker::Source source) {
  const std::string_view format = compression_of(beginning);
  if (format == "gzip") return std::make_unique<Gzip>(std::move(source));
  if (format == "zstd") return std::make_unique<Zstd>(std::move(source));
  return nullptr;
}

constexpr std::size_t kHeadBytes = 64 << 10;
constexpr std::size_t kCopyBytes = 1 << 20;
constexpr std::uint64_t kUsualRatio = 200;

// pread until `most` bytes are there or the file ends.
Result<std::size_t> pread_all(int descriptor, std::uint64_t offset, char* out, std::size_t most) {
  std::size_t done = 0;
  while (done < most) {
    const ssize_t got = ::pread(descriptor, out + done, most - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::errno_error(ErrorCode::kIo, fmt::format("byte {}", offset + done), errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<int> nameless_file(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0) return descriptor;
  std::string path = folder + "/llmprof-XXXXXX";  // file systems without O_TMPFILE
  const int made = ::mkostemp(path.data(), O_CLOEXEC);
  if (made < 0) return base::errno_error(base::code_of_errno(errno), folder, errno);
  ::unlink(path.c_str());
  return made;
}

}  // namespace

struct Input::State {
  std::string name;
  std::optional<base::RegularFile> file;  // or
  std::string text;
  std::uint64_t stored_bytes = 0, stored_at = 0;
  std::uint64_t most_plain = 0;
  std::unique_ptr<Unpacker> unpacker;  // nullptr: stored and plain bytes are the same
  std::optional<Error> refused;        // the content as a whole; every read says so
  std::string head;                    // plain bytes that were looked at
  bool head_read = false;
  std::uint64_t plain_at = 0;  // what read() has handed out
  std::uint64_t plain_made = 0;
  bool shrank = false, grew = false;
  int temporary = -1;
  bool expanded = false;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (temporary >= 0) ::close(temporary);
  }

  Result<std::size_t> stored(std::uint64_t offset, char* out, std::size_t most) {
    if (offset >= stored_bytes) return std::size_t{0};
    most = static_cast<std::size_t>(std::min<std::uint64_t>(most, stored_bytes - offset));
    if (!file) {
      std::memcpy(out, text.data() + offset, most);
      return most;
    }
    LLMPROF_LET(const std::size_t got, pread_all(file->descriptor(), offset, out, most));
    if (got < most) shrank = true;
    if (offset + got >= stored_bytes) check_growth();
    return got;
  }

  void check_growth() {
    struct stat now {};
    grew = ::fstat(file->descriptor(), &now) == 0 && static_cast<std::uint64_t>(now.st_size) > stored_bytes;
  }

  void detect(std::uint64_t max_plain_bytes) {
    most_plain =
        max_plain_bytes == kMaxPlainBytes ? std::max(kMaxPlainBytes, kUsualRatio * stored_bytes) : max_plain_bytes;
    char first[8];
    const auto got = stored(0, first, sizeof first);
    if (!got) return;
    unpacker = make_unpacker({first, *got}, [this](char* out, std::size_t most) -> Result<std::size_t> {
      LLMPROF_LET(const std::size_t count, stored(stored_at, out, most));
      stored_at += count;
      return count;
    });
  }

  // Plain bytes from where the last call ended.
  Result<std::size_t> produce(char* out, std::size_t most) {
    if (refused) return *refused;
    if (expanded) {
      LLMPROF_LET(const std::size_t got, pread_all(temporary, plain_at, out, most));
      return got;
    }
    if (!unpacker) {
      const auto got = stored(plain_made, out, most);
      if (!got) return *(refused = got.error());
      plain_made += *got, stored_at = plain_made;
      return *got;
    }
    const auto unpacked = unpacker->read(out, most);
    if (!unpacked) return *(refused = unpacked.error());
    const std::size_t got = *unpacked;
    plain_made += got;
    if (plain_made > most_plain) {
      refused = Error{ErrorCode::kCorruptInput,
                      fmt::format("byte {}: {} of {} data expand to more than {}", unpacker->used_bytes(),
                                  base::human_bytes(static_cast<double>(stored_bytes)), unpacker->format(),
                                  base::human_bytes(static_cast<double>(most_plain))),
                      "if the file is to be trusted, allow more with --max-plain"};
      return *refused;
    }
    return got;
  }

  Result<void> look() {
    if (head_read) return refused ? Result<void>(*refused) : Result<void>();
    head_read = true;
    head.resize(kHeadBytes);
    const auto got = produce(head.data(), head.size());
    head.resize(got ? *got : 0);
    if (!got) {
      refused = got.error();
    } else if (const std::string_view inner = compression_of(head); unpacker && !inner.empty()) {
      refused = Error{ErrorCode::kUnsupported, fmt::format("byte 0: {} data inside {} data", inner, unpacker->format()),
                      "undo one of the two: llmprof undoes compression once"};
    }
    return refused ? Result<void>(*refused) : Result<void>();
  }
};

Input::Input(std::unique_ptr<State> state) : state_(std::move(state)) {}
Input::Input(Input&&) noexcept = default;
Input::~Input() = default;

Result<Input> Input::open(const std::string& path, std::uint64_t max_plain_bytes) {
  auto file = base::RegularFile::open(path);
  if (!file) return std::move(file.error());
  auto state = std::make_unique<State>();
  state->name = path;
  state->stored_bytes = file->bytes();
  state->file.emplace(std::move(*file));
  state->detect(max_plain_bytes);
  return Input(std::move(state));
}

Input Input::of_text(std::string name, std::string content, std::uint64_t max_plain_bytes) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->text = std::move(content);
  state->stored_bytes = state->text.size();
  state->detect(max_plain_bytes);
  return Input(std::move(state));
}

const std::string& Input::name() const { return state_->name; }
std::uint64_t Input::file_bytes() const { return state_->stored_bytes; }
std::uint64_t Input::stored_offset() const { return state_->stored_at; }
bool Input::compressed() const { return state_->unpacker != nullptr; }

Result<std::string_view> Input::head() {
  LLMPROF_TRY(state_->look());
  return std::string_view(state_->head);
}

Result<std::size_t> Input::read(char* out, std::size_t most) {
  LLMPROF_TRY(state_->look());
  std::size_t done = 0;
  if (state_->plain_at < state_->head.size() && !state_->expanded) {
    done = std::min(most, state_->head.size() - static_cast<std::size_t>(state_->plain_at));
    std::memcpy(out, state_->head.data() + state_->plain_at, done);
    state_->plain_at += done;
  }
  if (done < most) {
    LLMPROF_LET(const std::size_t got, state_->produce(out + done, most - done));
    state_->plain_at += got;
    done += got;
  }
  return done;
}

Result<std::string> Input::read_all(std::uint64_t most) {
  std::string all;
  while (true) {
    const std::size_t before = all.size();
    all.resize(before + kCopyBytes);
    LLMPROF_LET(const std::size_t got, read(all.data() + before, kCopyBytes));
    all.resize(before + got);
    if (all.size() > most) {
      return Error{
          ErrorCode::kCorruptInput,
          fmt::format("byte {}: the content goes on after {}", most, base::human_bytes(static_cast<double>(most))),
          "files of this format are at most that long"};
    }
    if (got == 0) return all;
  }
}

Result<std::size_t> Input::read_at(std::uint64_t offset, char* out, std::size_t most) {
  if (state_->refused) return *state_->refused;
  if (!compressed()) return state_->stored(offset, out, most);
  LLMPROF_TRY(expand());
  return pread_all(state_->temporary, offset, out, most);
}

Result<std::uint64_t> Input::plain_bytes() {
  if (!compressed()) return state_->stored_bytes;
  LLMPROF_TRY(expand());
  return state_->plain_made;
}

Result<void> Input::prepare_expansion(const std::string& folder) {
  if (!compressed() || state_->temporary >= 0) return {};
  const std::string usual = base::env_or("TMPDIR", base::is_directory("/var/tmp") ? "/var/tmp" : "/tmp");
  LLMPROF_LET(state_->temporary, nameless_file(folder.empty() ? usual : folder));
  return {};
}

Result<void> Input::expand() {
  if (!compressed() || state_->expanded) return {};
  if (state_->plain_at != 0) return Error{ErrorCode::kInternal, "expand() after read()", ""};
  LLMPROF_TRY(prepare_expansion(""));
  std::string buffer(kCopyBytes, '\0');
  while (true) {
    LLMPROF_LET(const std::size_t got, read(buffer.data(), buffer.size()));
    if (got == 0) break;
    for (std::size_t at = 0; at < got;) {
      const ssize_t put = ::write(state_->temporary, buffer.data() + at, got - at);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return base::errno_error(ErrorCode::kIo, "expanding it into a temporary file", errno);
      at += static_cast<std::size_t>(put);
    }
  }
  state_->expanded = true;
  state_->plain_at = 0;
  return {};
}

const std::optional<Error>& Input::refused() const { return state_->refused; }

std::vector<InputRemark> Input::remarks() const {
  std::vector<InputRemark> all;
  if (const Unpacker* unpacker = state_->unpacker.get()) {
    const std::string where = fmt::format("byte {} of the file", unpacker->used_bytes());
    const std::string format(unpacker->format());
    if (unpacker->end() == Unpacker::End::kTruncated)
      all.push_back({trace::Loss::kInputTruncated, format + " data that end in the middle", where});
    if (unpacker->end() == Unpacker::End::kDamaged)
      all.push_back({trace::Loss::kInputDamaged, format + " data: " + unpacker->why(), where});
    if (unpacker->end() == Unpacker::End::kTrailing)
      all.push_back({trace::Loss::kInputDamaged, "something after the " + format + " data", where});
  }
  if (state_->shrank) all.push_back({trace::Loss::kInputTruncated, "the file became shorter while it was read", ""});
  if (state_->grew) all.push_back({trace::Loss::kInputTruncated, "the file grew while it was read", ""});
  return all;
}

std::vector<int> Input::descriptors() const {
  std::vector<int> all;
  if (state_->file) all.push_back(state_->file->descriptor());
  if (state_->temporary >= 0) all.push_back(state_->temporary);
  return all;
}

}  // namespace llmprof::importers

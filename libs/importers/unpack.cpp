#include "importers/unpack.h"

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

namespace llmprof::importers {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kStoredBytes = 256 << 10;  // read at a time
constexpr int kWindowLog = 27;                   // 128 MiB: the most that zstd itself takes without being told to

// What both formats share: a buffer of stored bytes, and members (frames) that follow each other.
class Chunked : public Unpacker {
 public:
  Chunked(std::string_view format, Source source)
      : Unpacker(format), source_(std::move(source)), stored_(kStoredBytes) {}

  Result<std::size_t> read(char* out, std::size_t most) override {
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
  void truncated() { end_ = End::kTruncated; }

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

  Source source_;
  std::vector<char> stored_;
};

class Gzip final : public Chunked {
 public:
  explicit Gzip(Source source) : Chunked("gzip", std::move(source)) { begin_member(); }

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
    if (state_.block_state == ISAL_BLOCK_FINISH) {
      between_ = true;
      ++members_;
    } else if (source_ended_ && made == 0) {
      truncated();
    } else if (taken > 0 || made > 0) {
      between_ = false;
    }
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

class Zstd final : public Chunked {
 public:
  explicit Zstd(Source source) : Chunked("zstd", std::move(source)), stream_(ZSTD_createDStream()) {
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
    if (status == 0) {
      between_ = true;
      ++members_;
    } else if (source_ended_ && to.pos == 0) {
      truncated();
    } else {
      between_ = false;
    }
    return to.pos;
  }

  bool may_begin(char first) const override { return first == '\x28' || (first & 0xf0) == 0x50; }

  ZSTD_DStream* stream_;
};

}  // namespace

std::string_view compression_of(std::string_view beginning) {
  if (beginning.starts_with("\x1f\x8b"sv)) return "gzip";
  if (beginning.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  const bool skippable =
      beginning.size() >= 4 && (beginning[0] & 0xf0) == 0x50 && beginning.substr(1, 3) == "\x2a\x4d\x18"sv;
  return skippable ? "zstd" : "";
}

std::unique_ptr<Unpacker> make_unpacker(std::string_view beginning, Unpacker::Source source) {
  const std::string_view format = compression_of(beginning);
  if (format == "gzip") return std::make_unique<Gzip>(std::move(source));
  if (format == "zstd") return std::make_unique<Zstd>(std::move(source));
  return nullptr;
}

}  // namespace llmprof::importers

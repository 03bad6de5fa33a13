#include "load/message.h"

#include <array>
#include <utility>

#include "base/json.h"

namespace llmprof::load {
namespace {

// Where in a message the reader is. Only what is asked for is kept: at 100,000 events a second a tree of each would be
// most of the work.
enum class At : std::uint8_t { kRoot, kChoices, kChoice, kDelta, kTokenIds, kUsage, kDetails, kError, kOther };

class Reader {
 public:
  using number_integer_t = base::Json::number_integer_t;
  using number_unsigned_t = base::Json::number_unsigned_t;
  using number_float_t = base::Json::number_float_t;
  using string_t = base::Json::string_t;
  using binary_t = base::Json::binary_t;

  explicit Reader(Message& out) : out_(out) {}

  bool null() { return depth_ > 0; }
  bool boolean(bool) { return depth_ > 0; }
  bool number_float(number_float_t, const string_t&) { return depth_ > 0; }
  bool binary(binary_t&) { return false; }
  bool number_integer(number_integer_t) { return depth_ > 0; }
  bool number_unsigned(number_unsigned_t value) {
    if (depth_ == 0) return false;
    const auto count = static_cast<std::int64_t>(std::min<number_unsigned_t>(value, kMostTokens));
    if (at() == At::kUsage && key_ == "prompt_tokens") out_.prompt_tokens = count;
    if (at() == At::kUsage && key_ == "completion_tokens") out_.completion_tokens = count;
    if (at() == At::kDetails && key_ == "cached_tokens") out_.cached_tokens = count;
    if (at() == At::kTokenIds) ++out_.token_ids;
    return true;
  }
  bool string(string_t& value) {
    if (depth_ == 0) return false;
    if (at() == At::kChoice && key_ == "text") add(value, false);
    if (at() == At::kDelta && key_ == "content") add(value, false);
    if (at() == At::kDelta && (key_ == "reasoning_content" || key_ == "reasoning")) add(value, true);
    if (at() == At::kChoice && key_ == "finish_reason") out_.finish_reason = value;
    if (at() == At::kError && key_ == "message") out_.error = value;
    if (at() == At::kRoot) root_text(value);
    return true;
  }
  bool key(string_t& name) {
    key_.swap(name);
    return true;
  }
  bool start_object(std::size_t) {
    At next = At::kOther;
    if (depth_ == 0) {
      next = At::kRoot;
    } else if (at() == At::kRoot && key_ == "usage") {
      next = At::kUsage;
    } else if (at() == At::kRoot && key_ == "error") {
      next = At::kError;
      out_.error = "an error without words";
    } else if (at() == At::kChoices) {
      next = At::kChoice;
      out_.choices = true;
    } else if (at() == At::kChoice && (key_ == "delta" || key_ == "message")) {
      next = At::kDelta;
    } else if (at() == At::kUsage && key_ == "prompt_tokens_details") {
      next = At::kDetails;
    }
    return push(next);
  }
  bool start_array(std::size_t) {
    if (depth_ == 0) return false;
    return push(at() == At::kRoot && key_ == "choices"       ? At::kChoices
                : at() == At::kChoice && key_ == "token_ids" ? At::kTokenIds
                                                             : At::kOther);
  }
  bool end_object() { return pop(); }
  bool end_array() { return pop(); }
  template <class Problem>
  bool parse_error(std::size_t, const std::string&, const Problem&) {
    return false;
  }

 private:
  static constexpr number_unsigned_t kMostTokens = 1 << 30;
  static constexpr std::size_t kMostDepth = 64;

  At at() const { return stack_[depth_ - 1]; }
  bool push(At next) {
    if (depth_ == kMostDepth) return false;
    stack_[depth_++] = next;
    return true;
  }
  bool pop() {
    --depth_;
    key_.clear();
    return true;
  }
  void add(const string_t& text, bool reasoning) {
    if (text.empty()) return;
    out_.reasoning = reasoning && (out_.text.empty() || out_.reasoning);
    out_.text += text;
  }
  // Errors that are no object: {"error": "…"} (TGI), {"object": "error", "message": "…"} (older vLLM), {"detail": "…"}.
  void root_text(const string_t& value) {
    if (key_ == "error" || key_ == "detail") out_.error = value;
    if (key_ == "message") message_ = value;
    if (key_ == "object" && value == "error") is_error_ = true;
    if (is_error_ && !message_.empty()) out_.error = message_;
  }

  Message& out_;
  std::array<At, kMostDepth> stack_{};
  std::size_t depth_ = 0;
  std::string key_, message_;
  bool is_error_ = false;
};

void reset(Message& message) {
  message.choices = message.reasoning = false;
  message.token_ids = 0;
  message.prompt_tokens = message.completion_tokens = message.cached_tokens = std::nullopt;
  message.text.clear(), message.finish_reason.clear(), message.error.clear();
}

}  // namespace

bool parse_message(std::string_view json, Message& out) {
  reset(out);
  Reader reader(out);
  if (base::Json::sax_parse(json.begin(), json.end(), &reader)) return true;
  reset(out);
  return false;
}

}  // namespace llmprof::load

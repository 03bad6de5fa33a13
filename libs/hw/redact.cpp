#include "hw/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <vector>

#include "hw/environment.h"

namespace llmprof::hw {
namespace {

constexpr std::string_view kStars = "***";

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_quote(char c) { return c == '"' || c == '\'' || c == '`'; }
bool is_name(char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; }

template <class Words>
bool contains(const Words& words, std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// "--apiKey", "HF_TOKEN" -> api key, hf token
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool open = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool hump =
        i > 0 && std::isupper(static_cast<unsigned char>(c)) && std::islower(static_cast<unsigned char>(name[i - 1]));
    if (!is_alnum(c) || hump) open = false;
    if (!is_alnum(c)) continue;
    if (!open) words.emplace_back();
    open = true;
    words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

constexpr std::array<std::string_view, 12> kSecretWords{"credential", "credentials", "authorization", "bearer",
                                                        "cookie",     "cookies",     "pwd",           "pat",
                                                        "secrets",    "passcode",    "accesskey",     "privatekey"};
constexpr std::array<std::string_view, 6> kSecretEndings{"secret",     "password", "passwd",
                                                         "passphrase", "apikey",   "secretkey"};
constexpr std::array<std::string_view, 4> kSecretLastWords{"pass", "auth", "otp", "key"};
// Language models count tokens and have special ones: with these words a token is no secret.
constexpr std::array<std::string_view, 33> kCountingWords{
    "max",    "min",  "num",   "n",      "new",    "total", "count", "len",  "length",   "size", "limit",
    "budget", "per",  "batch", "prompt", "output", "input", "pad",   "eos",  "bos",      "unk",  "sep",
    "cls",    "mask", "id",    "ids",    "type",   "first", "last",  "time", "position", "sort", "cache"};
constexpr std::array<std::string_view, 7> kOwners{"api", "auth", "access", "secret", "bearer", "refresh", "session"};
// "--token-file x" names a place, not a secret.
constexpr std::array<std::string_view, 5> kPlaces{"file", "path", "dir", "url", "endpoint"};

bool any_of(const std::vector<std::string>& words, auto&& condition) {
  return std::any_of(words.begin(), words.end(), condition);
}

// The characters that follow a known prefix make a token when they look random: a digit or a capital, or very long.
struct TokenShape {
  std::string_view prefix;
  std::size_t least;      // characters after the prefix
  std::string_view also;  // allowed besides letters and digits
};
constexpr std::array kTokenShapes{
    TokenShape{"hf_", 6, ""},       TokenShape{"sk-", 6, "-_"},        TokenShape{"sk_live_", 6, "_"},
    TokenShape{"sk_test_", 6, "_"}, TokenShape{"rk_live_", 6, "_"},    TokenShape{"ghp_", 6, ""},
    TokenShape{"gho_", 6, ""},      TokenShape{"ghu_", 6, ""},         TokenShape{"ghs_", 6, ""},
    TokenShape{"ghr_", 6, ""},      TokenShape{"github_pat_", 6, "_"}, TokenShape{"glpat-", 6, "-_"},
    TokenShape{"xoxb-", 6, "-"},    TokenShape{"xoxp-", 6, "-"},       TokenShape{"xoxa-", 6, "-"},
    TokenShape{"nvapi-", 6, "-_"},  TokenShape{"npm_", 16, ""},        TokenShape{"pypi-", 16, "-_"},
    TokenShape{"gsk_", 16, ""},     TokenShape{"r8_", 16, ""},         TokenShape{"AKIA", 16, ""},
    TokenShape{"ASIA", 16, ""},     TokenShape{"AIza", 30, "-_"},      TokenShape{"ya29.", 10, "-_."},
    TokenShape{"eyJ", 20, "-_."},
};

std::size_t token_length(std::string_view text) {
  for (const TokenShape& shape : kTokenShapes) {
    if (!text.starts_with(shape.prefix)) continue;
    std::size_t end = shape.prefix.size();
    bool random = false;
    for (; end < text.size() && (is_alnum(text[end]) || shape.also.find(text[end]) != std::string_view::npos); ++end) {
      random = random || (is_alnum(text[end]) && !std::islower(static_cast<unsigned char>(text[end])));
    }
    const std::size_t length = end - shape.prefix.size();
    if (length >= shape.least && (random || length >= 16)) return end;
  }
  return 0;
}

// Walks over free text once and copies it, secrets left out.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (!take_url() && !take_token() && !take_name()) copy(1);
    }
    return std::move(out_);
  }

 private:
  char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  bool word_start() const { return at_ == 0 || !is_alnum(text_[at_ - 1]); }
  std::size_t skip_spaces(std::size_t at) const {
    while (at < text_.size() && is_space(text_[at])) ++at;
    return at;
  }
  void copy(std::size_t count) {
    out_ += text_.substr(at_, count);
    at_ += count;
  }

  bool take_url() {  // scheme://user:password@host
    if (!text_.substr(at_).starts_with("://")) return false;
    const std::string_view rest = text_.substr(at_ + 3);
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?# \t\n\"'<>"));
    const std::size_t sign = authority.rfind('@');
    copy(3);
    if (sign != std::string_view::npos) {
      out_ += kStars;
      at_ += sign;
    }
    return true;
  }

  bool take_token() {
    const std::size_t length = word_start() ? token_length(text_.substr(at_)) : 0;
    if (length == 0) return false;
    out_ += kStars;
    at_ += length;
    return true;
  }

  bool take_name() {
    if (!is_name(text_[at_]) || !word_start()) return false;
    std::size_t end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    const std::string_view name = text_.substr(at_, end - at_);
    copy(end - at_);
    if (!names_secret(name)) return true;
    const bool flag = name.starts_with('-');
    const std::size_t value = value_after(end, flag, words_of(name).back() == "bearer");
    if (value == 0) return true;
    copy(value - at_);
    hide_value(contains(words_of(name), "authorization") || contains(words_of(name), "cookie"));
    return true;
  }

  // Where the value of a name that ends at `end` begins; 0 if it has none.
  std::size_t value_after(std::size_t end, bool flag, bool bearer) const {
    std::size_t at = end;
    if (peek(at) == '\\') ++at;
    if (is_quote(peek(at))) ++at;
    const std::size_t separator = skip_spaces(at);
    const char c = peek(separator);
    if ((c == '=' || c == ':') && peek(separator + 1) != '=') {
      const std::size_t value = skip_spaces(separator + 1 + (peek(separator + 1) == '>' ? 1 : 0));
      return value < text_.size() ? value : 0;
    }
    if (flag && at > end && c == ',') return skip_spaces(separator + 1);  // ["--token", "x"]
    const bool word_follows = separator > at && at == end && separator < text_.size();
    if (flag && word_follows && c != '-') return separator;  // --token x
    return bearer && word_follows ? separator : 0;           // Bearer x
  }

  void hide_value(bool whole_line) {
    const bool escaped = peek(at_) == '\\' && is_quote(peek(at_ + 1));  // \"x\" inside a quoted text
    if (escaped) copy(1);
    if (is_quote(peek(at_))) {
      const char quote = text_[at_];
      copy(1);
      if (escaped) {
        at_ = std::min(text_.find(std::string{'\\', quote}, at_), text_.size());
      } else {
        while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
        at_ = std::min(at_, text_.size());
      }
    } else {
      const std::string_view stops = whole_line ? "\"'`\r\n" : " \t\r\n\"'`&;,)]}<>|";
      at_ = std::min(text_.find_first_of(stops, at_), text_.size());
    }
    out_ += kStars;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

bool looks_like_flag(std::string_view argument) {
  if (argument.starts_with("--")) return argument.size() == 2 || std::isalpha(static_cast<unsigned char>(argument[2]));
  return argument.starts_with('-') && argument.size() <= 3;
}

// "-u bob:secret" of curl and others; "-u 1000:1000" of docker stays.
bool is_user_and_password(std::string_view argument) {
  const std::size_t colon = argument.find(':');
  if (colon == 0 || colon == std::string_view::npos || argument.find('/') < colon) return false;
  return argument.find_first_not_of("0123456789:") != std::string_view::npos &&
         argument.find("://") == std::string_view::npos;
}

// "--password=a b" and "PASSWORD=a b" whole, so that no part of an odd value stays.
std::string redact_argument(const std::string& argument, bool is_code) {
  const std::size_t equals = argument.find('=');
  if (equals != std::string::npos && (argument.starts_with('-') || !is_code)) {
    const std::string_view name = std::string_view(argument).substr(0, equals);
    if (std::all_of(name.begin(), name.end(), is_name) && names_secret(name)) {
      return argument.substr(0, equals + 1) + std::string(kStars);
    }
  }
  return redact_text(argument);
}

}  // namespace

bool names_secret(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  if (words.empty() || contains(kPlaces, words.back())) return false;
  const auto secret = [](std::string_view word) {
    return contains(kSecretWords, word) || std::any_of(kSecretEndings.begin(), kSecretEndings.end(),
                                                       [&](auto ending) { return word.ends_with(ending); });
  };
  if (any_of(words, secret)) return true;
  if (any_of(words, [](const auto& word) { return contains(kCountingWords, word); })) return false;
  if (contains(kSecretLastWords, words.back())) return true;
  if (any_of(words, [](const auto& word) { return word.ends_with("token"); })) return true;
  const bool owned = any_of(words, [](const auto& word) { return contains(kOwners, word); });
  return owned && (words.back() == "tokens" || words.back() == "keys");
}

std::string redact_text(std::string_view text) {
  if (text.find("PRIVATE KEY-----") != std::string_view::npos) return std::string(kStars);
  return Scanner(text).run();
}

std::string redact_variable(std::string_view name, std::string_view value) {
  return names_secret(name) ? std::string(kStars) : redact_text(value);
}

std::vector<std::string> redact(const std::vector<std::string>& arguments) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string before = i > 0 ? arguments[i - 1] : "";
    const std::string& argument = arguments[i];
    const bool named = before.size() > 2 && before.starts_with('-') && before.find_first_of("= ") == std::string::npos;
    if (named && names_secret(before) && !looks_like_flag(argument)) {
      shown.emplace_back(kStars);
    } else if ((before == "-u" || before == "--user" || before == "--proxy-user") && is_user_and_password(argument)) {
      shown.push_back(argument.substr(0, argument.find(':') + 1) + std::string(kStars));
    } else {
      shown.push_back(redact_argument(argument, before == "-c" || before == "-e"));
    }
  }
  return shown;
}

}  // namespace llmprof::hw

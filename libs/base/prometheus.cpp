#include "base/prometheus.h"

#include <cmath>

#include "base/numbers.h"
#include "base/strings.h"

namespace llmprof::base {
namespace {

constexpr std::string_view kBlanks = " \t";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::size_t name_length(std::string_view text, bool colons) {
  const auto fits = [&](char c) { return is_letter(c) || (colons && c == ':'); };
  if (text.empty() || !fits(text.front())) return 0;
  std::size_t length = 1;
  while (length < text.size() && (fits(text[length]) || is_digit(text[length]))) ++length;
  return length;
}

std::string_view after_blanks(std::string_view text) {
  const std::size_t at = text.find_first_not_of(kBlanks);
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

std::string_view word_of(std::string_view text) { return text.substr(0, text.find_first_of(kBlanks)); }

// Of a text that begins behind a quote: what stands before the closing one. npos: it is missing.
std::size_t quoted_length(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i;
    }
  }
  return std::string_view::npos;
}

// Walks over labels that begin behind a brace; `length` is where the closing one stands.
template <class Each>
const char* walk_labels(std::string_view text, std::size_t& length, Each each) {
  std::string_view rest = text;
  for (std::size_t count = 0;; ++count) {
    rest = after_blanks(rest);
    if (rest.starts_with('}')) break;
    if (count >= kMaxLabels) return "lines with more than 64 labels";
    const std::size_t name = name_length(rest, false);
    if (name == 0) return "lines with a label without a name";
    const std::string_view label = rest.substr(0, name);
    rest = after_blanks(rest.substr(name));
    if (!rest.starts_with('=')) return "lines with a label without a value";
    rest = after_blanks(rest.substr(1));
    if (!rest.starts_with('"')) return "lines with a label without a value";
    const std::size_t value = quoted_length(rest.substr(1));
    if (value == std::string_view::npos) return "lines with a quote that is not closed";
    if (value > kMaxLabelBytes) return "lines with a label longer than 4 KiB";
    each(label, rest.substr(1, value));
    rest = after_blanks(rest.substr(value + 2));
    if (rest.starts_with(',')) {
      rest.remove_prefix(1);
    } else if (!rest.starts_with('}')) {
      return "lines with labels that do not end";
    }
  }
  length = text.size() - rest.size();
  return nullptr;
}

bool parse_value(std::string_view text, double& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.front() == '+') return false;
  const auto number = parse_number<double>(text);
  if (number) value = *number;
  return number.has_value();
}

// Milliseconds as a whole number (0.0.4), or seconds (OpenMetrics): no clock of today shows so few milliseconds or so
// many seconds.
std::optional<std::int64_t> time_ns(double number) {
  constexpr double kLeastMilliseconds = 1e11;  // 1973
  if (!std::isfinite(number) || number < 0) return std::nullopt;
  const double seconds = number >= kLeastMilliseconds ? number / 1000 : number;
  if (seconds > 7e9) return std::nullopt;
  return std::llround(seconds * 1e6) * 1000;
}

constexpr std::string_view kUnits[] = {"seconds", "milliseconds", "microseconds", "bytes", "ratio", "percent", "tokens",
                                       "joules",  "watts",        "celsius",      "hertz", "volts", "amperes", "flops"};

bool strip(std::string_view& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return true;
}

// From the end of the name; values of buckets and counts are plain numbers.
}  // namespace

std::string_view metric_unit(std::string_view name) {
  if (name.ends_with("_bucket") || name.ends_with("_count")) return {};
  if (!strip(name, "_total")) strip(name, "_sum");
  for (const std::string_view unit : kUnits) {
    if (name.ends_with(unit) && name.size() > unit.size() && name[name.size() - unit.size() - 1] == '_') return unit;
  }
  return {};
}

std::string_view metric_kind(std::string_view kind) {
  for (const std::string_view known : {"counter", "gauge", "histogram", "summary"}) {
    if (kind == known) return known;
  }
  return kind == "gaugehistogram" ? "histogram" : "untyped";
}

const char* parse_sample(std::string_view line, SampleLine& sample) {
  sample = {};
  std::string_view rest = after_blanks(line);
  const std::size_t name = name_length(rest, true);
  if (name == 0) return "lines without the name of a metric";
  sample.name = rest.substr(0, name);
  rest = after_blanks(rest.substr(name));
  if (rest.starts_with('{')) {
    std::size_t length = 0;
    if (const char* wrong = walk_labels(rest.substr(1), length, [](auto, auto) {})) return wrong;
    sample.labels = rest.substr(1, length);
    rest = after_blanks(rest.substr(length + 2));
  }
  const std::string_view value = word_of(rest);
  if (!parse_value(value, sample.value)) return "lines without a number that can be read";
  rest = after_blanks(rest.substr(value.size()));
  if (!rest.empty() && rest.front() != '#') {
    const std::string_view time = word_of(rest);
    double number = 0;
    if (!parse_value(time, number)) return "lines with something behind the value";
    sample.ts_ns = time_ns(number);
    if (!sample.ts_ns) return "lines with a time that cannot be";
    rest = after_blanks(rest.substr(time.size()));
  }
  sample.exemplar = rest.starts_with('#');
  return rest.empty() || sample.exemplar ? nullptr : "lines with something behind the value";
}

std::string label_value(std::string_view labels, std::string_view name) {
  std::string found;
  std::size_t length = 0;
  walk_labels(std::string(labels) + "}", length, [&](std::string_view label, std::string_view value) {
    if (label != name) return;
    found.clear();
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '\\' && i + 1 < value.size()) {
        ++i;
        found += value[i] == 'n' ? '\n' : value[i];
      } else {
        found += value[i];
      }
    }
  });
  return found;
}

CommentLine parse_comment(std::string_view line) {
  std::string_view rest = after_blanks(line.substr(line.find('#') + 1));
  CommentLine comment;
  const std::string_view word = word_of(rest);
  if (word != "TYPE" && word != "HELP" && word != "UNIT" && word != "EOF") return comment;
  comment.keyword = word;
  rest = after_blanks(rest.substr(word.size()));
  comment.name = word_of(rest);
  comment.rest = after_blanks(rest.substr(comment.name.size()));
  return comment;
}

}  // namespace llmprof::base

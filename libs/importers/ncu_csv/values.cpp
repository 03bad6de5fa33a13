#include "importers/ncu_csv/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace llmprof::importers::ncu {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_absent(std::string_view text) {
  return text.empty() || text == "n/a" || text == "N/A" || text == "nan" || text == "-nan" || text == "inf" ||
         text == "-inf";
}

// Three digits behind every mark, and one to three before the first.
bool is_grouped(std::string_view text, char mark) {
  std::size_t run = 0;
  bool first = true;
  for (const char c : text) {
    if (is_digit(c)) {
      ++run;
    } else {
      if (c != mark || (first ? run < 1 || run > 3 : run != 3)) return false;
      first = false;
      run = 0;
    }
  }
  return !first && run == 3;
}

ValueKind exact(std::string_view text, double& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return ValueKind::kText;
  return std::isfinite(value) ? ValueKind::kNumber : ValueKind::kAbsent;
}

// A number with commas, or something else altogether.
ValueKind parse_marked(std::string_view text, double& value) {
  const std::string_view sign = text.starts_with('-') || text.starts_with('+') ? text.substr(0, 1) : std::string_view{};
  const std::string_view body = text.substr(sign.size());
  for (const char c : body) {
    if (!is_digit(c) && c != '.' && c != ',') return exact(text, value);
  }
  const std::size_t comma = body.find(','), point = body.find('.');
  const bool several_points = body.find('.', std::min(point, body.size() - 1) + 1) != std::string_view::npos;
  if (comma == std::string_view::npos)
    return several_points && is_grouped(body, '.') ? ValueKind::kDecimalComma : exact(text, value);
  if (point < comma) return ValueKind::kDecimalComma;
  const std::string_view whole = body.substr(0, point);
  if (!is_grouped(whole, ',')) {
    const bool one_comma = body.find(',', comma + 1) == std::string_view::npos;
    return one_comma && point == std::string_view::npos ? ValueKind::kDecimalComma : ValueKind::kText;
  }
  if (several_points || body.find(',', whole.size()) != std::string_view::npos) return ValueKind::kText;
  std::array<char, 64> plain;
  std::size_t size = 0;
  if (body.size() + 1 > plain.size()) return ValueKind::kText;
  if (sign == "-") plain[size++] = '-';
  for (const char c : body) {
    if (c != ',') plain[size++] = c;
  }
  return exact(std::string_view(plain.data(), size), value);
}

struct Scaled {
  std::string_view printed;
  double factor;
  std::string_view base;
};

constexpr std::array kScaled{Scaled{"Kbyte", 1e3, "byte"},  Scaled{"Mbyte", 1e6, "byte"},  Scaled{"Gbyte", 1e9, "byte"},
                             Scaled{"Tbyte", 1e12, "byte"}, Scaled{"Pbyte", 1e15, "byte"}, Scaled{"Khz", 1e3, "hz"},
                             Scaled{"Mhz", 1e6, "hz"},      Scaled{"Ghz", 1e9, "hz"},      Scaled{"Thz", 1e12, "hz"},
                             Scaled{"nsecond", 1, "ns"},    Scaled{"us", 1e3, "ns"},       Scaled{"usecond", 1e3, "ns"},
                             Scaled{"ms", 1e6, "ns"},       Scaled{"msecond", 1e6, "ns"},  Scaled{"s", 1e9, "ns"},
                             Scaled{"sec", 1e9, "ns"},      Scaled{"second", 1e9, "ns"}};

constexpr std::array kPerTime{Scaled{"second", 1, "s"},    Scaled{"sec", 1, "s"},       Scaled{"msecond", 1e3, "s"},
                              Scaled{"ms", 1e3, "s"},      Scaled{"usecond", 1e6, "s"}, Scaled{"us", 1e6, "s"},
                              Scaled{"nsecond", 1e9, "s"}, Scaled{"ns", 1e9, "s"}};

}  // namespace

ValueKind parse_value(std::string_view text, double& value) {
  if (const std::size_t instances = text.find(" ("); instances != std::string_view::npos && instances > 0)
    text = text.substr(0, instances);
  // Most values are small whole numbers with or without commas.
  std::int64_t whole = 0;
  std::size_t run = 0, at = 0;
  bool grouped = false;
  constexpr std::size_t kFitting = 18;  // digits that fit whatever they are
  for (; at < text.size() && at < kFitting; ++at) {
    const char c = text[at];
    if (is_digit(c)) {
      whole = whole * 10 + (c - '0');
      ++run;
    } else if (c == ',' && (grouped ? run == 3 : run >= 1 && run <= 3)) {
      grouped = true;
      run = 0;
    } else {
      break;
    }
  }
  if (at == text.size() && at > 0 && (!grouped || run == 3)) {
    value = static_cast<double>(whole);
    return ValueKind::kNumber;
  }
  return is_absent(text) ? ValueKind::kAbsent : parse_marked(text, value);
}

Unit base_unit(std::string_view printed) {
  const std::size_t slash = printed.find('/');
  Unit unit{1, std::string(printed.substr(0, slash))};
  for (const Scaled& scaled : kScaled) {
    if (scaled.printed == unit.name) {
      unit = {scaled.factor, std::string(scaled.base)};
      break;
    }
  }
  if (slash == std::string_view::npos) return unit;
  std::string_view per = printed.substr(slash + 1);
  for (const Scaled& scaled : kPerTime) {
    if (scaled.printed == per) {
      unit.factor *= scaled.factor;
      per = scaled.base;
      break;
    }
  }
  if (unit.name == "cycle" && per == "s") return {unit.factor, "hz"};
  unit.name += "/" + std::string(per);
  return unit;
}

bool parse_triple(std::string_view text, std::int32_t (&values)[3]) {
  if (!text.starts_with('(')) return false;
  text.remove_prefix(1);
  for (int i = 0; i < 3; ++i) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), values[i]);
    if (failure != std::errc{} || end == text.data() + text.size() || *end != (i < 2 ? ',' : ')')) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  return true;
}

}  // namespace llmprof::importers::ncu

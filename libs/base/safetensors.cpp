#include "base/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::base {
namespace {

struct ElementType {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr ElementType kTypes[] = {{"F64", 8},  {"F32", 4},     {"F16", 2},     {"BF16", 2},    {"I64", 8}, {"I32", 4},
                                  {"I16", 2},  {"I8", 1},      {"U8", 1},      {"U16", 2},     {"U32", 4}, {"U64", 8},
                                  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"C64", 8}};

constexpr std::size_t kMostDimensions = 16;
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kFormat = "a safetensors file";  // as recognise() says it

std::string shown(std::string_view name) { return shorten(printable(name), 100); }

// Takes the header piece by piece from the JSON parser and stops at the first broken rule, so that no header, however
// made, costs more memory or time than its length. Returning false stops the parser.
class HeaderReader final : public Json::json_sax_t {
 public:
  HeaderReader(std::string_view where, std::size_t most_tensors) : where_(where), most_tensors_(most_tensors) {}

  Result<std::vector<SafetensorsEntry>> take(std::string_view header) {
    if (header.empty() || header.front() != '{') break_rule("header", "does not begin with '{'");
    if (!error_) return std::move(error_.error());
    Json::sax_parse(header, this);
    if (!error_) return std::move(error_.error());
    return std::move(entries_);
  }

  bool null() override { return other_value(); }
  bool boolean(bool) override { return other_value(); }
  bool number_float(double, const std::string&) override { return other_value(); }
  bool number_integer(std::int64_t) override { return other_value(); }
  bool binary(Json::binary_t&) override { return other_value(); }

  bool number_unsigned(std::uint64_t value) override {
    if (depth_ != 3 || in_metadata()) return other_value();
    if (key_ == "data_offsets") offsets_.push_back(value);
    if (key_ == "shape") return add_dimension(value);
    return offsets_.size() <= 2 || break_rule(entry_.name, "data_offsets are not two non-negative integers");
  }

  bool string(std::string& value) override {
    if (depth_ != 2) return other_value();
    if (in_metadata()) return true;
    if (key_ == "dtype") entry_.type = value;
    return true;
  }

  bool key(std::string& value) override {
    auto& seen = depth_ == 1 ? names_ : fields_;
    if (!seen.insert(value).second) return break_rule(value, "duplicate key");
    if (names_.size() > most_tensors_)
      return break_rule("header", fmt::format("has more than {} tensors", most_tensors_));
    if (depth_ == 1) entry_ = {.name = value};
    key_ = value;
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ >= 2) return too_deep();
    if (depth_ == 1) {
      fields_.clear();
      offsets_.clear();
      count_ = 1;
      has_shape_ = false;
    }
    ++depth_;
    return true;
  }

  bool end_object() override {
    --depth_;
    return depth_ == 0 || in_metadata() || finish_entry();
  }

  bool start_array(std::size_t) override {
    if (depth_ == 1) return not_an_object();
    if (depth_ > 2 || in_metadata()) return too_deep();
    has_shape_ = has_shape_ || key_ == "shape";
    ++depth_;
    return true;
  }

  bool end_array() override {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return break_rule("header", "is not valid UTF-8 JSON");
  }

 private:
  bool in_metadata() const { return entry_.name == kMetadata; }

  bool break_rule(std::string_view tensor, std::string_view rule) {
    error_ = Error{ErrorCode::kCorruptInput, fmt::format("{}: {}: {}", where_, shown(tensor), rule), ""};
    return false;
  }
  bool too_deep() { return in_metadata() ? not_an_object() : break_rule("header", "is nested too deeply"); }
  bool not_an_object() {
    return break_rule(entry_.name, in_metadata() ? "is not an object of strings" : "is not an object");
  }

  // A value that has no place here, unless it belongs to a field that nobody reads.
  bool other_value() {
    if (depth_ == 1 || in_metadata()) return not_an_object();
    if (depth_ == 2) return true;  // a missing field is reported at the end of the tensor
    if (key_ == "shape") return break_rule(entry_.name, "shape has something else than non-negative integers");
    if (key_ == "data_offsets") return break_rule(entry_.name, "data_offsets are not two non-negative integers");
    return true;
  }

  bool add_dimension(std::uint64_t value) {
    if (entry_.shape.size() == kMostDimensions) {
      return break_rule(entry_.name, fmt::format("shape has more than {} dimensions", kMostDimensions));
    }
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value > kMost || __builtin_mul_overflow(count_, value, &count_) || count_ > kMost) {
      return break_rule(entry_.name, "product of the shape overflows");
    }
    entry_.shape.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool finish_entry() {
    if (entry_.type.empty()) return break_rule(entry_.name, "has no dtype");
    if (!has_shape_) return break_rule(entry_.name, "has no shape");
    if (offsets_.size() != 2) return break_rule(entry_.name, "data_offsets are not two non-negative integers");
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    if (entry_.end < entry_.begin) return break_rule(entry_.name, "ends before it begins");
    if (!check_size()) return false;
    entries_.push_back(std::move(entry_));
    return true;
  }

  bool check_size() {
    const auto* const known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                           [&](const ElementType& type) { return type.name == entry_.type; });
    if (known == std::end(kTypes)) return true;  // newer than this reader: its size is what the offsets say
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count_, known->bytes, &bytes)) {
      return break_rule(entry_.name, "size in bytes overflows");
    }
    const std::uint64_t given = entry_.end - entry_.begin;
    return bytes == given ||
           break_rule(entry_.name, fmt::format("shape needs {} bytes, offsets give {}", bytes, given));
  }

  std::string_view where_;
  std::size_t most_tensors_;
  Result<void> error_;
  int depth_ = 0;  // 1: in the header, 2: in a tensor, 3: in one of its lists
  std::set<std::string, std::less<>> names_, fields_;
  std::string key_;
  SafetensorsEntry entry_;  // being read; its name also while it is __metadata__
  std::vector<std::uint64_t> offsets_;
  std::uint64_t count_ = 1;  // product of the shape so far
  bool has_shape_ = false;
  std::vector<SafetensorsEntry> entries_;
};

// Sorted by offset, the tensors must follow each other without overlap or hole, from 0 to the end of the file.
Result<void> check_layout(const std::vector<SafetensorsEntry>& sorted, std::uint64_t data_bytes,
                          std::string_view where) {
  const auto broken = [&](std::string_view tensor, std::string_view rule) {
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: {}: {}", where, shown(tensor), rule), ""};
  };
  std::uint64_t expected = 0;
  for (const SafetensorsEntry& entry : sorted) {
    if (entry.begin < expected) return broken(entry.name, "overlaps the tensor before it");
    if (entry.begin > expected) return broken(entry.name, "leaves a hole before it");
    expected = entry.end;
  }
  if (expected != data_bytes) {
    return broken("header", fmt::format("tensors end at byte {}, the data has {}", expected, data_bytes));
  }
  return {};
}

}  // namespace

std::int64_t SafetensorsEntry::count() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes,
                                                               std::string_view where, std::size_t most_tensors) {
  LLMPROF_LET(std::vector<SafetensorsEntry> entries, HeaderReader(where, most_tensors).take(header));
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  LLMPROF_TRY(check_layout(entries, data_bytes, where));
  return entries;
}

Result<SafetensorsHeader> read_safetensors_header(const RegularFile& file) {
  LLMPROF_LET(const std::string beginning, file.beginning(64));
  if (beginning.empty()) return wrong_content(file.path(), beginning, kFormat);
  if (beginning.size() < 8) {
    return Error{ErrorCode::kCorruptInput, file.path() + ": shorter than the 8 bytes of header length",
                 "a safetensors file was expected"};
  }
  std::uint64_t header_bytes = 0;  // little-endian, as this machine
  std::memcpy(&header_bytes, beginning.data(), sizeof(header_bytes));
  if (header_bytes < 2 || header_bytes > kMostHeaderBytes) {
    const std::string_view found = recognise(beginning);
    if (!found.empty() && found != kFormat) return wrong_content(file.path(), beginning, kFormat);
    return Error{
        ErrorCode::kCorruptInput,
        fmt::format("{}: header length {} is not between 2 and {}", file.path(), header_bytes, kMostHeaderBytes),
        "is this a safetensors file?"};
  }
  if (header_bytes > file.bytes() - 8) {
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: header length {} exceeds the file", file.path(), header_bytes), ""};
  }
  std::string text(header_bytes, '\0');
  LLMPROF_TRY(file.read_at(8, text.data(), header_bytes));
  SafetensorsHeader header{.entries = {}, .data_offset = 8 + header_bytes};
  LLMPROF_LET(header.entries, parse_safetensors_header(text, file.bytes() - header.data_offset, file.path()));
  return header;
}

}  // namespace llmprof::base

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "workload/safetensors.h"

namespace llmprof::workload {
namespace {

struct ElementType {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr ElementType kTypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4},
                                  {"I16", 2}, {"I8", 1},  {"U8", 1},  {"U16", 2},  {"U32", 4}, {"U64", 8},
                                  {"BOOL", 1}};

// What the file says, not what the parser makes of it: a repeated key silently replaces the first one otherwise, and
// nesting beyond tensor -> shape has no meaning here.
struct Scan {
  std::vector<std::set<std::string>> keys;
  std::string duplicate;
  bool too_deep = false;
};

base::Json parse_strictly(std::string_view header, Scan& scan) {
  using Event = base::Json::parse_event_t;
  const auto watch = [&scan](int depth, Event event, base::Json& parsed) {
    if (event == Event::object_start) scan.keys.emplace_back();
    if (event == Event::object_end) scan.keys.pop_back();
    if (event == Event::key) {
      const auto key = parsed.get<std::string>();
      if (!scan.keys.back().insert(key).second && scan.duplicate.empty()) scan.duplicate = key;
    }
    if (depth > 3) scan.too_deep = true;
    return depth <= 3;  // false: the value is dropped, so deep nesting costs no memory
  };
  return base::Json::parse(header, watch, /*allow_exceptions=*/false);
}

class HeaderReader {
 public:
  HeaderReader(std::uint64_t data_bytes, std::string_view where) : data_bytes_(data_bytes), where_(where) {}

  Result<std::vector<SafetensorsEntry>> read(std::string_view header) {
    if (header.empty() || header.front() != '{') return broken("header", "does not begin with '{'");
    Scan scan;
    const base::Json json = parse_strictly(header, scan);
    if (scan.too_deep) return broken("header", "is nested too deeply");
    if (json.is_discarded() || !json.is_object()) return broken("header", "is not valid UTF-8 JSON");
    if (!scan.duplicate.empty()) return broken(scan.duplicate, "duplicate key");
    if (json.size() > kMostTensors) return broken("header", fmt::format("has more than {} tensors", kMostTensors));
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") {
        LLMPROF_TRY(check_metadata(value));
        continue;
      }
      LLMPROF_LET(SafetensorsEntry entry, read_entry(name, value));
      entries_.push_back(std::move(entry));
    }
    LLMPROF_TRY(check_layout());
    return std::move(entries_);
  }

 private:
  Error broken(std::string_view tensor, std::string_view rule) const {
    return {ErrorCode::kCorruptInput, fmt::format("{}: {}: {}", where_, tensor, rule), ""};
  }

  Result<void> check_metadata(const base::Json& value) const {
    const bool strings = value.is_object() && std::all_of(value.begin(), value.end(),
                                                          [](const base::Json& item) { return item.is_string(); });
    if (!strings) return broken("__metadata__", "is not an object of strings");
    return {};
  }

  Result<SafetensorsEntry> read_entry(const std::string& name, const base::Json& value) const {
    if (!value.is_object()) return broken(name, "is not an object");
    const base::Json type = value.value("dtype", base::Json());
    const base::Json shape = value.value("shape", base::Json());
    const base::Json offsets = value.value("data_offsets", base::Json());
    if (!type.is_string()) return broken(name, "has no dtype");
    if (!shape.is_array()) return broken(name, "has no shape");
    const bool pair = offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
                      offsets[1].is_number_unsigned();
    if (!pair) return broken(name, "data_offsets are not two non-negative integers");
    SafetensorsEntry entry{.name = name, .type = type.get<std::string>(), .begin = offsets[0].get<std::uint64_t>(),
                           .end = offsets[1].get<std::uint64_t>()};
    LLMPROF_TRY(read_shape(shape, entry));
    return entry;
  }

  Result<void> read_shape(const base::Json& shape, SafetensorsEntry& entry) const {
    std::uint64_t count = 1;
    for (const base::Json& size : shape) {
      if (!size.is_number_unsigned()) return broken(entry.name, "shape has something else than non-negative integers");
      const auto value = size.get<std::uint64_t>();
      if (__builtin_mul_overflow(count, value, &count) || count > INT64_MAX || value > INT64_MAX) {
        return broken(entry.name, "product of the shape overflows");
      }
      entry.shape.push_back(static_cast<std::int64_t>(value));
    }
    if (entry.end < entry.begin) return broken(entry.name, "ends before it begins");
    const auto* const known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                           [&](const ElementType& type) { return type.name == entry.type; });
    if (known == std::end(kTypes)) return {};  // newer than this reader: its size is what the offsets say
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, known->bytes, &bytes)) return broken(entry.name, "size in bytes overflows");
    if (bytes != entry.end - entry.begin) {
      return broken(entry.name, fmt::format("shape needs {} bytes, offsets give {}", bytes, entry.end - entry.begin));
    }
    return {};
  }

  // Sorted by offset, the tensors must follow each other without overlap or hole, from 0 to the end of the file.
  Result<void> check_layout() {
    std::sort(entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t expected = 0;
    for (const SafetensorsEntry& entry : entries_) {
      if (entry.begin < expected) return broken(entry.name, "overlaps the tensor before it");
      if (entry.begin > expected) return broken(entry.name, "leaves a hole before it");
      expected = entry.end;
    }
    if (expected != data_bytes_) {
      return broken("header", fmt::format("tensors end at byte {}, the data has {}", expected, data_bytes_));
    }
    return {};
  }

  std::uint64_t data_bytes_;
  std::string_view where_;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace

std::int64_t SafetensorsEntry::count() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes,
                                                               std::string_view where) {
  return HeaderReader(data_bytes, where).read(header);
}

}  // namespace llmprof::workload

#include "model/checkpoint/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include "base/errors.h"
#include "base/file.h"
#include "base/text_table.h"
#include "model/checkpoint/tensor_list.h"

namespace llmprof::model {

namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kOldest = 2, kNewest = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMostNameBytes = 63;  // of a tensor
constexpr std::uint32_t kMostSizes = 4;
constexpr auto kMostValues = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

enum ValueType : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kArray, kU64, kI64, kF64, kEnd };
constexpr std::array<unsigned, kEnd> kBytesOf{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

std::string shown(std::string_view name) { return base::shorten(base::printable(name), 80); }

bool is_whole(std::uint32_t type) { return type != kF32 && type != kF64 && type != kText && type != kArray; }

std::int64_t sign_extended(std::uint64_t bits, std::uint32_t type) {
  switch (type) {
    case kI8:
      return static_cast<std::int8_t>(bits);
    case kI16:
      return static_cast<std::int16_t>(bits);
    case kI32:
      return static_cast<std::int32_t>(bits);
    default:
      return static_cast<std::int64_t>(bits);
  }
}

std::uint64_t padded(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

class HeaderReader {
 public:
  explicit HeaderReader(const base::RegularFile& file) : in_(file), file_bytes_(file.bytes()) {}

  Result<GgufHeader> read() {
    std::uint64_t tensors = 0, keys = 0;
    read_counts(tensors, keys);
    for (std::uint64_t i = 0; i < keys && in_.ok(); ++i) read_key();
    for (std::uint64_t i = 0; i < tensors && in_.ok(); ++i) read_tensor();
    if (in_.ok()) check_data();
    if (!in_.ok()) return *in_.error();
    return std::move(header_);
  }

 private:
  void read_counts(std::uint64_t& tensors, std::uint64_t& keys) {
    in_.skip(kMagic.size());
    header_.version = in_.u32();
    if (!in_.ok() || !check_version()) return;
    tensors = in_.u64();
    keys = in_.u64();
    if (tensors > kMostGgufTensors)
      in_.reject(fmt::format("{} tensors, at most {} are read", tensors, kMostGgufTensors));
    if (keys > kMostGgufKeys) in_.reject(fmt::format("{} keys, at most {} are read", keys, kMostGgufKeys));
  }

  bool check_version() {
    const std::uint32_t version = header_.version;
    if (version >= kOldest && version <= kNewest) return true;
    const std::uint32_t swapped = __builtin_bswap32(version);
    if (swapped > 0 && swapped <= 0xFFFF && version > 0xFFFF) {
      in_.reject(fmt::format("GGUF version {} in big-endian order; only little-endian files are read", swapped),
                 "convert it with gguf_convert_endian.py of llama.cpp");
    } else if (version > kNewest) {
      in_.reject(fmt::format("GGUF version {}, the newest known is {}", version, kNewest), "update llmprof");
    } else {
      in_.reject(fmt::format("GGUF version {} is not read", version),
                 "convert the model again with a current llama.cpp");
    }
    return false;
  }

  // ---- metadata ----

  void read_key() {
    const std::uint64_t length = in_.u64();
    if (in_.ok() && length == 0) in_.reject("empty key");
    if (length > kMostGgufKeyBytes)
      in_.reject(fmt::format("key of {} bytes, at most {} are read", length, kMostGgufKeyBytes));
    if (!in_.ok()) return;
    const std::string key = in_.text(length);
    if (header_.metadata.contains(key)) in_.reject(fmt::format("duplicate key {}", shown(key)));
    const std::uint32_t type = in_.u32();
    if (type >= kEnd) in_.reject(fmt::format("{}: type {} of a value is not known", shown(key), type));
    if (!in_.ok()) return;
    GgufValue value = read_value(key, type);
    if (key == kAlignmentKey) set_alignment(type, value);
    if (in_.ok()) header_.metadata.emplace(key, std::move(value));
  }

  GgufValue read_value(const std::string& key, std::uint32_t type) {
    if (type == kText) return read_text();
    if (type == kArray) return read_array(key);
    const std::uint64_t bits = in_.unsigned_of(kBytesOf[type]);
    if (type == kBool) return bits != 0;
    if (type == kF32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    if (type == kF64) return std::bit_cast<double>(bits);
    if (type == kU64 && bits > kMostValues) return static_cast<double>(bits);
    return sign_extended(bits, type);
  }

  GgufValue read_text() {
    const std::uint64_t length = in_.u64();
    if (length <= kMostGgufKeptText) return in_.text(length);
    in_.skip(length);
    return std::monostate{};
  }

  GgufValue read_array(const std::string& key) {
    const std::uint32_t type = in_.u32();
    const std::uint64_t count = in_.u64();
    if (!in_.ok()) return {};
    if (type == kArray) in_.reject(fmt::format("{}: array of arrays", shown(key)));
    if (type >= kEnd) in_.reject(fmt::format("{}: type {} of an array is not known", shown(key), type));
    if (count > kMostGgufArray)
      in_.reject(fmt::format("{}: array of {}, at most {} are read", shown(key), count, kMostGgufArray));
    if (!in_.ok()) return {};
    GgufArray array{.count = count, .numbers = {}};
    if (type == kText) {
      for (std::uint64_t i = 0; i < count && in_.ok(); ++i) in_.skip(in_.u64());
    } else if (!is_whole(type) || count > kMostGgufKeptNumbers) {
      in_.skip(count * kBytesOf[type]);
    } else {
      for (std::uint64_t i = 0; i < count && in_.ok(); ++i) {
        array.numbers.push_back(sign_extended(in_.unsigned_of(kBytesOf[type]), type));
      }
    }
    return array;
  }

  void set_alignment(std::uint32_t type, const GgufValue& value) {
    if (type != kU32) return in_.reject(fmt::format("{}: not a 32-bit number", kAlignmentKey));
    alignment_ = static_cast<std::uint64_t>(std::get<std::int64_t>(value));
    if (!std::has_single_bit(alignment_)) {
      in_.reject(fmt::format("{}: {} is not a power of two", kAlignmentKey, alignment_));
    }
  }

  // ---- tensors ----

  void reject_tensor(const GgufTensor& tensor, std::string_view rule) {
    in_.reject(fmt::format("tensor {}: {}", shown(tensor.name), rule));
  }

  void read_tensor() {
    GgufTensor tensor;
    const std::uint64_t length = in_.u64();
    if (in_.ok() && (length == 0 || length > kMostNameBytes)) {
      in_.reject(fmt::format("tensor name of {} bytes, 1 to {} are allowed", length, kMostNameBytes));
    }
    if (!in_.ok()) return;
    tensor.name = in_.text(length);
    if (!names_.insert(tensor.name).second) reject_tensor(tensor, "duplicate name");
    read_sizes(tensor);
    const std::uint32_t type = in_.u32();
    tensor.offset = in_.u64();
    if (!in_.ok()) return;
    tensor.type = find_ggml_type(type);
    if (tensor.type == nullptr) return reject_tensor(tensor, fmt::format("type {} is not known", type));
    if (!set_bytes(tensor) || !check_offset(tensor)) return;
    header_.tensors.push_back(std::move(tensor));
  }

  void read_sizes(GgufTensor& tensor) {
    const std::uint32_t sizes = in_.u32();
    if (in_.ok() && (sizes == 0 || sizes > kMostSizes)) {
      reject_tensor(tensor, fmt::format("{} dimensions, 1 to {} are allowed", sizes, kMostSizes));
    }
    tensor.values = 1;
    for (std::uint32_t i = 0; i < sizes && in_.ok(); ++i) {
      const std::uint64_t size = tensor.sizes.emplace_back(in_.u64());
      if (size > kMostValues) {
        reject_tensor(tensor, fmt::format("size {} is negative", static_cast<std::int64_t>(size)));
      } else if (__builtin_mul_overflow(tensor.values, size, &tensor.values) || tensor.values > kMostValues) {
        reject_tensor(tensor, "product of its sizes overflows");
      }
    }
  }

  bool set_bytes(GgufTensor& tensor) {
    const auto [id, name, values, bytes] = *tensor.type;
    if (tensor.values == 0) ++header_.empty_tensors;
    if (tensor.sizes.front() % values != 0) {
      reject_tensor(tensor, fmt::format("rows of {} values are not whole blocks of {}: {} each", tensor.sizes.front(),
                                        name, values));
    } else if (__builtin_mul_overflow(tensor.values / values, std::uint64_t{bytes}, &tensor.bytes) ||
               tensor.bytes > kMostValues) {
      reject_tensor(tensor, "size in bytes overflows");
    }
    return in_.ok();
  }

  // Tensors lie one after the other in the order of the list, each padded to the alignment.
  bool check_offset(const GgufTensor& tensor) {
    if (tensor.offset != data_bytes_) {
      reject_tensor(tensor,
                    fmt::format("offset {}, expected {} (alignment {})", tensor.offset, data_bytes_, alignment_));
    } else if (padded(tensor.bytes, alignment_) > kMostValues - data_bytes_) {
      reject_tensor(tensor, "sum of the sizes overflows");
    } else {
      data_end_ = tensor.offset + tensor.bytes;
      data_bytes_ += padded(tensor.bytes, alignment_);
    }
    return in_.ok();
  }

  // The padding of the last tensor may be missing.
  void check_data() {
    header_.data_offset = padded(in_.position(), alignment_);
    if (header_.tensors.empty()) return;
    const std::uint64_t there = file_bytes_ > header_.data_offset ? file_bytes_ - header_.data_offset : 0;
    if (data_end_ > there) {
      reject_tensor(header_.tensors.back(),
                    fmt::format("ends at byte {} of the data, the file has {}", data_end_, there));
    }
    if (there > data_bytes_) header_.beyond_bytes = there - data_bytes_;
  }

  ByteReader in_;
  std::uint64_t file_bytes_;
  GgufHeader header_;
  std::set<std::string, std::less<>> names_;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::uint64_t data_bytes_ = 0, data_end_ = 0;  // with and without the padding of the last tensor
};

// A GGUF model in one file or in several: NAME-00001-of-00003.gguf. Only the first has the model's metadata.

namespace fs = std::filesystem;

constexpr std::int64_t kMostParts = 9999;

struct PartName {
  std::string stem;  // with its folder
  std::int64_t number = 0, count = 0;
};

std::optional<std::int64_t> five_digits(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && text.size() == 5 && number > 0;
  return whole ? std::optional(number) : std::nullopt;
}

// STEM-00001-of-00003.gguf
std::optional<PartName> part_name(const std::string& path) {
  constexpr std::string_view kEnd = ".gguf", kOf = "-of-";
  constexpr std::size_t kTail = 1 + 5 + kOf.size() + 5;  // "-00001-of-00003"
  if (!path.ends_with(kEnd) || path.size() <= kTail + kEnd.size()) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kEnd.size() - kTail, kTail);
  if (tail.front() != '-' || tail.substr(6, kOf.size()) != kOf) return std::nullopt;
  const auto number = five_digits(tail.substr(1, 5)), count = five_digits(tail.substr(6 + kOf.size()));
  if (!number || !count) return std::nullopt;
  return PartName{path.substr(0, path.size() - kEnd.size() - kTail), *number, *count};
}

std::int64_t whole_or(const GgufHeader& header, std::string_view key, std::int64_t fallback) {
  const auto found = header.metadata.find(key);
  if (found == header.metadata.end()) return fallback;
  const auto* const number = std::get_if<std::int64_t>(&found->second);
  return number != nullptr ? *number : fallback;
}

Result<GgufHeader> read_header(const std::string& path) {
  LLMPROF_LET(const base::RegularFile file, base::RegularFile::open(path));
  return read_gguf_header(file);
}

Result<void> add(TensorList& list, const GgufHeader& header, const std::string& path) {
  const std::string name = fs::path(path).filename();
  list.files.push_back(name);
  for (const GgufTensor& tensor : header.tensors) {
    list.tensors.push_back(
        {tensor.name, std::string(tensor.type->name), static_cast<std::int64_t>(tensor.values), tensor.bytes});
  }
  if (list.tensors.size() > kMostGgufTensors) {
    return corrupt_error("{}: the parts have more than {} tensors", path, kMostGgufTensors);
  }
  if (header.beyond_bytes > 0) {
    list.notes.push_back(fmt::format("{}: {} bytes after the last tensor", name, header.beyond_bytes));
  }
  if (header.empty_tensors > 0)
    list.notes.push_back(fmt::format("{}: {} tensors have no values", name, header.empty_tensors));
  return {};
}

Result<void> check_names(const TensorList& list, const std::string& path) {
  std::set<std::string_view> names;
  for (const StoredTensor& tensor : list.tensors) {
    if (names.insert(tensor.name).second) continue;
    return corrupt_error("{}: tensor {} is in two parts", path, base::printable(tensor.name));
  }
  return {};
}

Result<void> add_parts(GgufModel& model, const PartName& part) {
  std::int64_t tensors = static_cast<std::int64_t>(model.first.tensors.size());
  for (std::int64_t number = 2; number <= part.count; ++number) {
    const std::string path = fmt::format("{}-{:05}-of-{:05}.gguf", part.stem, number, part.count);
    LLMPROF_LET(const GgufHeader header, read_header(path));
    if (whole_or(header, "split.no", -1) != number - 1) {
      return Error{ErrorCode::kCorruptInput, fmt::format("{}: split.no is not {}", path, number - 1),
                   "parts of different models?"};
    }
    tensors += static_cast<std::int64_t>(header.tensors.size());
    LLMPROF_TRY(add(model.list, header, path));
  }
  const std::int64_t announced = whole_or(model.first, "split.tensors.count", tensors);
  if (announced != tensors) {
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: split.tensors.count is {}, the parts have {}", part.stem, announced, tensors),
                 "parts of different models?"};
  }
  return {};
}

// Numbers and block layouts: ggml.h and ggml-common.h of llama.cpp (April 2026). The sums name the parts of a block:
// scales and minima first, then the packed values. Missing numbers were removed from the format.
constexpr std::array kTypes{
    GgmlType{0, "F32", 1, 4},
    GgmlType{1, "F16", 1, 2},
    GgmlType{2, "Q4_0", 32, 2 + 16},
    GgmlType{3, "Q4_1", 32, 2 + 2 + 16},
    GgmlType{6, "Q5_0", 32, 2 + 4 + 16},
    GgmlType{7, "Q5_1", 32, 2 + 2 + 4 + 16},
    GgmlType{8, "Q8_0", 32, 2 + 32},
    GgmlType{9, "Q8_1", 32, 2 + 2 + 32},
    GgmlType{10, "Q2_K", 256, 2 + 2 + 16 + 64},
    GgmlType{11, "Q3_K", 256, 2 + 12 + 32 + 64},
    GgmlType{12, "Q4_K", 256, 2 + 2 + 12 + 128},
    GgmlType{13, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    GgmlType{14, "Q6_K", 256, 2 + 16 + 64 + 128},
    GgmlType{15, "Q8_K", 256, 4 + 32 + 256},
    GgmlType{16, "IQ2_XXS", 256, 2 + 64},
    GgmlType{17, "IQ2_XS", 256, 2 + 8 + 64},
    GgmlType{18, "IQ3_XXS", 256, 2 + 96},
    GgmlType{19, "IQ1_S", 256, 2 + 16 + 32},
    GgmlType{20, "IQ4_NL", 32, 2 + 16},
    GgmlType{21, "IQ3_S", 256, 2 + 4 + 8 + 32 + 64},
    GgmlType{22, "IQ2_S", 256, 2 + 8 + 8 + 64},
    GgmlType{23, "IQ4_XS", 256, 2 + 2 + 4 + 128},
    GgmlType{24, "I8", 1, 1},
    GgmlType{25, "I16", 1, 2},
    GgmlType{26, "I32", 1, 4},
    GgmlType{27, "I64", 1, 8},
    GgmlType{28, "F64", 1, 8},
    GgmlType{29, "IQ1_M", 256, 8 + 16 + 32},
    GgmlType{30, "BF16", 1, 2},
    GgmlType{34, "TQ1_0", 256, 2 + 4 + 48},
    GgmlType{35, "TQ2_0", 256, 2 + 64},
    GgmlType{39, "MXFP4", 32, 1 + 16},
    GgmlType{40, "NVFP4", 64, 4 + 32},
    GgmlType{41, "Q1_0", 128, 2 + 16},
};

}  // namespace

Result<GgufHeader> read_gguf_header(const base::RegularFile& file) {
  LLMPROF_LET(const std::string beginning, file.beginning(64));
  if (!std::string_view(beginning).starts_with(kMagic))
    return base::wrong_content(file.path(), beginning, "a GGUF file");
  return HeaderReader(file).read();
}

Result<GgufModel> list_gguf(const std::string& path) {
  const std::optional<PartName> part = part_name(path);
  const bool other_part = part && part->number > 1;
  const std::string first = other_part ? fmt::format("{}-00001-of-{:05}.gguf", part->stem, part->count) : path;
  GgufModel model;
  model.list.format = "GGUF";
  LLMPROF_LET(model.first, read_header(first));
  LLMPROF_TRY(add(model.list, model.first, first));
  const std::int64_t count = whole_or(model.first, "split.count", 1);
  if (count == 0 || count == 1) return model;
  if (count < 0 || count > kMostParts) {
    return corrupt_error("{}: split.count: {} is not from 1 to {}", first, count, kMostParts);
  }
  if (!part || part->count != count || whole_or(model.first, "split.no", 0) != 0) {
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: is a part of {}, and not named NAME-00001-of-{:05}.gguf", first, count, count),
                 "the parts of a split model are found by their names"};
  }
  LLMPROF_TRY(add_parts(model, *part));
  LLMPROF_TRY(check_names(model.list, first));
  return model;
}

std::span<const GgmlType> ggml_types() { return kTypes; }

const GgmlType* find_ggml_type(std::uint32_t id) {
  const auto* const found = std::ranges::find(kTypes, id, &GgmlType::id);
  return found != kTypes.end() ? found : nullptr;
}

constexpr std::uint64_t kBufferBytes = 256 << 10;

void ByteReader::reject(std::string_view rule, std::string hint) {
  if (error_) return;
  error_ =
      Error{ErrorCode::kCorruptInput, fmt::format("{}: byte {}: {}", file_.path(), position_, rule), std::move(hint)};
}

bool ByteReader::fill() {
  buffer_.resize(std::min(kBufferBytes, remaining()));
  buffer_begin_ = position_;
  Result<void> read = file_.read_at(position_, buffer_.data(), buffer_.size());
  if (!read && !error_) error_ = std::move(read.error());
  return ok();
}

bool ByteReader::take(void* out, std::uint64_t bytes) {
  if (!ok()) return false;
  if (bytes > remaining()) {
    reject(fmt::format("the file ends, {} bytes more are needed", bytes - remaining()));
    return false;
  }
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    if (position_ - buffer_begin_ >= buffer_.size() && !fill()) return false;
    const std::uint64_t at = position_ - buffer_begin_;
    const std::uint64_t count = std::min<std::uint64_t>(bytes, buffer_.size() - at);
    std::memcpy(to, buffer_.data() + at, count);
    to += count;
    position_ += count;
    bytes -= count;
  }
  return true;
}

template <class T>
T ByteReader::number() {
  T value = 0;  // little-endian, as this machine
  return take(&value, sizeof(value)) ? value : 0;
}
template std::uint8_t ByteReader::number();
template std::uint32_t ByteReader::number();
template std::uint64_t ByteReader::number();

std::uint64_t ByteReader::unsigned_of(unsigned bytes) {
  std::uint64_t value = 0;
  return take(&value, bytes) ? value : 0;
}

std::string ByteReader::text(std::uint64_t bytes) {
  if (bytes > remaining()) {
    reject(fmt::format("a text of {} bytes does not fit into the rest of the file", bytes));
    return "";
  }
  std::string text(bytes, '\0');
  return take(text.data(), bytes) ? text : "";
}

void ByteReader::skip(std::uint64_t bytes) {
  if (!ok()) return;
  if (bytes > remaining()) {
    reject(fmt::format("{} bytes are announced, the file ends after {}", bytes, remaining()));
    return;
  }
  position_ += bytes;
}

}  // namespace llmprof::model

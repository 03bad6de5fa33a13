#include "model/checkpoint/gguf.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include "base/text_table.h"
#include "model/checkpoint/byte_reader.h"

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

}  // namespace

Result<GgufHeader> read_gguf_header(const base::RegularFile& file) {
  LLMPROF_LET(const std::string beginning, file.beginning(64));
  if (!std::string_view(beginning).starts_with(kMagic))
    return base::wrong_content(file.path(), beginning, "a GGUF file");
  return HeaderReader(file).read();
}

}  // namespace llmprof::model

// A GGUF model in one file or in several: NAME-00001-of-00003.gguf. Only the first has the model's metadata.

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text_table.h"
#include "model/checkpoint/tensor_list.h"

namespace llmprof::model {
namespace {

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
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: the parts have more than {} tensors", path, kMostGgufTensors), ""};
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
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: tensor {} is in two parts", path, base::printable(tensor.name)), ""};
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

}  // namespace

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
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: split.count: {} is not from 1 to {}", first, count, kMostParts), ""};
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

}  // namespace llmprof::model

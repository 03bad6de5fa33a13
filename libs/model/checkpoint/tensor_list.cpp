#include "model/checkpoint/tensor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/safetensors.h"
#include "base/text_table.h"

namespace llmprof::model {

namespace {

namespace fs = std::filesystem;

std::string in_folder_of(const std::string& path, const std::string& name) {
  return (fs::path(path).parent_path() / name).string();
}

Result<std::vector<StoredTensor>> tensors_of(const std::string& path) {
  LLMPROF_LET(const base::RegularFile file, base::RegularFile::open(path));
  LLMPROF_LET(const base::SafetensorsHeader header, base::read_safetensors_header(file));
  std::vector<StoredTensor> tensors;
  for (const base::SafetensorsEntry& entry : header.entries) {
    const std::uint64_t bytes = entry.end - entry.begin;
    // A type that this reader does not know may have any shape; a value takes a bit at least.
    const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, INT64_MAX / 8) * 8);
    tensors.push_back({entry.name, entry.type, std::min(entry.count(), most), bytes});
  }
  return tensors;
}

using NamesByFile = std::map<std::string, std::set<std::string_view>>;

NamesByFile by_file(const SafetensorsIndex& index) {
  NamesByFile files;
  for (const auto& [tensor, file] : index.file_of) files[file].insert(tensor);
  return files;
}

// What an index says of a file must be true.
Result<void> check_part(const std::set<std::string_view>& listed, const std::string& path,
                        const std::vector<StoredTensor>& tensors, TensorList& list) {
  std::set<std::string_view> there;
  for (const StoredTensor& tensor : tensors) there.insert(tensor.name);
  std::size_t found = 0;
  for (const std::string_view tensor : listed) {
    if (!there.contains(tensor)) {
      return Error{ErrorCode::kCorruptInput,
                   fmt::format("{}: no tensor {}, which the index says is in it", path,
                               base::shorten(base::printable(tensor), 80)),
                   "the files are of different versions, or the download is not complete"};
    }
    ++found;
  }
  if (there.size() > found) {
    list.notes.push_back(fmt::format("{}: {} tensors that the index does not list", fs::path(path).filename().string(),
                                     there.size() - found));
  }
  return {};
}

void names_only(const SafetensorsIndex& index, TensorList& list) {
  list.sizes_known = false;
  for (const auto& [tensor, file] : index.file_of) list.tensors.push_back({tensor, "", 0, 0});
}

std::string shown(std::string_view text) { return base::shorten(base::printable(text), 80); }

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.find('/') == std::string_view::npos && name.front() != '.' &&
         name.find('\\') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

// Takes the file piece by piece: its memory is that of the map, however the text is made.
class IndexReader final : public base::Json::json_sax_t {
 public:
  explicit IndexReader(std::string_view where) : where_(where) {}

  Result<SafetensorsIndex> take(std::string_view text) {
    base::Json::sax_parse(text, this);
    if (error_) return *error_;
    if (index_.file_of.empty()) return Error{ErrorCode::kCorruptInput, fmt::format("{}: no weight_map", where_), ""};
    return std::move(index_);
  }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool binary(base::Json::binary_t&) override { return value(); }
  bool number_integer(std::int64_t number) override { return size(static_cast<double>(number)); }
  bool number_unsigned(std::uint64_t number) override { return size(static_cast<double>(number)); }
  bool number_float(double number, const std::string&) override { return size(number); }

  bool string(std::string& text) override {
    if (!in_map()) return value();
    if (!is_plain_name(text)) {
      return reject(fmt::format("{}: \"{}\" is not a plain file name", shown(key_), shown(text)),
                    "an index may only name files in its own folder");
    }
    if (!index_.file_of.emplace(key_, text).second) return reject(fmt::format("{}: duplicate tensor", shown(key_)));
    return index_.file_of.size() <= base::kMostSafetensors ||
           reject(fmt::format("has more than {} tensors", base::kMostSafetensors));
  }

  bool key(std::string& name) override {
    if (depth_ == 1) section_ = name;
    key_ = name;
    return true;
  }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return reject("not a JSON object");
    return open();
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return reject(fmt::format("byte {}: not valid JSON", position));
  }

 private:
  bool in_map() const { return depth_ == 2 && section_ == "weight_map"; }

  bool reject(std::string_view rule, std::string hint = "") {
    error_ = Error{ErrorCode::kCorruptInput, fmt::format("{}: {}", where_, rule), std::move(hint)};
    return false;
  }
  bool value() {
    if (depth_ == 0) return reject("not a JSON object");
    if (section_ == "weight_map") return reject(fmt::format("{}: not the name of a file", shown(key_)));
    return true;  // of a field that nobody reads
  }
  bool size(double bytes) {
    const bool total = depth_ == 2 && section_ == "metadata" && key_ == "total_size";
    if (total && bytes > 0 && bytes < 1e18) index_.total_bytes = static_cast<std::uint64_t>(bytes);
    return value();
  }
  bool open() {
    if (depth_ >= 2 && section_ == "weight_map") return reject(fmt::format("{}: not the name of a file", shown(key_)));
    return ++depth_ <= 64 || reject("nested too deeply");
  }
  bool close() {
    --depth_;
    return true;
  }

  std::string_view where_;
  std::optional<Error> error_;
  int depth_ = 0;
  std::string section_, key_;
  SafetensorsIndex index_;
};

}  // namespace

Result<TensorList> list_safetensors(const std::string& path) {
  TensorList list{.format = "safetensors", .files = {fs::path(path).filename()}, .tensors = {}, .notes = {}};
  LLMPROF_LET(list.tensors, tensors_of(path));
  return list;
}

Result<TensorList> list_safetensors_index(const std::string& path) {
  LLMPROF_LET(const std::string text, base::read_file(path, kMostIndexBytes));
  if (text.empty() || text.front() != '{') {
    return base::wrong_content(path, std::string_view(text).substr(0, 64), "an index of safetensors files");
  }
  LLMPROF_LET(const SafetensorsIndex index, parse_safetensors_index(text, path));
  const NamesByFile files = by_file(index);
  TensorList list{.format = "safetensors", .files = {}, .tensors = {}, .notes = {}};
  std::size_t missing = 0;
  for (const auto& [file, names] : files) {
    list.files.push_back(file);
    if (!base::is_file(in_folder_of(path, file))) ++missing;
  }
  list.announced_bytes = index.total_bytes;
  if (missing > 0) {
    list.notes.push_back(fmt::format("{} of the {} files of {} are not here: sizes per module are not known", missing,
                                     files.size(), fs::path(path).filename().string()));
    names_only(index, list);
    return list;
  }
  for (const auto& [file, names] : files) {
    const std::string part = in_folder_of(path, file);
    LLMPROF_LET(std::vector<StoredTensor> tensors, tensors_of(part));
    LLMPROF_TRY(check_part(names, part, tensors, list));
    std::move(tensors.begin(), tensors.end(), std::back_inserter(list.tensors));
  }
  return list;
}

Result<SafetensorsIndex> parse_safetensors_index(std::string_view json_text, std::string_view where) {
  return IndexReader(where).take(json_text);
}

}  // namespace llmprof::model

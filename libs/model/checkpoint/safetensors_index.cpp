#include "model/checkpoint/safetensors_index.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "base/safetensors.h"
#include "base/text_table.h"

namespace llmprof::model {
namespace {

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

Result<SafetensorsIndex> parse_safetensors_index(std::string_view json_text, std::string_view where) {
  return IndexReader(where).take(json_text);
}

}  // namespace llmprof::model

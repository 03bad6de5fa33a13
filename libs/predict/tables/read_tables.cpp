#include "predict/tables/read_tables.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "importers/input.h"
#include "predict/tables/read_parquet.h"

namespace llmprof::predict {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{256} << 20;  // plain
constexpr std::uint64_t kMaxMetaBytes = 4 << 20;
constexpr std::size_t kMaxFiles = 10'000;
constexpr int kMaxDepth = 2;

struct Candidate {
  std::string path;  // below the folder
  const TableKind* kind = nullptr;
  std::int64_t tensor = 0;
};

bool is_parquet(std::string_view name) { return base::lowercase(name).ends_with(".parquet"); }

bool is_table_name(std::string_view name) {
  const std::string lower = base::lowercase(name);
  return lower.ends_with(".csv") || lower.ends_with(".csv.gz") || lower.ends_with(".csv.zst") || is_parquet(lower);
}

Result<std::vector<Candidate>> candidates_in(const std::string& folder) {
  std::error_code error;
  auto entries = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
  if (error) return Error{ErrorCode::kNotFound, fmt::format("{}: {}", folder, error.message()), ""};
  std::vector<Candidate> found;
  std::size_t seen = 0;
  for (; entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (error) return Error{ErrorCode::kIo, fmt::format("{}: {}", folder, error.message()), ""};
    if (++seen > kMaxFiles)
      return usage_error("{} holds more than {} files: not a folder of tables", folder, kMaxFiles);
    if (entries.depth() >= kMaxDepth) entries.disable_recursion_pending();
    const std::string path = entries->path().lexically_relative(folder).string();
    const TableKind* kind = is_table_name(path) ? kind_of_file(path) : nullptr;
    if (kind != nullptr) found.push_back({path, kind, tensor_of_path(path)});
  }
  std::ranges::sort(found, {}, &Candidate::path);
  return found;
}

Error missing_degree(const std::string& folder, std::int64_t tensor, const std::set<std::int64_t>& degrees) {
  return {ErrorCode::kNotFound,
          fmt::format("{} has no operator tables for tensor parallelism of {}: there are {}", folder, tensor,
                      fmt::join(degrees, ", ")),
          "tables are of one rank: those of another degree have other shapes"};
}

// The files of one degree, one of each kind.
Result<std::vector<Candidate>> choose(const std::string& folder, std::int64_t tensor, std::vector<Candidate> found) {
  if (found.empty()) {
    return Error{ErrorCode::kNotFound, fmt::format("{} has no operator tables", folder),
                 "expected are files like dense.csv, per_sequence.csv, attention.csv (or .csv.gz)"};
  }
  std::set<std::int64_t> degrees;
  for (const Candidate& each : found) {
    if (each.tensor > 0) degrees.insert(each.tensor);
  }
  if (!degrees.empty() && !degrees.contains(tensor)) return missing_degree(folder, tensor, degrees);
  // Experts are measured on one rank, whatever the degree: their rows say how many of them were active.
  const auto serves = [&](const Candidate& each) {
    return each.tensor == 0 || each.tensor == tensor || (each.tensor == 1 && each.kind->name == "moe");
  };
  std::erase_if(found, [&](const Candidate& each) { return !serves(each); });
  // What is shared by all degrees stands beside what is of one: the latter is nearer.
  std::ranges::stable_sort(found, std::ranges::greater{}, &Candidate::tensor);
  std::vector<Candidate> chosen;
  for (const Candidate& each : found) {
    const auto same = std::ranges::find(chosen, each.kind, &Candidate::kind);
    if (same == chosen.end()) {
      chosen.push_back(each);
    } else if (same->tensor == each.tensor) {
      return Error{ErrorCode::kUsage,
                   fmt::format("{} has two tables {}: {} and {}", folder, each.kind->name, same->path, each.path),
                   "name the folder that holds only the tables of one model and device"};
    }
  }
  return chosen;
}

Result<std::string> plain_text(const std::string& path, std::uint64_t most) {
  LLMPROF_LET(importers::Input input, importers::Input::open(path, most));
  LLMPROF_LET(std::string text, input.read_all(most));
  // A table of which the end is missing would be a table with other edges.
  for (const importers::InputRemark& remark : input.remarks()) {
    return corrupt_error("{}: {}", path, remark.what);
  }
  return text;
}

std::string text_at(const base::Json& json, std::initializer_list<const char*> path) {
  const base::Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return "";
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : "";
}

std::string first_text(const base::Json& json, std::initializer_list<std::initializer_list<const char*>> paths) {
  for (const auto& path : paths) {
    if (std::string text = text_at(json, path); !text.empty()) return text.substr(0, 200);
  }
  return "";
}

// Beside the tables, or above the folders of degrees. It only describes: one that cannot be read is passed over.
void read_meta(const std::string& folder, TableSource& source) {
  const auto text = plain_text(folder + "/meta.json", kMaxMetaBytes);
  if (!text) return;
  const auto json = base::parse_json(*text, "meta.json");
  if (!json) return;
  source.device = first_text(*json, {{"hardware", "device_name"}, {"device_name"}, {"hardware"}, {"device"}});
  source.model = first_text(*json, {{"model"}, {"engine_kwargs", "model"}});
  const std::string version = first_text(*json, {{"vllm_version"}});
  if (!version.empty()) source.engine = "vLLM " + version;
  const std::string own = first_text(*json, {{"llmprof_version"}});
  if (!own.empty()) source.engine = "llmprof " + own;
}

}  // namespace

std::int64_t tensor_of_path(std::string_view path) {
  const std::string lower = base::lowercase(path);
  std::int64_t degree = 0;
  for (std::size_t at = lower.find("tp"); at != std::string::npos; at = lower.find("tp", at + 2)) {
    const char before = at == 0 ? '/' : lower[at - 1];
    if (before >= 'a' && before <= 'z') continue;  // "http2"
    std::string_view digits = std::string_view(lower).substr(at + 2);
    if (!digits.empty() && (digits.front() == '_' || digits.front() == '-' || digits.front() == '='))
      digits.remove_prefix(1);
    const auto value = base::leading_number<std::int64_t>(digits);
    if (value && *value > 0 && *value <= 1 << 20) degree = *value;  // the last: the file's own name
  }
  return degree;
}

Result<void> read_table_text(const TableKind& kind, std::string_view text, const std::string& where,
                             OperatorTables& tables) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  TableRows rows(kind, where, tables);
  std::int64_t line = 0;
  bool header = true;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = base::trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty()) continue;
    std::vector<std::string_view> cells = base::split(content, ',');
    for (std::string_view& cell : cells) {
      cell = base::trimmed(cell);
      if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    }
    if (header) {
      LLMPROF_TRY(rows.header(cells));
    } else {
      LLMPROF_TRY(rows.row(cells, line));
    }
    header = false;
  }
  if (rows.rows() == 0) return corrupt_error("{}: the table is empty", where);
  tables.source.files.push_back({where, std::string(kind.name), rows.rows()});
  return {};
}

Result<OperatorTables> read_tables(const std::string& folder, std::int64_t tensor, std::string_view times) {
  LLMPROF_LET(std::vector<Candidate> found, candidates_in(folder));
  LLMPROF_LET(const std::vector<Candidate> chosen, choose(folder, tensor, std::move(found)));
  OperatorTables tables;
  tables.source.folder = folder;
  for (const Candidate& each : chosen) {
    const std::string path = (fs::path(folder) / each.path).string();
    LLMPROF_LET(const std::string text,
                is_parquet(path) ? parquet_as_csv(path, kMaxTableBytes) : plain_text(path, kMaxTableBytes));
    TableKind kind = *each.kind;
    if (kind.value == "time_us") kind.value = times;
    LLMPROF_TRY(read_table_text(kind, text, path, tables));
    tables.source.files.back().path = each.path;
    tables.source.tensor = std::max(tables.source.tensor, each.tensor);
    tables.source.whole_experts |= each.tensor == 1 && tensor > 1;
  }
  if (tables.empty()) return corrupt_error("{} has no times of operators, only what corrects them", folder);
  read_meta(folder, tables.source);
  if (tables.source.device.empty()) read_meta(folder + "/..", tables.source);
  return tables;
}

}  // namespace llmprof::predict

#include "predict/implementation/kernel_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "base/strings.h"

namespace llmprof::predict {
namespace {

constexpr std::size_t kMostRowBytes = 256U << 20;
constexpr std::string_view kFilePrefix = "kernels-";

// Reads the keys of one row; the first that is wrong is kept.
class Row {
 public:
  explicit Row(const base::Json& json) : json_(json) {}

  double number(const char* key, bool needed = true) {
    const auto at = json_.find(key);
    const double value = at != json_.end() && at->is_number() ? at->get<double>() : -1;
    if (value >= 0 && std::isfinite(value)) return value;
    if (needed || at != json_.end()) wrong(key);
    return 0;
  }
  double positive(const char* key) {
    const double value = number(key);
    if (!(value > 0)) wrong(key);
    return value;
  }
  std::string text(const char* key, bool needed = true) {
    const auto at = json_.find(key);
    if (at != json_.end() && at->is_string()) return at->get<std::string>();
    if (needed || at != json_.end()) wrong(key);
    return "";
  }
  bool flag(const char* key) {
    const auto at = json_.find(key);
    return at != json_.end() && at->is_boolean() && at->get<bool>();
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> all;
    const auto at = json_.find(key);
    if (at == json_.end() || !at->is_array()) return all;
    for (const base::Json& each : *at) {
      if (each.is_string()) all.push_back(each.get<std::string>());
    }
    return all;
  }
  const std::string& error() const { return error_; }

 private:
  void wrong(const char* key) {
    if (error_.empty()) error_ = key;
  }
  const base::Json& json_;
  std::string error_;
};

void add_row(const std::string& kind, Row& row, ProbedRows& out) {
  if (kind == "about") {
    out.framework = row.text("framework");
    out.version = row.text("version", false);
    out.device = row.text("device", false);
  } else if (kind == "kernel") {
    out.kernels.push_back({row.text("kernel"), row.text("op"), row.text("scale"), row.text("stage"), row.flag("graph"),
                           row.positive("tokens"), row.positive("blocks"), row.number("threads", false),
                           row.positive("ns")});
  } else if (kind == "product") {
    out.products.push_back({row.positive("m"), row.positive("n"), row.positive("k"), row.text("dtype"),
                            row.text("stage"), row.flag("graph"), row.texts("kernels"), row.positive("ns")});
  } else if (kind == "attention") {
    out.attention.push_back({row.text("stage"), row.text("form", false), row.text("asked", false), row.flag("same"),
                             row.positive("heads"), row.positive("kv_heads"), row.positive("head_dim"),
                             row.positive("batch"), row.positive("q"), row.positive("kv"), row.texts("kernels"),
                             row.positive("ns")});
  } else if (kind == "gap") {
    out.graph_gap_ns = row.number("graph_ns", false);
    out.queued_gap_ns = row.number("queued_ns", false);
  } else if (kind == "launch") {
    out.op_ns = row.number("op_ns", false);
  } else if (kind == "recording") {
    out.recording_ns = row.number("ns");
  } else if (kind == "note") {
    out.notes.push_back(row.text("text"));
  }
}

std::string file_name(const ProbedRows& rows) {
  std::string name = std::string(kFilePrefix) + rows.framework + "-" + rows.version;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  }
  return name.substr(0, 80) + ".jsonl";
}

// Rows of the same key: the last one stays, in the place of the first.
template <class T, class Key>
void keep_last(std::vector<T>& rows, Key key) {
  std::map<std::string, std::size_t> places;
  std::vector<T> kept;
  for (T& row : rows) {
    const auto [place, fresh] = places.try_emplace(key(row), kept.size());
    if (fresh) {
      kept.push_back(std::move(row));
    } else {
      kept[place->second] = std::move(row);
    }
  }
  rows = std::move(kept);
}

}  // namespace

std::string comparable_name(std::string_view kernel) {
  constexpr std::string_view kReturn = "void ";
  if (kernel.starts_with(kReturn)) kernel.remove_prefix(kReturn.size());
  // The parameters stand last, in parentheses that match; "(anonymous namespace)" and lambdas are inside the name.
  if (kernel.ends_with(')')) {
    int depth = 0;
    for (std::size_t i = kernel.size(); i-- > 0;) {
      depth += kernel[i] == ')' ? 1 : kernel[i] == '(' ? -1 : 0;
      if (depth == 0) {
        if (i > 0) kernel = kernel.substr(0, i);
        break;
      }
    }
  }
  std::string out;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    if (kernel[i] == ' ') continue;
    if (!out.empty() && std::isdigit(static_cast<unsigned char>(out.back())) != 0) {  // "3ul"
      const std::size_t end = std::min(kernel.find_first_not_of("uUlL", i), kernel.size());
      if (end > i && (end == kernel.size() || std::isalnum(static_cast<unsigned char>(kernel[end])) == 0)) {
        i = end - 1;
        continue;
      }
    }
    out += kernel[i];
  }
  return out;
}

Result<ProbedRows> parse_probed(std::string_view lines, const std::string& where) {
  ProbedRows out;
  std::int64_t number = 0;
  for (const std::string_view line : base::split(lines, '\n')) {
    ++number;
    if (base::trimmed(line).empty()) continue;
    const Result<base::Json> json = base::parse_json(std::string(line), where);
    const auto bad = [&](std::string_view what) {
      return Error{ErrorCode::kCorruptInput, fmt::format("{}, line {}: {}", where, number, what),
                   "docs/format/operator-tables.md describes the rows"};
    };
    if (!json || !json->is_object() || !json->contains("row") || !(*json)["row"].is_string())
      return bad("not a row of measured kernels");
    Row row(*json);
    add_row((*json)["row"].get<std::string>(), row, out);
    if (!row.error().empty()) return bad(fmt::format("'{}' is missing or not possible", row.error()));
  }
  return out;
}

Result<ProbedRows> read_probed(const std::string& path) {
  LLMPROF_LET(const std::string text, base::read_file(path, kMostRowBytes));
  return parse_probed(text, path);
}

std::string to_lines(const ProbedRows& rows) {
  std::string out;
  const auto line = [&](const base::Json& json) { out += json.dump() + "\n"; };
  line({{"row", "about"}, {"framework", rows.framework}, {"version", rows.version}, {"device", rows.device}});
  for (const ProbedKernel& k : rows.kernels)
    line({{"row", "kernel"},
          {"kernel", k.kernel},
          {"op", k.op},
          {"scale", k.scale},
          {"stage", k.stage},
          {"graph", k.graph},
          {"tokens", k.tokens},
          {"blocks", k.blocks},
          {"threads", k.threads},
          {"ns", k.ns}});
  for (const ProbedProduct& p : rows.products)
    line({{"row", "product"},
          {"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"dtype", p.dtype},
          {"stage", p.stage},
          {"graph", p.graph},
          {"kernels", p.kernels},
          {"ns", p.ns}});
  for (const ProbedAttention& a : rows.attention)
    line({{"row", "attention"},
          {"stage", a.stage},
          {"form", a.form},
          {"asked", a.asked},
          {"same", a.same},
          {"heads", a.heads},
          {"kv_heads", a.kv_heads},
          {"head_dim", a.head_dim},
          {"batch", a.batch},
          {"q", a.q},
          {"kv", a.kv},
          {"kernels", a.kernels},
          {"ns", a.ns}});
  line({{"row", "gap"}, {"graph_ns", rows.graph_gap_ns}, {"queued_ns", rows.queued_gap_ns}});
  line({{"row", "launch"}, {"op_ns", rows.op_ns}});
  if (rows.recording_ns > 0) line({{"row", "recording"}, {"ns", rows.recording_ns}});
  for (const std::string& note : rows.notes) line({{"row", "note"}, {"text", note}});
  return out;
}

void merge(ProbedRows& into, ProbedRows newer) {
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(into.kernels, newer.kernels);
  append(into.products, newer.products);
  append(into.attention, newer.attention);
  keep_last(into.kernels, [](const ProbedKernel& k) {
    return fmt::format("{}|{}|{}|{}|{}", k.op, k.scale, k.stage, k.graph, k.tokens);
  });
  keep_last(into.products, [](const ProbedProduct& p) {
    return fmt::format("{}|{}|{}|{}|{}|{}", p.m, p.n, p.k, p.dtype, p.stage, p.graph);
  });
  keep_last(into.attention, [](const ProbedAttention& a) {
    return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", a.stage, comparable_name(a.asked), a.heads, a.kv_heads, a.head_dim,
                       a.batch, a.q, a.kv);
  });
  if (newer.graph_gap_ns > 0) into.graph_gap_ns = newer.graph_gap_ns;
  if (newer.queued_gap_ns > 0) into.queued_gap_ns = newer.queued_gap_ns;
  if (newer.op_ns > 0) into.op_ns = newer.op_ns;
  if (newer.recording_ns > 0) into.recording_ns = newer.recording_ns;
  if (!newer.framework.empty()) into.framework = newer.framework, into.version = newer.version;
  if (!newer.device.empty()) into.device = newer.device;
  into.notes = std::move(newer.notes);
}

Result<std::string> keep_probed(const TablesKey& key, const ProbedRows& rows) {
  const std::string folder = kept_folder(key);
  if (folder.empty()) return Error{ErrorCode::kNotFound, "no folder to keep kernel tables in", "set LLMPROF_CACHE_DIR"};
  LLMPROF_TRY(base::make_directories(folder));
  const std::string path = folder + "/" + file_name(rows);
  ProbedRows all;
  // What cannot be read any more is measured anew.
  if (Result<ProbedRows> before = read_probed(path)) all = std::move(*before);
  merge(all, rows);
  LLMPROF_TRY(base::write_file(path, to_lines(all)));
  return path;
}

Result<ProbedRows> kept_probed(const TablesKey& key, bool embedded) {
  const std::string folder = kept_folder(key);
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> files;
  std::error_code ignored;
  if (!folder.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(kFilePrefix) || !name.ends_with(".jsonl")) continue;
      if (std::string_view(name).substr(kFilePrefix.size()).starts_with(kEmbedded) == embedded)
        files.emplace_back(entry.last_write_time(ignored), entry.path().string());
    }
  }
  if (files.empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no kernels of such a program and model were measured on {}", key.device.name),
                 "llmprof bench --for RUN measures the kernels that the program of a run uses"};
  }
  std::ranges::sort(files);
  ProbedRows all;
  for (const auto& [time, path] : files) {
    LLMPROF_LET(ProbedRows rows, read_probed(path));
    merge(all, std::move(rows));
  }
  return all;
}

}  // namespace llmprof::predict

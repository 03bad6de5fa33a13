#include "predict/measured/store.h"

#include <fmt/format.h>

#include <cctype>
#include <ctime>
#include <map>

#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "bench/type.h"
#include "hw/peaks.h"
#include "predict/tables/read_tables.h"

namespace llmprof::predict {
namespace {

constexpr std::uint32_t kFnvBasis = 2166136261u, kFnvPrime = 16777619u;

std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = kFnvBasis;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  return hash;
}

std::string words_of(const model::LayerKind& kind) {
  const model::Attention& a = kind.attention;
  const model::Mlp& m = kind.mlp;
  return fmt::format("a{},{},{},{},{},{},{},{},{},{},{},{} m{},{},{},{},{},{},{};", a.heads, a.kv_heads, a.qk_dim,
                     a.v_dim, a.window, a.chunk, a.q_rank, a.kv_rank, a.rope_dim, a.q_norm, a.k_norm, a.rope, m.width,
                     m.gated, m.experts, m.experts_per_token, m.local_experts, m.shared_width, m.shared_gate);
}

// Letters, digits, dot and underscore; anything else becomes a dash: parts of a path.
std::string as_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    name += plain ? c : '-';
  }
  return name.substr(0, 60);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

const TableKind& kind_of(const MeasuredRow& row) {
  if (const TableKind* own = find_table_kind(row.op)) return *own;
  return *find_table_kind(row.op == "lm_head" || row.op == "sampler" ? "per_sequence" : "dense");
}

std::string header_of(const TableKind& kind) {
  std::string line = kind.label.empty() ? "" : std::string(kind.label) + ",";
  for (const std::string_view axis : kind.axes) line += std::string(axis) + ",";
  return line + "time_us,graph_us\n";
}

std::string line_of(const TableKind& kind, const MeasuredRow& row) {
  std::string line = kind.label.empty() ? "" : row.op + ",";
  for (const double at : row.at) line += fmt::format("{:.12g},", at);
  return line + fmt::format("{:.4f},{:.4f}\n", row.kernels_ns / 1e3, row.ns(TimesOf::kInGraph) / 1e3);
}

base::Json meta_of(const MeasuredTables& tables) {
  base::Json json{{"schema", "llmprof.operator_tables"},
                  {"schema_version", 1},
                  {"llmprof_version", tables.llmprof_version},
                  {"date", today()},
                  {"model", tables.model},
                  {"tensor_parallel", tables.tensor},
                  {"dtype", tables.dtype},
                  {"run", tables.run},
                  {"points", tables.rows.size()},
                  {"skipped", tables.skipped},
                  {"notes", tables.notes}};
  json["hardware"] = {{"device_name", tables.device}, {"driver", tables.driver}};
  json["hardware"]["clock_mhz"] = base::maybe(tables.clock_mhz);
  if (!tables.launch.source.empty()) {
    json["launch"] = {{"source", tables.launch.source},
                      {"launch_ns", tables.launch.launch_ns},
                      {"queued_ns", tables.launch.queued_ns},
                      {"graph_node_ns", tables.launch.graph_node_ns}};
  }
  return json;
}

}  // namespace

std::string shape_key(const model::Config& config) {
  std::string words = fmt::format("{},{},{},{}", config.hidden, config.vocab, config.norm_bias, config.layers());
  for (const model::LayerKind& kind : config.kinds) words += words_of(kind);
  return fmt::format("{}-{}x{}-{:08x}", as_name(config.family), config.hidden, config.layers(), hash_of(words));
}

std::string kept_type(const model::Config& config, const hw::Device& device, const std::string& asked) {
  const std::string& own = config.quantization ? config.quantization->weight.type : config.weight.type;
  const std::string wanted = !asked.empty() ? asked : device.kind == "cpu" ? "float32" : own;
  const auto known = bench::parse_type(wanted);
  return known ? std::string(bench::type_name(*known)) : as_name(wanted);
}

std::string kept_folder(const TablesKey& key) {
  const std::string cache = base::cache_folder();
  if (cache.empty()) return "";
  return fmt::format("{}/operators/{}/{}-tp{}-{}", cache, hw::fingerprint(key.device), shape_key(key.config),
                     key.tensor, as_name(key.type));
}

Result<void> write_tables(const MeasuredTables& tables, const std::string& folder) {
  std::map<std::string_view, std::string> texts;
  for (const MeasuredRow& row : tables.rows) {
    const TableKind& kind = kind_of(row);
    std::string& text = texts.try_emplace(kind.name, header_of(kind)).first->second;
    text += line_of(kind, row);
  }
  // What an earlier measurement had and this one has not must not stay beside it.
  for (const TableKind& kind : table_kinds()) {
    const std::string path = fmt::format("{}/tp{}_{}.csv", folder, tables.tensor, kind.name);
    const auto text = texts.find(kind.name);
    if (text != texts.end()) {
      LLMPROF_TRY(base::write_file(path, text->second));
    } else if (base::is_file(path)) {
      ::unlink(path.c_str());
    }
  }
  return base::write_file(folder + "/meta.json", meta_of(tables).dump(2) + "\n");
}

Result<std::string> keep_tables(const TablesKey& key, const MeasuredTables& tables) {
  const std::string folder = kept_folder(key);
  if (folder.empty()) {
    return Error{ErrorCode::kNotFound, "no folder to keep operator tables in", "set LLMPROF_CACHE_DIR"};
  }
  LLMPROF_TRY(base::make_directories(folder));
  LLMPROF_TRY(write_tables(tables, folder));
  return folder;
}

Result<OperatorTables> kept_tables(const TablesKey& key, TimesOf times) {
  const std::string folder = kept_folder(key);
  if (folder.empty() || !base::is_file(folder + "/meta.json")) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("the operators of this model were not measured on {} (tensor parallelism {}, {})",
                             key.device.name, key.tensor, key.type),
                 "llmprof bench --for MODEL measures them in minutes"};
  }
  return read_tables(folder, key.tensor, times == TimesOf::kInGraph ? "graph_us" : "time_us");
}

LaunchCosts kept_launch_costs(const std::string& tables_folder) {
  LaunchCosts costs;
  const auto text = base::read_file(tables_folder + "/meta.json", 4 << 20);
  if (!text) return costs;
  const auto json = base::parse_json(*text, "meta.json");
  if (!json || !json->is_object() || !json->contains("launch") || !(*json)["launch"].is_object()) return costs;
  const base::Json& launch = (*json)["launch"];
  const auto ns = [&](const char* key) {
    const bool known = launch.contains(key) && launch[key].is_number();
    const double value = known ? launch[key].get<double>() : 0;
    return value > 0 && value < 1e9 ? value : 0;
  };
  costs.launch_ns = ns("launch_ns");
  costs.queued_ns = ns("queued_ns");
  costs.graph_node_ns = ns("graph_node_ns");
  if (costs.launch_ns > 0) costs.source = "measured: empty kernels";
  return costs;
}

}  // namespace llmprof::predict

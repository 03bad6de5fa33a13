#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "analyze/measures/totals_findings.h"
#include "analyze/rules/facts/subjects.h"

namespace llmprof::analyze {

namespace {

// A copy belongs to the latest step of its thread that had begun when it was asked for, if that was still open.
constexpr const char* kTransfers = R"(
WITH asked AS (
  SELECT c.begin_ns, c.end_ns, c.device_id, c.bytes, c.thread_id, coalesce(c.launch_begin_ns, c.begin_ns) AS at_ns,
         CAST(coalesce(c.host_memory = 'pageable', false) AS BIGINT) AS pageable
  FROM copy AS c
  WHERE c.direction IN ('host_to_device', 'device_to_host', 'peer')),
own AS (SELECT * FROM step)
SELECT s.stage, a.device_id, a.begin_ns, a.end_ns, a.bytes, a.pageable, CAST(0 AS BIGINT) AS collective
FROM asked AS a ASOF JOIN own AS s ON a.thread_id = s.thread_id AND a.at_ns >= s.begin_ns
WHERE a.at_ns <= s.end_ns AND s.stage NOT IN ('load', 'warm-up')
UNION ALL
SELECT p.stage, k.device_id, k.begin_ns, k.end_ns, 0, 0, 1
FROM kernel AS k JOIN attribution AS p ON p.kernel_id = k.id
WHERE p.step_id IS NOT NULL AND p.stage NOT IN ('load', 'warm-up')
  AND (k.name LIKE '%nccl%' OR k.name LIKE '%rccl%' OR k.name LIKE '%all_reduce%' OR k.name LIKE '%cross_device_reduce%')
ORDER BY 2, 3)";

constexpr const char* kComputing = R"(
SELECT k.device_id, k.begin_ns, k.end_ns FROM kernel AS k JOIN device AS d ON d.id = k.device_id
WHERE d.kind = 'gpu' AND k.name NOT LIKE '%nccl%' AND k.name NOT LIKE '%rccl%' AND k.name NOT LIKE '%all_reduce%'
  AND k.name NOT LIKE '%cross_device_reduce%'
UNION ALL
SELECT device_id, begin_ns, end_ns FROM graph_launch WHERE NOT coalesce(nodes_recorded, false)
ORDER BY 1, 2)";

struct Stretch {
  std::int64_t device = 0, begin = 0, end = 0, hidden = 0;
  Transfers* owner = nullptr;
};

// Disjoint stretches by device and time: what overlaps counts for the first.
class Stretches {
 public:
  void add(std::int64_t device, std::int64_t begin, std::int64_t end, Transfers* owner) {
    if (!all_.empty() && all_.back().device == device) begin = std::max(begin, all_.back().end);
    if (begin < end) all_.push_back({device, begin, end, 0, owner});
  }

  // Kernels come by device and begin.
  void hide(std::int64_t device, std::int64_t begin, std::int64_t end) {
    if (device != device_) device_ = device, covered_ = INT64_MIN;
    begin = std::max(begin, covered_);
    covered_ = std::max(covered_, end);
    if (begin >= end) return;
    while (at_ < all_.size() && std::tie(all_[at_].device, all_[at_].end) <= std::tie(device, begin)) ++at_;
    for (std::size_t i = at_; i < all_.size() && all_[i].device == device && all_[i].begin < end; ++i) {
      all_[i].hidden += std::max<std::int64_t>(0, std::min(end, all_[i].end) - std::max(begin, all_[i].begin));
    }
  }

  void finish() {
    for (const Stretch& stretch : all_) {
      stretch.owner->time_ns += stretch.end - stretch.begin;
      stretch.owner->exposed_ns += stretch.end - stretch.begin - stretch.hidden;
    }
  }
  std::int64_t total_ns() const {
    std::int64_t sum = 0;
    for (const Stretch& stretch : all_) sum += stretch.end - stretch.begin;
    return sum;
  }

 private:
  std::vector<Stretch> all_;
  std::size_t at_ = 0;
  std::int64_t device_ = INT64_MIN, covered_ = INT64_MIN;
};

// Whether transfers could take 1 % of some stage.
bool matters(const Stretches& stretches, const Summary& summary) {
  return std::ranges::any_of(summary.stages, [&](const Stage& stage) {
    return stretches.total_ns() > 0 && 100 * stretches.total_ns() >= stage.time_ns;
  });
}

}  // namespace

Result<std::vector<StageOverlap>> overlaps(const trace::Run& run, const Summary& summary) {
  LLMPROF_LET(const trace::Columns columns, run.columns(kTransfers));
  std::map<std::string, StageOverlap> stages;
  Stretches stretches;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    const auto& v = columns.values;
    StageOverlap& stage = stages[columns.names[static_cast<std::size_t>(v[0][i])]];
    Transfers& kind = v[6][i] != 0 ? stage.collectives : stage.copies;
    ++kind.count, kind.bytes += v[4][i], kind.pageable += v[5][i];
    stretches.add(v[1][i], v[2][i], v[3][i], &kind);
  }
  if (matters(stretches, summary)) {
    LLMPROF_TRY(run.column_chunks(kComputing, [&](const trace::ColumnChunk& chunk) {
      for (std::size_t i = 0; i < chunk.count; ++i)
        stretches.hide(chunk.values[0][i], chunk.values[1][i], chunk.values[2][i]);
      return true;
    }));
  }
  stretches.finish();
  std::vector<StageOverlap> out;
  for (auto& [name, stage] : stages) {
    stage.stage = name;
    out.push_back(std::move(stage));
  }
  return out;
}

ModelShape model_shape(const AnalysisContext& analysis) {
  ModelShape out;
  if (!analysis.model) return out;
  const model::Config& config = analysis.model->config();
  out.known = true;
  out.weight_type = config.quantization ? config.quantization->weight.type : config.weight.type;
  out.weight_bytes_each = config.quantization ? config.quantization->weight.bytes : config.weight.bytes;
  out.kv_type = config.kv.type;
  out.kv_bytes_each = config.kv.bytes;
  out.quantized = config.quantization.has_value();
  out.layers = config.layers();
  out.weights_read_bytes = model::weights_read_bytes(*analysis.model);
  for (const std::uint32_t kind : config.kind_of_layer)
    out.kv_bytes_per_token += static_cast<double>(config.kinds[kind].attention.kv_values()) * config.kv.bytes;
  if (config.kinds.empty()) return out;
  const model::Attention& attention = config.kinds.front().attention;
  out.heads = attention.heads;
  out.kv_heads = attention.kv_heads;
  out.head_size = attention.qk_dim;
  out.latent = attention.latent();
  return out;
}

std::vector<DevicePeak> arithmetic_peaks(const AnalysisContext& analysis) {
  std::vector<DevicePeak> out;
  for (const PeakRate& peak : analysis.peaks) {
    if (analysis.device_ids.empty() || peak.device_id != analysis.device_ids.front() || peak.quantity != "flops")
      continue;
    out.push_back({peak.type, peak.value, peak.source});
  }
  return out;
}

namespace {

constexpr std::array<std::string_view, 5> kWaitingCalls = {"aten::item", "aten::_local_scalar_dense",
                                                           "cudaStreamSynchronize", "cudaDeviceSynchronize",
                                                           "cudaEventSynchronize"};

}  // namespace

TotalsFacts totals_facts(const MeasuredTable& table) {
  TotalsFacts out;
  double copies_ns = 0;
  for (const MeasuredRow& row : table.rows) {
    if (row.name.starts_with("Memcpy ")) copies_ns += row.self_device_ns.value_or(0);
    if (row.name.starts_with("Memcpy ") && row.name.find("Pageable") != row.name.npos) {
      out.pageable_ns += row.self_device_ns.value_or(0);
      out.pageable_copies += static_cast<double>(row.calls);
    }
    if (std::find(kWaitingCalls.begin(), kWaitingCalls.end(), row.name) != kWaitingCalls.end() &&
        static_cast<double>(row.calls) > out.sync_calls) {
      out.sync_calls = static_cast<double>(row.calls);
      out.sync_name = row.name;
    }
  }
  out.device_work_ns = std::max(0.0, table.device_total_ns.value_or(0) - copies_ns);
  if (const MeasuredRow* copy = table.find("aten::copy_"))
    out.copy_wait_ns =
        std::max(0.0, copy->self_cpu_ns.value_or(0) - std::max(copies_ns, copy->self_device_ns.value_or(0)));
  return out;
}

Result<std::optional<TotalsFacts>> totals_facts(const trace::Run& run, const AnalysisContext& analysis,
                                                const Summary& summary) {
  if (!analysis.model || summary.imported.totals.empty()) return std::optional<TotalsFacts>();
  LLMPROF_LET(const MeasuredTable table, totals_table(run));
  LLMPROF_LET(std::optional<MeasuredFindings> findings, totals_findings(run, analysis, summary));
  if (!findings) return std::optional<TotalsFacts>();
  TotalsFacts out = totals_facts(table);
  out.findings = std::move(*findings);
  return std::optional(std::move(out));
}

}  // namespace llmprof::analyze

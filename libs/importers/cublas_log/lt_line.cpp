// [2026-11-15 19:25:56][cublasLt][1846][Trace][cublasLtMatmul] A=0X… Adesc=[type=R_16BF rows=1024 …] … algo=[…] …
#include <fmt/format.h>

#include "importers/cublas_log/call.h"

namespace llmprof::importers::cublas {
namespace {

// "[text]" at the beginning of `line`, which loses it.
std::optional<std::string_view> bracket(std::string_view& line) {
  if (!line.starts_with('[')) return std::nullopt;
  const std::size_t end = line.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = line.substr(1, end - 1);
  line.remove_prefix(end + 1);
  return text;
}

// The value of `name=` in "a=1 b=[c=2 d=3] e=4": a word, or what stands in brackets. "" if it is not there.
std::string_view field(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at > 0 && text[at - 1] != ' ') || end >= text.size() || text[end] != '=') continue;
    std::string_view value = text.substr(end + 1);
    if (!value.starts_with('[')) return value.substr(0, value.find(' '));
    const std::size_t close = value.find(']');
    return close == std::string_view::npos ? std::string_view{} : value.substr(1, close - 1);
  }
  return {};
}

struct Matrix {
  std::int64_t rows = 0, cols = 0, batch = 1;
  std::string type;
  bool by_rows = false;
};

std::optional<Matrix> matrix(std::string_view text) {
  const auto rows = integer(field(text, "rows")), cols = integer(field(text, "cols"));
  if (!rows || !cols || *rows <= 0 || *cols <= 0) return std::nullopt;
  Matrix result{*rows, *cols, 1, type_name(field(text, "type")), field(text, "order").ends_with("ROW")};
  if (const auto batch = integer(field(text, "batchCount")); batch && *batch > 0) result.batch = *batch;
  return result;
}

std::string_view behind(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// As the collector writes it: "algo 66 tile 64x32 stages 64xauto splitk 2 cluster 2x4".
std::string algorithm_name(std::string_view algo) {
  const std::string_view number = field(algo, "algoId");
  if (number.empty()) return {};
  std::string text = fmt::format("algo {}", number);
  if (const auto tile = behind(field(algo, "tile"), "MATMUL_TILE_"); !tile.empty())
    text += fmt::format(" tile {}", tile);
  if (std::string stages(behind(field(algo, "stages"), "MATMUL_STAGES_")); !stages.empty()) {
    if (stages.ends_with("xAUTO")) stages.replace(stages.size() - 4, 4, "auto");
    text += " stages " + stages;
  }
  if (const auto splits = field(algo, "numSplitsK"); !splits.empty()) text += fmt::format(" splitk {}", splits);
  if (auto cluster = behind(field(algo, "clusterShape"), "CLUSTER_SHAPE_"); !cluster.empty()) {
    if (cluster.ends_with("x1")) cluster.remove_suffix(2);
    text += fmt::format(" cluster {}", cluster);
  }
  return text;
}

}  // namespace

std::optional<LtLine> lt_line(std::string_view line) {
  LtLine result;
  const auto time = bracket(line), library = bracket(line), pid = bracket(line), level = bracket(line),
             function = bracket(line);
  if (!time || !library || *library != "cublasLt" || !pid || !level || !function) return std::nullopt;
  const auto number = integer(*pid);
  if (!number || !second_of(*time)) return std::nullopt;
  return LtLine{*time, *level, *function, line, *number};
}

std::optional<Call> lt_call(const LtLine& line) {
  // Two lines that were written into each other.
  if (line.rest.find("][cublasLt][") != std::string_view::npos) return std::nullopt;
  const auto a = matrix(field(line.rest, "Adesc")), b = matrix(field(line.rest, "Bdesc"));
  auto d = matrix(field(line.rest, "Ddesc"));
  if (!d) d = matrix(field(line.rest, "Cdesc"));
  const std::string_view compute = field(line.rest, "computeDesc");
  if (!a || !b || !d || compute.empty()) return std::nullopt;
  Call call;
  call.pid = line.pid;
  call.second = *second_of(line.time);
  call.function = line.function;
  call.lt = true;
  call.transpose_a = transpose_name(field(compute, "transa"));
  call.transpose_b = transpose_name(field(compute, "transb"));
  call.m = d->rows;
  call.n = d->cols;
  call.k = call.transpose_a == 'n' ? a->cols : a->rows;
  call.batch = d->batch;
  const bool fits = (call.transpose_a == 'n' ? a->rows : a->cols) == call.m &&
                    (call.transpose_b == 'n' ? b->rows : b->cols) == call.k;
  if (!fits) return std::nullopt;
  call.type_a = a->type;
  call.type_b = b->type;
  call.type_c = d->type;
  call.by_rows = d->by_rows;
  call.compute_type = compute_name(field(compute, "computeType"));
  call.epilogue = epilogue_name(field(compute, "epilogue"));
  call.algorithm = algorithm_name(field(line.rest, "algo"));
  return call;
}

}  // namespace llmprof::importers::cublas

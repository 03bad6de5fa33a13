#include "analyze/blocks.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

Result<std::vector<Block>> blocks_of(const trace::Run& run, bool on_gpu) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, on_gpu ? "sql/gpu_blocks" : "sql/blocks"));
  std::vector<Block> blocks;
  bool layers = false;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const std::string name = row.text("module");
    if (blocks.empty() || blocks.back().name != name) blocks.push_back({.name = name});
    blocks.back().stages.push_back({row.text("stage"), row.integer("calls"), row.integer("total_ns")});
    layers = layers || row.integer("layer") != 0;
  }
  if (!layers) blocks.clear();
  return blocks;
}

}  // namespace llmprof::analyze

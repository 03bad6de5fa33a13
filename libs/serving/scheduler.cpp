#include "serving/scheduler.h"

#include <algorithm>

namespace llmprof::serving {
namespace {

std::uint64_t mixed(std::uint64_t value) {  // the finaliser of splitmix64
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

}  // namespace

std::uint64_t block_content(const Workload& workload, RequestIndex request, std::int64_t block,
                            std::int64_t block_size) {
  const Request& asked = workload.requests[request];
  const std::int64_t end = (block + 1) * block_size;
  const auto piece = static_cast<std::uint64_t>((end - 1) / workload.content_tokens);
  const auto place = static_cast<std::uint64_t>(block);
  // A block that ends behind the prompt holds generated tokens: a trace does not say who else sends those.
  if (piece < asked.id_count && (end <= asked.prompt_tokens || workload.ids_of_outputs))
    return mixed(mixed(workload.content_ids[asked.id_begin + piece] * 2) + place);
  return mixed(mixed(std::uint64_t{request} * 2 + 1) + place);
}

Scheduler::Scheduler(const EngineRules& rules, const Workload& workload, std::vector<Progress>& progress)
    : rules_(rules),
      workload_(workload),
      progress_(progress),
      pool_(rules.num_gpu_blocks),
      block_size_(rules.block_size) {
  const std::vector<std::int64_t> sizes = rules.capture_sizes();
  if (sizes.empty()) return;
  padded_.resize(static_cast<std::size_t>(sizes.back()) + 1);
  for (std::size_t tokens = 0, size = 0; tokens < padded_.size(); ++tokens) {
    if (sizes[size] < static_cast<std::int64_t>(tokens)) ++size;
    padded_[tokens] = static_cast<std::int32_t>(sizes[size]);
  }
}

Rejection Scheduler::check(const Request& request) const {
  const std::int64_t all = std::int64_t{request.prompt_tokens} + request.output_tokens;
  if (rules_.max_model_len > 0 && all > rules_.max_model_len) return Rejection::kModelLength;
  // The last token is sampled, but never computed.
  if (blocks_for(all - 1) > pool_.usable()) return Rejection::kBlocks;
  const bool whole = !rules_.enable_chunked_prefill && rules_.scheduler == SchedulerKind::kContinuous;
  // A preempted request may have to compute its outputs again, together with its prompt.
  if (whole && all - 1 > rules_.max_num_batched_tokens) return Rejection::kBudget;
  return Rejection::kNone;
}

void Scheduler::begin(RequestIndex request) {
  const Request& asked = workload_.requests[request];
  Progress& progress = at(request);
  progress = {};  // of a live engine, whose requests take the places of those that ended
  progress.prompt = asked.prompt_tokens;
  progress.output = asked.output_tokens;
  progress.known = asked.prompt_tokens;
}

bool Scheduler::allocate(Progress& progress, std::int64_t tokens) {
  const std::int64_t missing = blocks_for(tokens) - static_cast<std::int64_t>(progress.blocks.size());
  if (missing > pool_.free()) return false;
  for (std::int64_t i = 0; i < missing; ++i) progress.blocks.push_back(pool_.take());
  return true;
}

void Scheduler::choose_launch(Batch& batch) const {
  const std::int64_t tokens = batch.tokens();
  batch.padded_tokens = tokens;
  batch.launch = Launch::kEager;
  if (tokens >= static_cast<std::int64_t>(padded_.size())) return;
  batch.padded_tokens = padded_[static_cast<std::size_t>(tokens)];
  // Whole graphs were captured for decodes only, of sizes up to max_num_seqs (vllm/v1/cudagraph_dispatcher.py).
  const bool whole = rules_.cudagraph_mode == GraphMode::kFullAndPiecewise && batch.chunks.empty() &&
                     batch.padded_tokens <= rules_.max_num_seqs;
  batch.launch = whole ? Launch::kGraph : Launch::kPiecewise;
}

}  // namespace llmprof::serving

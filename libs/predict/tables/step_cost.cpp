#include "predict/tables/step_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/errors.h"
#include "base/human.h"

namespace llmprof::predict {
namespace {

constexpr std::int64_t kCachedRows = 1 << 17;

std::int64_t rows_in(const Batch& batch) { return std::max(batch.padded_tokens, batch.tokens()); }

// Where a table of experts is asked: tokens, and the experts that they reach with even routing.
std::array<double, 2> at_experts(const Part& part, double tokens) {
  const auto& experts = part.ops.front().experts;
  return {tokens * share_of_choices(part), experts ? model::distinct_experts(*experts, tokens) : 0};
}

}  // namespace

double BasisTimes::total() const { return std::accumulate(ns.begin(), ns.end(), 0.0); }

double BasisTimes::share(Basis basis) const {
  const double all = total();
  return all > 0 ? ns[static_cast<std::size_t>(basis)] / all : 0;
}

BasisTimes& BasisTimes::operator+=(const BasisTimes& other) {
  for (std::size_t i = 0; i < kBases; ++i) ns[i] += other.ns[i];
  return *this;
}

void BasisTimes::add(Answer answer, double calls) { ns[static_cast<std::size_t>(answer.basis)] += answer.ns * calls; }

// Sums over the requests of a step, made once for all kinds of layers.
struct TableStepCost::Attended {
  double chunk_tokens = 0, chunk_context = 0;  // context: before the chunk, the mean over chunks
  Decodes decodes;
  std::int64_t contexts = 0;  // sum over the decodes

  explicit Attended(const Batch& batch) {
    for (const Chunk& chunk : batch.chunks) {
      chunk_tokens += static_cast<double>(chunk.tokens);
      chunk_context += static_cast<double>(chunk.computed);
    }
    if (!batch.chunks.empty()) chunk_context /= static_cast<double>(batch.chunks.size());
    if (batch.contexts.empty()) return;
    std::int64_t sum = 0, least = batch.contexts.front(), most = least;
    for (const std::int64_t context : batch.contexts) {
      sum += context;
      least = std::min(least, context);
      most = std::max(most, context);
    }
    contexts = sum;
    decodes.count = static_cast<std::int64_t>(batch.contexts.size());
    decodes.mean = static_cast<double>(sum) / static_cast<double>(decodes.count);
    decodes.least = static_cast<double>(least);
    decodes.most = static_cast<double>(most);
  }
};

Answer TableStepCost::link_answer(const Entry& entry, double rows) const {
  if (entry.grid) {
    const std::array<double, 1> at{rows * entry.message_bytes};
    return entry.grid->ask(at);
  }
  const LinkCosts& link = input_.link;
  const double moving_ns = link.bytes_per_s > 0 ? rows * entry.link_bytes / link.bytes_per_s * 1e9 : 0;
  return {rows > 0 ? link.latency_ns + moving_ns : 0, Basis::kAssumed};
}

// Of one call with this many rows. Not for attention.
Answer TableStepCost::row_answer(const Entry& entry, double rows) const {
  if (rows <= 0) return {0, Basis::kMeasured};
  if (entry.link_bytes > 0) return link_answer(entry, rows);
  const bool experts = entry.part.rows == PartRows::kExperts;
  const std::array<double, 2> at = experts ? at_experts(entry.part, rows) : std::array<double, 2>{rows, 0};
  const auto axes = std::span(at).first(experts ? 2 : 1);
  return entry.grid ? entry.grid->ask(axes) : Answer{entry.floor->ns(axes), Basis::kRoof};
}

Answer TableStepCost::joint(const Entry& entry, const Attended& attended) const {
  const auto cut = [&](double context) {
    return entry.window > 0 ? std::min(context, static_cast<double>(entry.window)) : context;
  };
  const Decodes& decodes = attended.decodes;
  std::array<double, 4> at{attended.chunk_tokens, attended.chunk_tokens > 0 ? cut(attended.chunk_context) : 0,
                           static_cast<double>(decodes.count), cut(decodes.mean)};
  Answer answer = entry.grid->ask(at);
  if (!input_.skew || entry.window > 0) return answer;
  const auto alpha = input_.tables.skew.alpha(at[0], at[1], decodes);
  if (!alpha) return answer;
  at[3] = decodes.most;
  const double longest_ns = entry.grid->ask(at).ns;
  answer.ns += *alpha * (longest_ns - answer.ns);
  answer.basis = std::max(answer.basis, Basis::kInterpolated);
  return answer;
}

// Of one call, or of what stands for one.
BasisTimes TableStepCost::attention(const Entry& entry, const Attended& attended, const Batch& batch) const {
  BasisTimes times;
  if (!entry.grid) {
    model::Pass pass;
    for (const Chunk& chunk : batch.chunks) {
      pass.sequences.push_back({1, chunk.tokens, chunk.computed + chunk.tokens, 0});
    }
    // Decodes as two groups of the same sum, which is what counts but for windows.
    const std::int64_t count = std::max<std::int64_t>(1, attended.decodes.count), longer = attended.contexts % count;
    pass.sequences.push_back({attended.decodes.count - longer, 1, attended.contexts / count, 1});
    pass.sequences.push_back({longer, 1, attended.contexts / count + 1, 1});
    times.add({floor_ns(entry.part.ops, shard_, model::Amounts(pass), input_.roof), Basis::kRoof}, 1);
    return times;
  }
  const bool prompts = attended.chunk_tokens > 0, decodes = attended.decodes.count > 0;
  // Tables of single chunks know nothing of several at once.
  const bool together = input_.attention == AttentionMode::kJoint && entry.mixed;
  Attended alone = attended;
  alone.decodes = {};
  if (prompts) times.add(chunks_answer(entry, alone, batch, together), 1);
  if (!decodes) return times;
  if (together && prompts) {
    // What the decodes add to as many tokens of prompts.
    const Answer all = joint(entry, attended), without = joint(entry, alone);
    times.add({std::max(0.0, all.ns - without.ns), std::max(all.basis, without.basis)}, 1);
    return times;
  }
  alone = attended;
  alone.chunk_tokens = alone.chunk_context = 0;
  times.add(joint(entry, alone), 1);
  return times;
}

// Several chunks as one of all their tokens, as tables have it, or as calls of their own. Each is too long: the first
// has tokens attend to those of other prompts, the second leaves the device partly idle. So the shorter one is nearer.
Answer TableStepCost::chunks_answer(const Entry& entry, const Attended& alone, const Batch& batch,
                                    bool together) const {
  if (batch.chunks.size() == 1) return joint(entry, alone);
  Answer apart{0, Basis::kMeasured};
  Attended one = alone;
  for (const Chunk& chunk : batch.chunks) {
    if (chunk.tokens <= 0) continue;
    one.chunk_tokens = static_cast<double>(chunk.tokens), one.chunk_context = static_cast<double>(chunk.computed);
    const Answer answer = joint(entry, one);
    apart = {apart.ns + answer.ns, std::max(apart.basis, answer.basis)};
  }
  if (!together) return apart;
  const Answer all = joint(entry, alone);
  return all.ns < apart.ns ? all : apart;
}

BasisTimes TableStepCost::row_sum(PartRows rows, std::int64_t count) const {
  BasisTimes sum;
  for (const auto& entry : entries_) {
    const PartRows own = entry->part.rows == PartRows::kExperts ? PartRows::kTokens : entry->part.rows;
    if (own != rows) continue;
    sum.add(row_answer(*entry, static_cast<double>(count)), static_cast<double>(entry->part.calls));
  }
  return sum;
}

const BasisTimes& TableStepCost::row_sum(std::vector<BasisTimes>& cache, BasisTimes& scratch, PartRows rows,
                                         std::int64_t count) {
  if (count < 0 || count >= kCachedRows) return scratch = row_sum(rows, count);
  const auto index = static_cast<std::size_t>(count);
  constexpr double kUnknown = -1;
  if (index >= cache.size()) cache.resize(index + 1, BasisTimes{{kUnknown}});
  if (cache[index].ns[0] == kUnknown) cache[index] = row_sum(rows, count);
  return cache[index];
}

// What a device waits for launches, if its own work takes `device_ns`.
double TableStepCost::launch_gaps_ns(const Batch& batch, double device_ns) const {
  if (!input_.tables.empty() || batch.launch != Launch::kEager || batch.tokens() == 0) return 0;
  const double kernels = input_.launch.kernels_per_layer * static_cast<double>(shard_.layers());
  return std::max(0.0, kernels * input_.launch.launch_ns - device_ns);
}

StepTime TableStepCost::of(const Batch& batch) {
  BasisTimes times = row_sum(by_tokens_, scratch_, PartRows::kTokens, rows_in(batch));
  times += row_sum(by_sampled_, scratch_, PartRows::kSampled, batch.sampled);
  const Attended attended(batch);
  for (const auto& entry : entries_) {
    if (entry->part.rows != PartRows::kAttention) continue;
    BasisTimes one = attention(*entry, attended, batch);
    for (double& ns : one.ns) ns *= static_cast<double>(entry->part.calls);
    times += one;
  }
  times.add({launch_gaps_ns(batch, times.total()), Basis::kAssumed}, 1);
  for (double& ns : times.ns) ns *= input_.device_factor;
  stands_on_ += times;
  const HostCosts& host = input_.host;
  return {times.total(), host.per_step_ns + host.per_request_ns * static_cast<double>(batch.requests()) +
                             host.per_new_request_ns * static_cast<double>(batch.new_requests)};
}

std::vector<OpTime> TableStepCost::explain(const Batch& batch) const {
  const Attended attended(batch);
  const model::Amounts amounts(pass_of(batch));
  std::vector<OpTime> rows;
  double all_ns = 0;
  for (const auto& entry : entries_) {
    const Part& part = entry->part;
    BasisTimes times;
    if (part.rows == PartRows::kAttention) {
      times = attention(*entry, attended, batch);
    } else {
      times.add(
          row_answer(*entry, static_cast<double>(part.rows == PartRows::kSampled ? batch.sampled : rows_in(batch))), 1);
    }
    OpTime row{.op = part.name, .calls = part.calls, .source = entry->source};
    row.ns = times.total() * static_cast<double>(part.calls);
    if (!part.ops.empty())
      row.floor_ns = floor_ns(part.ops, shard_, amounts, input_.roof) * static_cast<double>(part.calls);
    row.basis = Basis::kMeasured;
    for (std::size_t i = 0; i < kBases; ++i) {
      if (times.ns[i] > 0) row.basis = static_cast<Basis>(i);  // the weakest that it stands on
    }
    all_ns += row.ns;
    rows.push_back(std::move(row));
  }
  const double gaps_ns = launch_gaps_ns(batch, all_ns);
  if (gaps_ns > 0)
    rows.push_back(
        {.op = "launch gaps", .calls = 1, .ns = gaps_ns, .basis = Basis::kAssumed, .source = input_.launch.source});
  for (OpTime& row : rows) row.ns *= input_.device_factor;
  return rows;
}

}  // namespace llmprof::predict

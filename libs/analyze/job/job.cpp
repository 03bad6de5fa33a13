#include "analyze/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

namespace {

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::string ParallelGroups::words() const {
  std::vector<std::string> words;
  const auto add = [&](const char* name, std::int64_t size) {
    if (size > 1) words.push_back(fmt::format("{} parallel {}", name, size));
  };
  add("tensor", tensor), add("pipeline", pipeline), add("expert", expert), add("data", data);
  return words.empty() ? "one copy of the model" : fmt::format("{}", fmt::join(words, ", "));
}

RankPlace place_of(const ParallelGroups& groups, std::int64_t rank) {
  const std::int64_t data = std::max<std::int64_t>(1, groups.data);
  const std::int64_t outer = rank / groups.tensor;
  RankPlace place{.tensor = rank % groups.tensor};
  place.data = groups.data_before_pipeline ? outer % data : outer / groups.pipeline;
  place.pipeline = groups.data_before_pipeline ? (outer / data) % groups.pipeline : outer % groups.pipeline;
  place.expert = (place.data * groups.tensor + place.tensor) % groups.expert;
  return place;
}

const JobRank* Job::rank_of(std::int64_t process_id) const {
  const auto found = std::ranges::find_if(ranks, [&](const JobRank& rank) {
    return std::ranges::find(rank.processes, process_id) != rank.processes.end();
  });
  return found == ranks.end() ? nullptr : &*found;
}

std::int64_t Job::devices_of_rank() const {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, ranks.size()));
  return std::max<std::int64_t>(1, (devices + count / 2) / count);
}

namespace {

// Two that say the same number and execute on the same device: files of one rank, or a rank and its children.
bool are_one_rank(const JobRank& a, const JobRank& b) {
  const bool elsewhere = !a.host.empty() && !b.host.empty() && a.host != b.host;
  const auto shares = [&](std::int64_t device) { return std::ranges::find(b.devices, device) != b.devices.end(); };
  return a.rank && a.rank == b.rank && !elsewhere && std::ranges::any_of(a.devices, shares);
}

struct RankRow {  // what a process executed on a device
  std::int64_t process_id = 0, pid = 0, device_id = 0, kernel_ns = 0;
  std::string host;
  std::optional<std::int64_t> rank;
};

Result<std::vector<JobRank>> read_processes(const trace::Run& run, const std::vector<std::int64_t>& busy_devices) {
  LLMPROF_LET(const std::vector<RankRow> rows, ask_rows<RankRow>(run, "job_ranks"));
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> times;  // by process and device
  std::vector<JobRank> processes;
  for (const RankRow& row : rows) {
    if (std::ranges::count(busy_devices, row.device_id) == 0) continue;
    if (!times.contains(row.process_id))
      processes.push_back({.processes = {row.process_id}, .pid = row.pid, .rank = row.rank, .host = row.host});
    times[row.process_id][row.device_id] += row.kernel_ns;
  }
  for (JobRank& process : processes) {
    for (const auto& [device, ns] : times[process.processes.front()]) process.kernel_ns += ns;
    for (const auto& [device, ns] : times[process.processes.front()]) {
      if (ns >= kNegligible * process.kernel_ns) process.devices.push_back(device);
    }
  }
  return processes;
}

Result<std::vector<JobRank>> read_ranks(const trace::Run& run, const std::vector<std::int64_t>& busy_devices) {
  LLMPROF_LET(const std::vector<JobRank> processes, read_processes(run, busy_devices));
  std::vector<JobRank> ranks;
  std::int64_t most = 0;
  for (const JobRank& process : processes) {
    most = std::max(most, process.kernel_ns);
    const auto same = std::ranges::find_if(ranks, [&](const JobRank& rank) { return are_one_rank(rank, process); });
    if (same == ranks.end()) {
      ranks.push_back(process);
      continue;
    }
    same->processes.push_back(process.processes.front());
    same->kernel_ns += process.kernel_ns;
    for (const std::int64_t device : process.devices) {
      if (std::ranges::find(same->devices, device) == same->devices.end()) same->devices.push_back(device);
    }
  }
  std::erase_if(ranks, [&](const JobRank& rank) { return rank.kernel_ns < kNegligible * most; });
  return ranks;
}

// Numbers that name ranks: of each process one, all different. Launchers on two hosts may count alike (LOCAL_RANK).
bool numbers_name(const std::vector<JobRank>& ranks) {
  std::set<std::int64_t> numbers;
  for (const JobRank& rank : ranks) {
    if (!rank.rank || !numbers.insert(*rank.rank).second) return false;
  }
  return true;
}

struct Said {
  ParallelGroups groups;
  std::string origin;
};

// By the user, or by the program that declares it: not questioned.
Result<std::optional<Said>> declared_groups(const trace::Run& run, const JobSources& sources) {
  const auto by_user = [](const std::string& text, std::string origin) -> Result<std::optional<Said>> {
    LLMPROF_LET(ParallelGroups groups, parse_groups(text));
    return std::optional(Said{std::move(groups), std::move(origin)});
  };
  if (!sources.option.empty()) return by_user(sources.option, "--parallel " + sources.option);
  if (!sources.noted.empty())
    return by_user(sources.noted, fmt::format("--parallel {}, when it was {}", sources.noted,
                                              run.info().source == "predict" ? "predicted" : "recorded"));
  LLMPROF_LET(
      const trace::ResultTable marks,
      run.query("SELECT name FROM range WHERE domain = 'llmprof' AND category = 'parallel' AND kind = 'mark' ORDER "
                "BY begin_ns DESC, id DESC LIMIT 1"));
  if (marks.rows.empty()) return std::optional<Said>();
  auto declared = parse_groups(marks.rows[0][0].text);
  if (!declared) return std::optional<Said>();
  return std::optional(Said{*declared, "declared by the program: " + marks.rows[0][0].text});
}

// By others, in the order in which they are believed. A source that is not at one with itself is left out, and said.
Result<SaidSizes> said_sizes(const trace::Run& run, const std::vector<std::string>& lines, const Job& job) {
  std::vector<SaidSizes> sources;
  std::vector<std::string> disagreements;
  const auto add = [&](std::string_view who, SaidSizes said) {
    if (!said.disagreement.empty()) return disagreements.push_back(fmt::format("{}: {}", who, said.disagreement));
    if (said.words.empty()) return;
    said.words = fmt::format("{}: {}", who, said.words);
    sources.push_back(std::move(said));
  };
  add("command line of the program", said_by_commands(lines));
  if (job.world > 1) {
    LLMPROF_LET(SaidSizes environment, said_by_environment(run, job.ranks));
    add("environment of the ranks", std::move(environment));
    LLMPROF_LET(SaidSizes communicators, said_by_communicators(run, job.ranks));
    add("communicators", std::move(communicators));
  }
  SaidSizes all = joined(sources, job.world);
  if (!all.disagreement.empty()) disagreements.push_back(all.disagreement);
  all.disagreement = fmt::format("{}", fmt::join(disagreements, "; "));
  return all;
}

// How often a rank made logits, and the product that ends a layer.
struct LayerCalls {
  std::int64_t process_id = 0, logits = 0, layers = 0;
};

Result<std::vector<LayerCalls>> read_layer_calls(const trace::Run& run, const JobSources& sources, std::int64_t parts,
                                                 const std::vector<JobRank>& ranks) {
  LLMPROF_LET(
      const trace::ResultTable table,
      run.query(fmt::format(
          "SELECT t.process_id, count(*) FILTER (g.k = {0} AND (g.n IN ({1}, {2}) OR g.m IN ({1}, {2}))) AS logits, "
          "count(*) FILTER (g.k = {3} AND {3} > 0 AND (g.n = {0} OR g.m = {0})) AS layers FROM gemm AS g JOIN thread "
          "AS t ON t.id = g.thread_id WHERE g.batch = 1 GROUP BY ALL",
          sources.hidden, sources.vocab / parts, (sources.vocab + parts - 1) / parts, sources.width / parts)));
  std::vector<LayerCalls> calls(ranks.size());
  LLMPROF_LET(const std::vector<LayerCalls> rows, rows_as<LayerCalls>(table));
  for (const LayerCalls& row : rows) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (std::ranges::count(ranks[rank].processes, row.process_id) == 0) continue;
      calls[rank].logits += row.logits, calls[rank].layers += row.layers;
    }
  }
  return calls;
}

// Ranks each of which made the layers of its stage as often as the last one made logits: a pipeline. Of a recording
// that began or ended in the middle, one pass more or less.
std::optional<ParallelGroups> pipeline_in(const JobSources& sources, const std::vector<LayerCalls>& calls,
                                          const Job& job) {
  const auto count = std::ssize(job.ranks);
  ParallelGroups groups{.tensor = *sources.tensor, .data = 1};
  groups.pipeline = count / groups.tensor;
  if (sources.layers < groups.pipeline || groups.parts() != count || count != job.world || !numbers_name(job.ranks))
    return std::nullopt;
  std::int64_t passes = 0;
  for (const LayerCalls& of : calls) passes = std::max(passes, of.logits);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::int64_t stage = place_of(groups, *job.ranks[i].rank).pipeline;
    const std::int64_t layers =
        sources.layers * (stage + 1) / groups.pipeline - sources.layers * stage / groups.pipeline;
    const std::int64_t off = std::abs(calls[i].layers - layers * passes);
    const bool last = stage == groups.pipeline - 1;
    if (off > (passes >= 4 ? layers : 0) || calls[i].logits != (last ? passes : 0)) return std::nullopt;
  }
  return groups;
}

// Why the sizes of a whole model's products do not mean that each rank computes all of it; "": they do.
Result<std::string> why_not_whole(const trace::Run& run, const JobSources& sources,
                                  const std::vector<LayerCalls>& calls) {
  const auto with_logits = std::ranges::count_if(calls, [](const LayerCalls& of) { return of.logits > 0; });
  if (with_logits > 0 && with_logits < std::ssize(calls))
    return fmt::format("only {} of them compute logits", with_logits);
  constexpr double kMostOfThem = 0.75;
  for (const LayerCalls& of : calls) {
    const std::int64_t all = sources.layers * of.logits;
    if (of.layers > 0 && of.layers < kMostOfThem * all)
      return fmt::format("a rank computes {:.1f} of {} layers for each time it computes logits",
                         static_cast<double>(of.layers) / static_cast<double>(of.logits), sources.layers);
  }
  if (with_logits > 0) return std::string();
  LLMPROF_LET(const std::int64_t sent,
              ask_number(run, "SELECT count(*) FROM (SELECT 1 FROM kernel WHERE name LIKE '%nccl%SendRecv%' LIMIT 1)"));
  return std::string(sent > 0 ? "no logits were seen, and ranks send each other rows, as stages of a pipeline do" : "");
}

Result<bool> has_collectives(const trace::Run& run) {
  LLMPROF_LET(
      const std::int64_t any,
      ask_number(run,
                 "SELECT count(*) FROM (SELECT 1 FROM kernel WHERE name LIKE '%nccl%' OR name LIKE '%rccl%' OR name "
                 "LIKE '%all_reduce%' OR name LIKE '%cross_device_reduce%' LIMIT 1)"));
  return any > 0;
}

void set_unknown(std::string_view reason, Job& job) {
  job.known = false;
  job.why = fmt::format(
      "{}; how the model is divided among them is unknown{}{}: --parallel tp=2 (tensor), pp=2 (pipeline) or "
      "dp=2 (data), to record or to report, says it",
      plural(job.world, "rank"), reason.empty() ? "" : ", as ", reason);
}

struct CollectiveRow {
  bool forward = false, reduces = false;
  std::int64_t kernels = 0;
};

// Ranks that share matrices add up their parts on the way forward; copies of a model only add up gradients, on the way
// back. What is gathered on the way forward may be weights or parts of rows, which tells nothing.
Result<void> infer_by_collectives(const trace::Run& run, Job& job) {
  LLMPROF_LET(const std::vector<CollectiveRow> rows, ask_rows<CollectiveRow>(run, "job_collectives"));
  std::int64_t forward = 0, forward_reduces = 0, backward = 0;
  for (const CollectiveRow& row : rows) {
    (row.forward ? forward : backward) += row.kernels;
    if (row.forward && row.reduces) forward_reduces += row.kernels;
  }
  if (forward == 0 && backward > 0) {
    job.origin = "its collectives, which all lie in backward passes and updates: each rank computes the whole model";
  } else if (forward_reduces > 0 && job.world == 2) {
    job.groups.tensor = 2;
    job.origin = "all-reduces on the way forward: the two ranks share every matrix";
  } else {
    set_unknown(forward_reduces > 0 ? "all-reduces on the way forward do not say how many share a matrix" : "", job);
  }
  return {};
}

// Nobody says it: the sizes of the products do, or what is exchanged.
Result<void> infer_groups(const trace::Run& run, const JobSources& sources, Job& job) {
  const auto count = static_cast<std::int64_t>(job.ranks.size());
  const bool numbered = std::ranges::any_of(job.ranks, [](const JobRank& rank) { return rank.rank.has_value(); });
  if (sources.tensor && !sources.part_is_model) {
    job.groups.tensor = *sources.tensor;
    if (sources.vocab > 0 && job.world > 1) {
      LLMPROF_LET(const auto calls, read_layer_calls(run, sources, *sources.tensor, job.ranks));
      LLMPROF_LET(const std::string why, why_not_whole(run, sources, calls));
      if (const auto pipeline = why.empty() ? std::nullopt : pipeline_in(sources, calls, job)) {
        job.groups = *pipeline;
        job.origin = "the sizes and numbers of its matrix products: each rank has the layers of its stage";
        return {};
      }
      if (!why.empty()) {
        set_unknown(why, job);
        return {};
      }
    }
    if (*sources.tensor > 1) {
      job.origin = fmt::format("the sizes of its matrix products: each rank has one of {} parts", *sources.tensor);
    } else if (count > 1) {
      job.origin = "the sizes of its matrix products: each rank computes the whole model";
    }
    return {};
  }
  if (job.world <= 1) return {};
  LLMPROF_LET(const bool collectives, has_collectives(run));
  if (collectives && !sources.part_is_model) return infer_by_collectives(run, job);
  if (numbered || collectives) {
    set_unknown(sources.part_is_model ? "the model is known by the products of one rank alone" : "", job);
  } else {
    job.origin = "processes without rank and without collectives work on their own";
  }
  return {};
}

void place_ranks(Job& job) {
  const bool named = numbers_name(job.ranks);
  const std::int64_t parts = job.groups.parts();
  if (job.groups.data == 0) job.groups.data = (job.world + parts - 1) / parts;
  job.world = std::max(job.world, parts * job.groups.data);
  std::set<std::int64_t> led;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    JobRank& rank = job.ranks[i];
    rank.place = place_of(job.groups, named ? *rank.rank : static_cast<std::int64_t>(i));
    rank.counts_tokens = led.insert(rank.place.data).second;
  }
}

void add_note(std::string_view text, Job& job) {
  if (!text.empty()) job.note += fmt::format("{}{}", job.note.empty() ? "" : "; ", text);
}

// Nobody declares it: what others say, unless what was executed contradicts it, and else what was executed.
Result<void> find_groups(const trace::Run& run, const JobSources& sources, const std::vector<std::string>& lines,
                         Job& job) {
  LLMPROF_LET(const SaidSizes said, said_sizes(run, lines, job));
  const bool fits = !sources.tensor || sources.part_is_model || *sources.tensor == said.tensor.value_or(1);
  const bool alone = job.world <= 1;
  if (said.complete && fits) {
    job.groups = groups_of(said);
    job.origin = said.words;
  } else {
    LLMPROF_TRY(infer_groups(run, sources, job));
    const std::int64_t copies = job.world / std::max<std::int64_t>(1, job.groups.parts());
    if (said.complete) {
      add_note(fmt::format("not as it is said elsewhere ({})", said.words), job);
    } else if (!said.words.empty() && !job.known) {
      job.known = true, job.why.clear();
      set_unknown(fmt::format("all that is said is {}", said.words), job);
    } else if (said.data && *said.data != copies && !alone) {
      add_note(fmt::format("{} says otherwise", said.words), job);
    }
  }
  if (said.context.value_or(1) > 1)
    set_unknown(fmt::format("{} of them share the tokens of a sequence ({})", *said.context, said.words), job);
  if (!said.disagreement.empty() && !job.known) {
    set_unknown(said.disagreement, job);
  } else {
    add_note(said.disagreement, job);
  }
  return {};
}

}  // namespace

Result<Job> find_job(const trace::Run& run, const JobSources& sources) {
  Job job;
  LLMPROF_LET(job.ranks, read_ranks(run, sources.busy_devices));
  job.devices = static_cast<std::int64_t>(sources.busy_devices.size());
  LLMPROF_LET(const std::vector<std::string> lines, command_lines(run));
  LLMPROF_LET(const SaidWorld world, said_world(run, job.ranks, lines));
  job.world = std::max<std::int64_t>(world.size, std::ssize(job.ranks));
  if (numbers_name(job.ranks)) {
    for (const JobRank& rank : job.ranks) job.world = std::max(job.world, *rank.rank + 1);
  }
  LLMPROF_LET(const std::optional<Said> declared, declared_groups(run, sources));
  if (declared) {
    job.groups = declared->groups;
    job.origin = declared->origin;
  } else {
    LLMPROF_TRY(find_groups(run, sources, lines, job));
    if (!world.disagreement.empty() && world.contradicts) set_unknown(world.disagreement, job);
  }
  if (job.known) {
    add_note(world.disagreement, job);
  } else if (!world.disagreement.empty() && !world.contradicts) {
    job.why += fmt::format(" ({})", world.disagreement);
  }
  // A process that drives all devices of a model computes all of it, however they divide it among themselves.
  const std::int64_t own = job.devices_of_rank();
  if (job.groups.parts() > 1 && own > 1) {
    if (own % job.groups.parts() == 0) {
      add_note(fmt::format("each process drives {} and computes the whole model", plural(own, "device")), job);
      job.groups = {};
    } else {
      set_unknown(fmt::format("{} of a process hold several parts ({})", plural(own, "device"), job.groups.words()),
                  job);
    }
  }
  place_ranks(job);
  return job;
}

}  // namespace llmprof::analyze

#include "analyze/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <set>
#include <utility>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "base/json.h"

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kMostRanks = 1'000'000;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMostRanks) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(at), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

Error bad_groups(std::string_view text) {
  return {ErrorCode::kUsage, fmt::format("'{}' does not say how ranks divide a model", text),
          "write for example tp=2, or tp=2,pp=4,dp=2,ep=8: tensor, pipeline, data and expert parallel"};
}

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

Result<ParallelGroups> parse_groups(std::string_view text) {
  ParallelGroups groups;
  bool pipeline_said = false;
  const std::vector<std::string_view> words = split(text, ", ");
  if (words.empty()) return bad_groups(text);
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return bad_groups(text);
    const std::string_view name = word.substr(0, equals);
    const std::optional<std::int64_t> size = number_in(word.substr(equals + 1));
    if (!size) return bad_groups(text);
    if (name == "tp" || name == "tensor") {
      groups.tensor = *size;
    } else if (name == "pp" || name == "pipeline") {
      groups.pipeline = *size, pipeline_said = true;
    } else if (name == "ep" || name == "expert") {
      groups.expert = *size;
    } else if (name == "dp" || name == "data") {
      groups.data = *size;
      groups.data_before_pipeline = !pipeline_said;
    } else {
      return bad_groups(text);
    }
  }
  return groups;
}

std::optional<SaidGroups> groups_of_command(std::string_view command) {
  struct Flag {
    std::string_view name;
    std::int64_t ParallelGroups::*size;
    std::string_view programs = "";  // of short names, which other programs use for other things
  };
  using G = ParallelGroups;
  static constexpr std::string_view kEngines = "vllm sglang trtllm";
  static constexpr Flag kFlags[] = {{"tensor-parallel-size", &G::tensor},
                                    {"pipeline-parallel-size", &G::pipeline},
                                    {"data-parallel-size", &G::data},
                                    {"expert-parallel-size", &G::expert},
                                    {"tensor-model-parallel-size", &G::tensor},
                                    {"pipeline-model-parallel-size", &G::pipeline},
                                    {"expert-model-parallel-size", &G::expert},
                                    {"tensor-parallel-degree", &G::tensor},
                                    {"pipeline-parallel-degree", &G::pipeline},
                                    {"tp", &G::tensor, kEngines},
                                    {"pp", &G::pipeline, kEngines},
                                    {"dp", &G::data, kEngines},
                                    {"tp-size", &G::tensor, kEngines},
                                    {"pp-size", &G::pipeline, kEngines},
                                    {"dp-size", &G::data, kEngines},
                                    {"ep-size", &G::expert, kEngines}};
  const auto is_of = [&](const Flag& flag) {
    const std::vector<std::string_view> programs = split(flag.programs, " ");
    return programs.empty() || std::ranges::any_of(programs, [&](std::string_view program) {
             return command.find(program) != std::string_view::npos;
           });
  };
  SaidGroups said;
  const std::vector<std::string_view> words = split(command, " ");
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = std::min(words[i].find('='), words[i].size());
    const std::string_view written = words[i].substr(0, equals);
    if (!written.starts_with('-') && equals == words[i].size()) continue;
    // "--tensor_parallel_size", "model.tensor_model_parallel_size=2"
    std::string name(written.substr(std::min(written.find_first_not_of('-'), written.size())));
    if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);
    std::ranges::replace(name, '_', '-');
    const auto flag = std::ranges::find(kFlags, name, &Flag::name);
    if (flag == std::end(kFlags) || !is_of(*flag)) continue;
    const std::string_view value = equals < words[i].size() ? words[i].substr(equals + 1)
                                   : i + 1 < words.size()   ? words[i + 1]
                                                            : std::string_view();
    const std::optional<std::int64_t> size = number_in(value);
    if (!size) continue;
    said.groups.*flag->size = *size;
    if (name.find("-model-parallel-") != std::string::npos) said.groups.data_before_pipeline = true;  // Megatron
    said.words += fmt::format("{}{} {}", said.words.empty() ? "" : " ", written, *size);
  }
  if (said.words.empty()) return std::nullopt;
  // vLLM spreads experts over all ranks that hold a part of a layer, where it is asked to.
  if (std::ranges::find(words, "--enable-expert-parallel") != words.end()) {
    said.groups.expert = said.groups.tensor * std::max<std::int64_t>(1, said.groups.data);
    said.words += " --enable-expert-parallel";
  }
  return said;
}

std::int64_t ranks_of_command(std::string_view command) {
  const std::vector<std::string_view> words = split(command, " =");
  const auto number_behind = [&](std::initializer_list<std::string_view> names) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (std::ranges::find(names, words[i]) != names.end()) return number_in(words[i + 1]).value_or(0);
    }
    return std::int64_t{-1};  // not among them
  };
  const auto runs = [&](std::string_view program) {
    return std::ranges::any_of(words, [&](std::string_view word) { return word.ends_with(program); });
  };
  if (runs("torchrun") || runs("torch.distributed.run") || runs("torch.distributed.launch")) {
    const std::int64_t hosts = number_behind({"--nnodes"});
    const std::int64_t each = number_behind({"--nproc-per-node", "--nproc_per_node"});
    return std::max<std::int64_t>(0, each) * (hosts < 0 ? 1 : hosts);
  }
  if (runs("mpirun") || runs("mpiexec") || runs("srun"))
    return std::max<std::int64_t>(0, number_behind({"-np", "--ntasks"}));
  return 0;
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
  return a.number && a.number == b.number && !elsewhere && std::ranges::any_of(a.devices, shares);
}

Result<std::vector<JobRank>> read_processes(const trace::Run& run, const std::vector<std::int64_t>& busy_devices) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/job_ranks"));
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> times;  // by process and device
  std::vector<JobRank> processes;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const std::int64_t id = row.integer("process_id"), device = row.integer("device_id");
    if (std::ranges::find(busy_devices, device) == busy_devices.end()) continue;
    if (!times.contains(id)) {
      JobRank process{.processes = {id}, .pid = row.integer("pid"), .number = row.maybe_integer("rank")};
      process.host = row.text("host");
      processes.push_back(std::move(process));
    }
    times[id][device] += row.integer("kernel_ns");
  }
  for (JobRank& process : processes) {
    for (const auto& [device, ns] : times[process.processes.front()]) process.kernel_ns += ns;
    for (const auto& [device, ns] : times[process.processes.front()]) {
      if (static_cast<double>(ns) >= kNegligible * static_cast<double>(process.kernel_ns))
        process.devices.push_back(device);
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
  std::erase_if(ranks, [&](const JobRank& rank) {
    return static_cast<double>(rank.kernel_ns) < kNegligible * static_cast<double>(most);
  });
  return ranks;
}

// Numbers that name ranks: of each process one, all different. Launchers on two hosts may count alike (LOCAL_RANK).
bool numbers_name(const std::vector<JobRank>& ranks) {
  std::set<std::int64_t> numbers;
  for (const JobRank& rank : ranks) {
    if (!rank.number || !numbers.insert(*rank.number).second) return false;
  }
  return true;
}

struct Said {
  ParallelGroups groups;
  std::string origin;
  bool by_user = false;  // then it is not questioned
};

// Of the recording, and of every process.
Result<std::vector<std::string>> command_lines(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable commands,
              run.query("SELECT DISTINCT arguments FROM process WHERE arguments IS NOT NULL ORDER BY arguments"));
  std::vector<std::string> lines{fmt::format("{}", fmt::join(run.info().command, " "))};
  for (const auto& row : commands.rows) lines.push_back(row[0].text);
  return lines;
}

Result<std::optional<Said>> said_groups(const trace::Run& run, const JobSources& sources,
                                        const std::vector<std::string>& lines) {
  const auto by_user = [](const std::string& text, std::string origin) -> Result<std::optional<Said>> {
    LLMPROF_LET(ParallelGroups groups, parse_groups(text));
    return std::optional(Said{std::move(groups), std::move(origin), true});
  };
  if (!sources.option.empty()) return by_user(sources.option, "--parallel " + sources.option);
  if (!sources.noted.empty())
    return by_user(sources.noted, fmt::format("--parallel {}, when it was recorded", sources.noted));
  LLMPROF_LET(
      const trace::ResultTable marks,
      run.query("SELECT name FROM range WHERE domain = 'llmprof' AND category = 'parallel' AND kind = 'mark' ORDER "
                "BY begin_ns DESC, id DESC LIMIT 1"));
  if (!marks.rows.empty()) {
    auto declared = parse_groups(marks.rows[0][0].text);
    if (declared) return std::optional(Said{*declared, "declared by the program: " + marks.rows[0][0].text, true});
  }
  for (const std::string& line : lines) {
    if (const auto said = groups_of_command(line))
      return std::optional(Said{said->groups, "command line of the program: " + said->words, false});
  }
  return std::optional<Said>();
}

// Of the ranks, how many make logits: all of them, where each has a copy of the model or of a part of all its layers.
Result<std::int64_t> ranks_with_logits(const trace::Run& run, const JobSources& sources, std::int64_t parts) {
  LLMPROF_LET(
      const trace::ResultTable table,
      run.query(fmt::format(
          "SELECT count(DISTINCT t.process_id) FROM gemm AS g JOIN thread AS t ON t.id = g.thread_id WHERE g.batch "
          "= 1 AND g.k = {0} AND (g.n IN ({1}, {2}) OR g.m IN ({1}, {2}))",
          sources.hidden, sources.vocab / parts, (sources.vocab + parts - 1) / parts)));
  return table.rows[0][0].as_int();
}

Result<bool> has_collectives(const trace::Run& run) {
  LLMPROF_LET(
      const trace::ResultTable table,
      run.query("SELECT count(*) FROM (SELECT 1 FROM kernel WHERE name LIKE '%nccl%' OR name LIKE '%rccl%' OR name "
                "LIKE '%all_reduce%' OR name LIKE '%cross_device_reduce%' LIMIT 1)"));
  return table.rows[0][0].as_int() > 0;
}

void set_unknown(std::string_view reason, Job& job) {
  job.known = false;
  job.why = fmt::format(
      "{}; how the model is divided among them is unknown{}{}: --parallel tp=2 (tensor), pp=2 (pipeline) or "
      "dp=2 (data), to record or to report, says it",
      plural(job.world, "rank"), reason.empty() ? "" : ", as ", reason);
}

// Of the launcher that started the recorder itself, as where each rank is recorded alone.
std::int64_t world_around(const trace::Run& run) {
  const auto card = base::parse_json(run.info().environment, "environment");
  if (!card || !card->is_object()) return 1;
  const base::Json variables = card->value("variables", base::Json::object());
  const auto size = variables.is_object() ? variables.find("WORLD_SIZE") : variables.end();
  if (size == variables.end() || !size->is_string()) return 1;
  return number_in(size->get<std::string>()).value_or(1);
}

// Ranks that share matrices add up their parts on the way forward; copies of a model only add up gradients, on the way
// back. What is gathered on the way forward may be weights or parts of rows, which tells nothing.
Result<void> infer_by_collectives(const trace::Run& run, Job& job) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/job_collectives"));
  std::int64_t forward = 0, forward_reduces = 0, backward = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const std::int64_t kernels = row.integer("kernels");
    if (row.integer("forward") == 0) backward += kernels;
    if (row.integer("forward") != 0) forward += kernels;
    if (row.integer("forward") != 0 && row.integer("reduces") != 0) forward_reduces += kernels;
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
  const bool numbered = std::ranges::any_of(job.ranks, [](const JobRank& rank) { return rank.number.has_value(); });
  if (sources.tensor && !sources.part_is_model) {
    job.groups.tensor = *sources.tensor;
    if (sources.vocab > 0 && count > 1) {
      LLMPROF_LET(const std::int64_t with_logits, ranks_with_logits(run, sources, *sources.tensor));
      if (with_logits > 0 && with_logits < count) {
        set_unknown(fmt::format("only {} of them compute logits", with_logits), job);
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
    rank.place = place_of(job.groups, named ? *rank.number : static_cast<std::int64_t>(i));
    rank.leads = led.insert(rank.place.data).second;
  }
}

}  // namespace

Result<Job> find_job(const trace::Run& run, const JobSources& sources) {
  Job job;
  LLMPROF_LET(job.ranks, read_ranks(run, sources.busy_devices));
  job.devices = static_cast<std::int64_t>(sources.busy_devices.size());
  job.world = std::max<std::int64_t>(world_around(run), std::ssize(job.ranks));
  if (numbers_name(job.ranks)) {
    for (const JobRank& rank : job.ranks) job.world = std::max(job.world, *rank.number + 1);
  }
  LLMPROF_LET(const std::vector<std::string> lines, command_lines(run));
  for (const std::string& line : lines) job.world = std::max(job.world, ranks_of_command(line));
  LLMPROF_LET(const std::optional<Said> said, said_groups(run, sources, lines));
  if (said && (said->by_user || !sources.tensor || sources.part_is_model || *sources.tensor == said->groups.tensor)) {
    job.groups = said->groups;
    job.origin = said->origin;
  } else {
    LLMPROF_TRY(infer_groups(run, sources, job));
    if (said) job.note = fmt::format("not as it is said elsewhere ({})", said->origin);
  }
  // A process that drives all devices of a model computes all of it, however they divide it among themselves.
  const std::int64_t own = job.devices_of_rank();
  if (job.groups.parts() > 1 && own > 1) {
    if (own % job.groups.parts() == 0) {
      job.note = fmt::format("each process drives {} and computes the whole model", plural(own, "device"));
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

#include "analyze/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "base/json.h"
#include "base/numbers.h"

namespace llmprof::analyze {

namespace {

constexpr std::int64_t kMostRanks = 1'000'000;

std::optional<std::int64_t> number_in(std::string_view text) {
  const std::optional<std::int64_t> value = base::parse_number<std::int64_t>(text);
  return value && *value >= 1 && *value <= kMostRanks ? value : std::nullopt;
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

}  // namespace

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

namespace {

std::optional<SaidSizes> sizes_of_command(std::string_view command) {
  struct Flag {
    std::string_view name;
    std::optional<std::int64_t> SaidSizes::*size;
    std::string_view programs = "";  // of short names, which other programs use for other things
  };
  using G = SaidSizes;
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
  SaidSizes said;
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
    said.*flag->size = *size;
    if (name.find("-model-parallel-") != std::string::npos) said.data_before_pipeline = true;  // Megatron
    said.words += fmt::format("{}{} {}", said.words.empty() ? "" : " ", written, *size);
  }
  if (said.words.empty()) return std::nullopt;
  // vLLM spreads experts over all ranks that hold a part of a layer, where it is asked to.
  if (std::ranges::find(words, "--enable-expert-parallel") != words.end()) {
    said.expert = said.tensor.value_or(1) * said.data.value_or(1);
    said.words += " --enable-expert-parallel";
  }
  said.complete = true;
  return said;
}

}  // namespace

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

ParallelGroups groups_of(const SaidSizes& said) {
  return {.tensor = said.tensor.value_or(1),
          .pipeline = said.pipeline.value_or(1),
          .expert = said.expert.value_or(1),
          .data = said.data.value_or(0),
          .data_before_pipeline = said.data_before_pipeline};
}

// ---- command lines, environments, communicators ------------------------------------------------------------------

namespace {

using Size = std::optional<std::int64_t> SaidSizes::*;
constexpr Size kSizes[] = {&SaidSizes::tensor, &SaidSizes::pipeline, &SaidSizes::expert, &SaidSizes::data,
                           &SaidSizes::context};

bool contradict(const SaidSizes& a, const SaidSizes& b) {
  return std::ranges::any_of(kSizes, [&](Size size) { return a.*size && b.*size && a.*size != b.*size; });
}

std::string id_list(const std::vector<JobRank>& ranks) {
  std::vector<std::int64_t> ids;
  for (const JobRank& rank : ranks) ids.insert(ids.end(), rank.processes.begin(), rank.processes.end());
  return ids.empty() ? "NULL" : fmt::format("{}", fmt::join(ids, ", "));
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

}  // namespace

Result<std::vector<std::string>> command_lines(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable commands,
              run.query("SELECT DISTINCT arguments FROM process WHERE arguments IS NOT NULL ORDER BY arguments"));
  std::vector<std::string> lines{fmt::format("{}", fmt::join(run.info().command, " "))};
  for (const auto& row : commands.rows) lines.push_back(row[0].text);
  return lines;
}

SaidSizes said_by_commands(const std::vector<std::string>& lines) {
  SaidSizes said;
  for (const std::string& line : lines) {
    const std::optional<SaidSizes> other = sizes_of_command(line);
    if (!other) continue;
    if (said.words.empty()) {
      said = *other;
    } else if (contradict(said, *other)) {
      said.disagreement = fmt::format("{}, and {}", said.words, other->words);
      return said;
    }
  }
  return said;
}

Result<SaidSizes> said_by_environment(const trace::Run& run, const std::vector<JobRank>& ranks) {
  struct Variable {
    std::string_view name;
    Size size;
  };
  static constexpr Variable kVariables[] = {{"VLLM_DP_SIZE", &SaidSizes::data},
                                            {"MEGATRON_LM_TP_DEGREE", &SaidSizes::tensor},
                                            {"MEGATRON_LM_PP_DEGREE", &SaidSizes::pipeline},
                                            {"PARALLELISM_CONFIG_TP_SIZE", &SaidSizes::tensor},
                                            {"PARALLELISM_CONFIG_CP_SIZE", &SaidSizes::context}};
  LLMPROF_LET(const trace::ResultTable table,
              run.query(fmt::format("SELECT DISTINCT variables FROM process WHERE variables IS NOT NULL AND id IN ({}) "
                                    "ORDER BY variables",
                                    id_list(ranks))));
  SaidSizes said;
  std::map<std::string_view, std::int64_t> seen;
  for (const auto& row : table.rows) {
    for (const std::string_view word : split(row[0].text, " ")) {
      const std::size_t equals = std::min(word.find('='), word.size());
      const auto variable = std::ranges::find(kVariables, word.substr(0, equals), &Variable::name);
      if (variable == std::end(kVariables)) continue;
      const auto size = number_in(word.substr(std::min(equals + 1, word.size())));
      if (!size) continue;
      const auto [known, fresh] = seen.try_emplace(variable->name, *size);
      if (fresh) said.words += fmt::format("{}{}", said.words.empty() ? "" : " ", word);
      if (known->second != *size) said.disagreement = fmt::format("{}={} and {}", variable->name, known->second, word);
      if (!(said.*variable->size)) said.*variable->size = *size;
    }
  }
  return said;
}

Result<SaidSizes> said_by_communicators(const trace::Run& run, const std::vector<JobRank>& ranks) {
  struct Dimension {
    std::string_view description;
    Size size;
  };
  static constexpr Dimension kDimensions[] = {{"TENSOR_MODEL_PARALLEL_GROUP", &SaidSizes::tensor},
                                              {"PIPELINE_MODEL_PARALLEL_GROUP", &SaidSizes::pipeline},
                                              {"EXPERT_MODEL_PARALLEL_GROUP", &SaidSizes::expert},
                                              {"DATA_PARALLEL_GROUP", &SaidSizes::data},
                                              {"CONTEXT_PARALLEL_GROUP", &SaidSizes::context},
                                              {"mesh_tp", &SaidSizes::tensor},
                                              {"mesh_pp", &SaidSizes::pipeline},
                                              {"mesh_ep", &SaidSizes::expert},
                                              {"mesh_dp", &SaidSizes::data},
                                              {"mesh_cp", &SaidSizes::context}};
  LLMPROF_LET(const trace::ResultTable table,
              run.query(fmt::format("SELECT DISTINCT description, size FROM communicator WHERE description IS NOT NULL "
                                    "AND size > 0 AND process_id IN ({}) ORDER BY description, size",
                                    id_list(ranks))));
  SaidSizes said{.data_before_pipeline = true};  // as both of them count ranks
  for (const auto& row : table.rows) {
    const std::string& description = row[0].text;
    const std::int64_t size = row[1].as_int();
    const auto dimension = std::ranges::find(kDimensions, description, &Dimension::description);
    if (dimension == std::end(kDimensions)) continue;
    if (said.*dimension->size && said.*dimension->size != size)
      said.disagreement = fmt::format("{} of {} and of {} ranks", description, *(said.*dimension->size), size);
    if (!(said.*dimension->size)) said.*dimension->size = size;
    said.words += fmt::format("{}{} of {}", said.words.empty() ? "" : ", ", description, size);
  }
  return said;
}

Result<SaidWorld> said_world(const trace::Run& run, const std::vector<JobRank>& ranks,
                             const std::vector<std::string>& lines) {
  LLMPROF_LET(const trace::ResultTable told,
              run.query(fmt::format("SELECT DISTINCT world FROM process WHERE world > 0 AND id IN ({}) ORDER BY world",
                                    id_list(ranks))));
  LLMPROF_LET(
      const std::int64_t communicator,
      ask_number(run, fmt::format("SELECT max(size) FROM communicator WHERE process_id IN ({})", id_list(ranks))));
  SaidWorld world;
  if (told.rows.empty()) {
    world.size = std::max({world_around(run), communicator, std::int64_t{1}});
    for (const std::string& line : lines) world.size = std::max(world.size, ranks_of_command(line));
    return world;
  }
  const std::int64_t least = told.rows.front()[0].as_int(), most = told.rows.back()[0].as_int();
  world.size = std::max(most, communicator);
  if (least != most) {
    world.contradicts = true;
    world.disagreement = fmt::format("some ranks were told of {} ranks in all, others of {}", least, most);
  } else if (communicator > most) {
    world.disagreement = fmt::format("they were told of {} in all, but have a communicator of {}", most, communicator);
  } else if (std::ssize(ranks) > most) {
    world.disagreement = fmt::format("they were told of {} in all, but {} executed kernels", most, ranks.size());
  }
  return world;
}

SaidSizes joined(const std::vector<SaidSizes>& sources, std::int64_t world) {
  SaidSizes all;
  for (const SaidSizes& source : sources) {
    if (source.words.empty()) continue;
    if (contradict(all, source)) {
      all.disagreement += fmt::format("{}{} says otherwise", all.disagreement.empty() ? "" : "; ", source.words);
      continue;
    }
    if (all.words.empty()) all.data_before_pipeline = source.data_before_pipeline;
    bool news = false;
    for (const Size size : kSizes) {
      news = news || (source.*size && !(all.*size));
      if (!(all.*size)) all.*size = source.*size;
    }
    if (news) all.words += fmt::format("{}{}", all.words.empty() ? "" : ", ", source.words);
    all.complete = all.complete || source.complete;
  }
  const std::int64_t named = all.tensor.value_or(1) * all.pipeline.value_or(1) * all.data.value_or(1);
  all.complete = all.complete || (!all.words.empty() && named * all.context.value_or(1) == world);
  return all;
}

}  // namespace llmprof::analyze

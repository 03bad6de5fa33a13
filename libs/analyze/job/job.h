#pragma once
// The processes and devices that run one model together, and how the model and its batches are divided among them. What
// the numbers of a job are is defined in docs/format/analysis.md, "Several devices and ranks".

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

// How many ranks share a model (tensor, pipeline, expert) and how many copies of it work on batches of their own
// (data).
struct ParallelGroups {
  std::int64_t tensor = 1, pipeline = 1, expert = 1;
  std::int64_t data = 0;              // 0: as many as the ranks make
  bool data_before_pipeline = false;  // how ranks are counted: tensor ranks are neighbours, then comes one of these
  std::int64_t parts() const { return tensor * pipeline; }  // that one copy of the model consists of
  std::string words() const;                                // "tensor parallel 2, data parallel 4"
};

// "tp=2,pp=4,dp=2,ep=8", in the order in which ranks are counted; tensor, pipeline, data and expert are names, too.
Result<ParallelGroups> parse_groups(std::string_view text);

struct RankPlace {
  std::int64_t data = 0, tensor = 0, pipeline = 0, expert = 0;
};
RankPlace place_of(const ParallelGroups& groups, std::int64_t rank);

}  // namespace llmprof::analyze
template <>
inline constexpr bool llmprof::base::kFieldsInline<llmprof::analyze::ParallelGroups> = true;
template <>
inline constexpr bool llmprof::base::kFieldsInline<llmprof::analyze::RankPlace> = true;
namespace llmprof::analyze {

struct JobRank {  // a process with its devices; or several of the same rank on the same device, one file each
  std::vector<std::int64_t> processes;  // ids
  std::int64_t pid = 0;                 // of the first
  std::optional<std::int64_t> rank;     // RANK
  std::string host;
  std::vector<std::int64_t> devices;  // ids: those of the busiest kind that it kept busy
  std::int64_t kernel_ns = 0;
  RankPlace place;
  bool counts_tokens = true;  // the first recorded one of its copy of the model: tokens are counted here
};

struct Job {
  std::vector<JobRank> ranks;  // that were recorded and executed something, by number; empty: nothing executed
  std::int64_t world = 1;      // ranks of the job, recorded or not
  std::int64_t devices = 0;    // that they keep busy; one that several share counts once
  ParallelGroups groups;
  bool known = true;   // the groups
  std::string origin;  // how they are known, in words; "" with a single rank of a whole model
  std::string note;    // what a reader should know of it; may be empty
  std::string why;     // why the groups are unknown, and what to do about it

  const JobRank* rank_of(std::int64_t process_id) const;
  std::int64_t devices_of_rank() const;  // of a mean one, at least 1
};

// Whoever did less than this share of what the busiest did is idle: a device by one kernel of a library that asks what
// it can do, a process by the products of a data loader.
inline constexpr double kNegligible = 0.01;

// ---- finding it --------------------------------------------------------------------------------------------------

struct JobSources {
  std::string option;                      // report --parallel
  std::string noted;                       // record --parallel
  std::vector<std::int64_t> busy_devices;  // ids
  std::optional<std::int64_t> tensor;      // over how many ranks the sizes of its products say the model is split
  bool part_is_model = false;              // the model was inferred from the products of a rank: it is one rank's part
  std::int64_t hidden = 0, vocab = 0;      // of the model; 0 unknown
  std::int64_t layers = 0, width = 0;      // where all layers are alike and dense: how many, and of the MLP; else 0
};

// A text of --parallel that cannot be read is an error.
Result<Job> find_job(const trace::Run& run, const JobSources& sources);

// How a job is divided in the words of those who should know: command lines, environments and communicators. None of
// them is the user, who is believed; these are compared with each other and with what was executed (job.cpp).

// Sizes that one source names. What it does not name is not 1, unless it is complete.
struct SaidSizes {
  std::optional<std::int64_t> tensor, pipeline, expert, data;
  std::optional<std::int64_t> context;  // ranks that share the tokens of a sequence
  bool complete = false;
  bool data_before_pipeline = false;
  std::string words;         // "--tensor-parallel-size 2"; "": it says nothing
  std::string disagreement;  // of those who should say the same: "WORLD_SIZE=2 and WORLD_SIZE=4"
};

ParallelGroups groups_of(const SaidSizes& said);

// Of the recording, and of every process.
Result<std::vector<std::string>> command_lines(const trace::Run& run);
// Options of vLLM, SGLang, TensorRT-LLM and Megatron. Programs that name any size have 1 for all others.
SaidSizes said_by_commands(const std::vector<std::string>& lines);

// How many ranks a launcher was told to start, on all hosts (torchrun, mpirun, srun); 0: it does not say.
std::int64_t ranks_of_command(std::string_view command);

// What the processes of these ranks were told by launchers and engines: process.variables.
Result<SaidSizes> said_by_environment(const trace::Run& run, const std::vector<JobRank>& ranks);

// Groups whose names are those that Megatron and DeviceMesh give to dimensions. Others are as large as they are, which
// does not say what for.
Result<SaidSizes> said_by_communicators(const trace::Run& run, const std::vector<JobRank>& ranks);

// How many ranks the job has, recorded or not.
struct SaidWorld {
  std::int64_t size = 1;
  std::string disagreement;  // "some ranks were told of 2 ranks in all, others of 4"
  bool contradicts = false;  // they are of different jobs, or nobody knows how many they are
};
Result<SaidWorld> said_world(const trace::Run& run, const std::vector<JobRank>& ranks,
                             const std::vector<std::string>& lines);

// What the first of these says of each size, and in `disagreement` what others say instead. Sizes that multiply to
// `world` leave no others: they are complete.
SaidSizes joined(const std::vector<SaidSizes>& sources, std::int64_t world);

}  // namespace llmprof::analyze

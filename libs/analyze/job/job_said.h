#pragma once
// How a job is divided in the words of those who should know: command lines, environments and communicators. None of
// them is the user, who is believed; these are compared with each other and with what was executed (job.cpp).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/job/job.h"

namespace llmprof::analyze {

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

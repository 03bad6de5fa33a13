#pragma once
// What predict, plan and whatif are told of a serving: how the engine is set up, and what it is asked for.

#include "predict/deployment.h"
#include "verb.h"

namespace llmprof::app {

// --workload, --requests, --rate, … --slo: of every verb that simulates (Verb::made_options).
std::span<const Option> workload_options();

// A trace, or made by the options; `requests`: so many instead of --requests (0: as it says).
Result<serving::Workload> asked_workload(const Arguments& arguments, std::int64_t requests = 0);
Result<serving::Slo> asked_slo(const Arguments& arguments);
// What meta.json beside the files says, and on top of it what was asked for.
Result<predict::Deployment> asked_deployment(const Arguments& arguments);
// The same with these settings instead of --set.
Result<predict::Deployment> asked_deployment(const Arguments& arguments, const std::vector<std::string>& settings);
// Tables as asked for, else those that `bench --for` measured on this device, else none. Without a workload.
Result<predict::ServingInput> asked_input(const Arguments& arguments, const predict::Deployment& deployment);

}  // namespace llmprof::app

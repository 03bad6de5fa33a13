#pragma once
// Time of a stage in which its device had nothing to do, and what the host did then.

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/host_work.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct IdlePlace {   // a module's operator or a range that was open
  std::string name;  // "" none
  std::int64_t time_ns = 0;
};

struct IdleWork {  // by stack samples of the thread that makes the steps
  Work work = Work::kOther;
  std::string what, where;  // of most of its samples
  std::int64_t samples = 0, cpu_ns = 0;
};

struct StageIdle {
  std::string stage;
  bool warm_up = false;                     // of its steps in which the program warms up; else of all others
  std::int64_t gap_ns = 0, between_ns = 0;  // inside steps and between them: nothing executes, nothing is queued
  std::vector<IdlePlace> places;            // most time first; add up to the two
  std::vector<IdleWork> works;              // most time first
  std::int64_t samples = 0;                 // behind them

  std::int64_t idle_ns() const { return gap_ns + between_ns; }
  std::int64_t cpu_ns() const;  // of works, added up
  std::int64_t cpu_ns(Work work) const;
};

Result<std::vector<StageIdle>> idle_time(const trace::Run& run);
const StageIdle* find_idle(const std::vector<StageIdle>& idle, std::string_view stage, bool warm_up = false);

}  // namespace llmprof::analyze

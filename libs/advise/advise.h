#pragma once
// Exact command lines and environments for other tools, valid for the version that is installed, so that what they
// write can be imported (libs/importers).

#include <string>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::advise {

struct Wish {
  std::vector<std::string> command;  // what to profile
  const trace::Run* run = nullptr;   // an earlier run of it: hot kernels, stages; nullptr: none
  std::string stage;                 // of that run; "": the one with most time
  std::string output = "profile";    // base name of the files
};

struct Step {
  std::vector<std::string> environment;  // NAME=value
  std::vector<std::string> words;        // the command line; empty: only the environment before the user's command
  std::string why;
};

struct Advice {
  std::string tool, path, version;  // path and version "" if it is not installed here
  std::vector<Step> steps;          // in order; the last is the import
  std::vector<std::string> notes;   // mistakes that are easily made, what it costs, what it cannot tell
};

// "nsys", "ncu", "cublas", "torch".
Result<Advice> advise(const std::string& tool, const Wish& wish);

}  // namespace llmprof::advise

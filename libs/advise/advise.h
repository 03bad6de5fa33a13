#pragma once
// Exact command lines and environments for other tools, valid for the version that is installed, so that what they
// write can be imported (libs/importers).

#include <string>
#include <vector>

#include "advise/tool.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::advise {

struct Wish {
  std::vector<std::string> command;  // what to profile; may be a command line of the tool, which is then checked
  const trace::Run* run = nullptr;   // an earlier run of it with its derived tables: hot kernels, stages; nullptr: none
  std::string stage;                 // of that run; "": the one with most GPU time
  std::string output = "profile";    // base name of the files
  Places places;                     // where tools are looked for
};

// One thing to do: a file to write, a command line, or both.
struct Step {
  std::string why;
  std::vector<std::string> environment;  // NAME=value, before the words
  std::vector<std::string> words;        // the command line; "*.log" at the end of a word is left to the shell
  std::string output;                    // the file that standard output goes to; "": none
  std::string file, text;                // written first: the name and what stands in it
};

struct Advice {
  std::string tool, path, version;    // path and version "" if it is not installed here
  std::vector<std::string> mistakes;  // in the command or the environment that were given
  std::vector<Step> steps;            // in order; the last is the import
  std::vector<Step> alternatives;     // to the first step
  std::vector<std::string> notes;     // what it costs, what it cannot tell
};

// "nsys", "ncu", "cublas", "torch".
Result<Advice> advise(const std::string& tool, const Wish& wish);

// As a shell reads it: what is to be pasted stands on lines of its own, everything else is a comment.
std::string to_text(const Advice& advice);
base::Json to_json(const Advice& advice);
std::string shell_line(const Step& step);  // without the file

}  // namespace llmprof::advise

#pragma once
// What the makers of advice share: the given command, hints of an earlier run, words of a shell, one maker per tool.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/advise.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::advise {

// A command line as the user gave it: perhaps already one of nsys or ncu, then split into its options and the program.
struct GivenCommand {
  std::string tool;                                          // "nsys" or "ncu" if the command begins with it
  std::vector<std::pair<std::string, std::string>> options;  // of that tool: name with its dashes, value
  std::vector<std::string> environment;                      // NAME=value in front, or after "env"
  std::vector<std::string> program;                          // what is profiled in the end

  // Value of the first option of these names; nullptr if none is there.
  const std::string* option(std::string_view name, std::string_view other = "") const;
  // Value of a variable given in front of the command, else of this process; "" if it is not set.
  std::string variable(const std::string& name) const;
  std::string script() const;  // "x.py" of a Python program, "" otherwise
};

GivenCommand read_command(const std::vector<std::string>& words);

// What an earlier run of the same program tells: which kernels are hot, and by which range its stage can be found.

struct HotKernel {
  std::string function;  // as ncu's --kernel-name means it: without namespaces and template arguments
  double share = 0;      // of the stage's GPU time
  std::int64_t launches = 0;
};

// A range that begins and ends each step of the stage.
struct StageRange {
  std::string name, domain;
  bool push_pop = true;
  bool numbered = false;   // the steps' names differ in their digits; `name` is that of one step
  bool nvtx = true;        // false: a range that only another tool heard, such as torch's record_function
  std::int64_t count = 0;  // how often one of them was opened
};

struct Hints {
  std::string stage;
  std::int64_t steps = 0;
  std::vector<StageRange> ranges;                          // one, or none when the stage was inferred
  std::vector<HotKernel> kernels;                          // most time first, until they hold most of the stage's time
  double share = 0;                                        // of the stage's GPU time, in these
  std::int64_t launches_in_step = 0, launches_before = 0;  // of these: in one step, before the third step of the stage
};

Result<Hints> hints_of(const trace::Run& run, const std::string& stage);

// "void at::native::(anonymous namespace)::softmax<4>(float*)" is "softmax"; "" if there is no such name in it.
std::string function_of(std::string_view kernel);
// "^(softmax|gemm_kernel)$", every name escaped; very long ones cut, with ".*" for the rest.
std::string kernel_regex(const std::vector<HotKernel>& kernels);

// Words as a POSIX shell reads them back.

std::string shell_word(std::string_view word);
// The same, but '*' stays a pattern: "a b/*.log" is 'a b/'*.log.
std::string shell_pattern(std::string_view word);
std::string shell_words(const std::vector<std::string>& words);
// "NAME=value" with the value quoted.
std::string shell_assignment(std::string_view assignment);

// What advice about other tools uses of Nsight Systems, too.

// Up to the program: "nsys profile … -o OUTPUT".
std::vector<std::string> nsys_words(const Tool& nsys, const std::string& output);
Step nsys_export(const Tool& nsys, const std::string& output);

// Mistakes that are often copied from page to page, found in a command, an environment or a script, each with what to
// do instead.

std::vector<std::string> mistakes_in(const GivenCommand& given);

// One maker per tool; advise.cpp prepares what they share.

struct Context {
  const Wish& wish;
  GivenCommand given;
  std::optional<Hints> hints;  // of wish.run

  // A step that runs the user's program below a tool, with the variables it was given.
  Step run_step(std::string why, std::vector<std::string> words, std::vector<std::string> environment = {}) const;
};

Advice advise_nsys(const Context& context);
Advice advise_ncu(const Context& context);
Advice advise_cublas(const Context& context);
Result<Advice> advise_torch(const Context& context);

Step import_step(const std::vector<std::string>& files, const std::string& output);

}  // namespace llmprof::advise

#pragma once
// Names of runs and files that users give, or leave out.

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "verb.h"

namespace llmprof::app {

bool is_run(const std::string& name);  // `x` and `x.llmprof` are the same

// The last `count` runs of the current folder, the latest first, by the time they were made. Fewer if there are no
// more.
std::vector<std::string> latest_runs(std::size_t count);

struct RunArgument {
  std::string run;
  std::vector<std::string> rest;  // the other positionals
};

// The run that a verb is about: its first positional. Where there is none, or only one word which `other` says is no
// run (SQL, the name of a picture), it is the latest of this folder, and stderr says which.
using IsOther = std::function<bool(const std::string& word)>;
Result<RunArgument> run_argument(const Arguments& arguments, const IsOther& other = nullptr);
Result<std::string> latest_run();  // the same, of a verb that was given none

// --stage NAME: "" or one of the run's stages, else an error with what was perhaps meant.
Result<void> check_stage(const std::string& stage, const std::vector<std::string>& stages);

// The name of a file says what is in it: another ending than these is an error that lists them. "-" and devices pass.
Result<void> check_ending(std::string_view flag, const std::string& file,
                          std::initializer_list<std::string_view> endings);
Result<void> check_ending(std::string_view flag, const std::string& file, const std::vector<std::string_view>& endings);
// -o of verbs that make a run: a folder, so "x.csv" or "x.html" is a misunderstanding.
Result<void> check_run_name(const std::string& name);
// Before hours of work: whether a run can go there. A folder that is no run is left alone, also with `force`.
Result<void> check_place(const std::string& folder, bool force);

}  // namespace llmprof::app

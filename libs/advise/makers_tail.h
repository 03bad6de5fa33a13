#pragma once
// One maker per tool; advise.cpp prepares what they share.

#include <optional>

#include "advise/advise.h"
#include "advise/given_command.h"
#include "advise/hints.h"

namespace llmprof::advise {

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

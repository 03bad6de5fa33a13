#pragma once
// The prices of `llmprof whatif`: the same step by the kernels of the recorded program, by operator tables, or by
// floors. It joins libs/analyze/design (what a setup is, its floors and memory) with libs/predict (what it would take).
// Both are of one layer and know nothing of each other, so the join is here.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/design/cliffs.h"
#include "analyze/design/whatif.h"
#include "predict/forecast.h"
#include "predict/implementation/price.h"
#include "predict/measured/run_tables.h"
#include "verb.h"

namespace llmprof::app {

class WhatIfPrices {
 public:
  // Finds operator tables of `setup`: --tables, else those that bench --for kept here.
  static Result<WhatIfPrices> make(const Arguments& arguments, const analyze::design::ModelSetup& setup,
                                   predict::TimesOf times);
  // The program of a recorded run of this setup, with times of its kernels.
  void use_program(predict::ProgramCost program) { program_ = std::move(program); }

  Result<analyze::design::Priced> price(const analyze::design::ModelSetup& setup, analyze::design::Source at_most);
  analyze::design::Pricer pricer() {
    return [this](const auto& setup, analyze::design::Source at_most) { return price(setup, at_most); };
  }

  // What beside the design cliffs depend on: SMs, vLLM's rules (`engine`: "vllm@0.19"), jumps in the tables.
  analyze::design::CliffFacts cliff_facts(const analyze::design::ModelSetup& setup, const std::string& engine,
                                          const std::vector<std::string>& settings);
  const std::string& problem() const { return problem_; }  // why tables that are there are not used; "" they are

 private:
  // A model on a device, with its operators' times.
  struct Cost {
    std::unique_ptr<predict::TableStepCost> in_proportion, by_difference;  // the second only where some are scaled
    std::vector<predict::OperatorError> errors;
    std::vector<std::string> notes;
  };
  Cost* cost_of(const analyze::design::ModelSetup& setup);  // nullptr: there are no tables for it
  std::optional<Cost> make_cost(const analyze::design::ModelSetup& setup);
  bool is_program(const analyze::design::ModelSetup& setup) const;
  void add_program(const analyze::design::ModelSetup& setup, analyze::design::Priced& priced) const;
  void add_tables(Cost& cost, const analyze::design::ModelSetup& setup, analyze::design::Priced& priced);

  analyze::design::ModelSetup base_;
  predict::TimesOf times_ = predict::TimesOf::kInGraph;
  predict::OperatorTables tables_;  // of base_; may be empty
  bool given_ = false;              // they were asked for: no others are looked for
  std::optional<predict::ProgramCost> program_;
  std::map<std::string, std::optional<Cost>> costs_;
  std::string problem_;
};

}  // namespace llmprof::app

#pragma once
// What two sides did, held against each other before their times are: the size of their steps, their model, their
// devices, and how they were recorded. Times are those of the same work only where this says so.

#include <string>
#include <string_view>
#include <vector>

#include "analyze/diff/digest.h"

namespace llmprof::analyze {

struct Side {
  std::string name;  // "before.llmprof", "3 runs (base_1, base_2, base_3)", "baseline main"
  std::vector<Digest> runs;
};

struct Difference {
  std::string kind;           // "work": what a step does; "amount": how many steps; "device"; "setup"
  std::string name;           // "batch", "prompt", "driver"
  std::string stage;          // "" of the whole run, or of all stages that have it
  std::string before, after;  // in words; "" unknown
  std::string text;           // "batch 8 instead of 1"
};

// What the times of a step, or of a part of it, are divided by before they are compared.
struct Basis {
  bool comparable = true;        // false: other work, and nothing to divide it by
  std::string per = "step";      // "token", "TFLOP", "GB"
  double before = 1, after = 1;  // how many of these a step has
};

struct StageWork {
  std::string stage;
  std::string same;  // "same", "different", "unknown": the work of a step
  Basis basis;
  std::string why;  // "batch 8 instead of 1"; why it is unknown
  bool same_steps = true;
};

struct WorkDiff {
  std::string same;  // "same": also as many steps; "different", "unknown"
  std::string text;  // whole sentences
  bool same_model = true, same_device = true, same_command = true;
  std::vector<Difference> differences;  // of the work first
  std::vector<StageWork> stages;        // that both have, but load and warm-up
};

WorkDiff compare_work(const Side& before, const Side& after);

const StageWork* find_stage_work(const WorkDiff& work, std::string_view stage);

// Of a part of a stage, by its own FLOPs and bytes where these are known.
Basis part_basis(const WorkDiff& work, const PartDigest& before, const PartDigest& after);

// Why a change of the measure is no change for the same work; "" where it is one.
std::string measure_caveat(const WorkDiff& work, std::string_view measure);
// "decode.mbu": a measure of the stage that can be compared whatever was computed; "" if both sides know none.
std::string comparable_measure(const Side& before, const Side& after, std::string_view stage);

}  // namespace llmprof::analyze

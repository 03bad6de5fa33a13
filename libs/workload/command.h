#pragma once
// The commands of llmprof-workload, one file each, and what they share.

#include <fmt/format.h>

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "workload/choose_device.h"

namespace CLI {
class App;
}

namespace llmprof::workload {

// Adds the command to `app`. When the user names it, `chosen` becomes the function to run; it returns the exit status.
void add_infer(CLI::App& app, std::function<int()>& chosen);
void add_train(CLI::App& app, std::function<int()>& chosen);
void add_serve(CLI::App& app, std::function<int()>& chosen);

// What the user chose by --device, told on standard error where the choice was the program's.
Result<ChosenDevice> choose_device_and_tell(const std::string& name);

// Threads of the program and of BLAS, which it sets; 0: as many as there are processors.
Result<std::int64_t> choose_threads(std::int64_t wanted);

// The model with the sizes given by hand (not 0) in place of its own. What follows from them is derived again.
Result<ModelConfig> with_sizes(ModelConfig config, const ModelConfig& sizes);

// The names of presets, one line each.
template <class Presets>
int list_presets(const Presets& presets, int width) {
  for (const auto& preset : presets) fmt::print("{:<{}} {}\n", preset.name, width, preset.summary);
  return 0;
}

// Writes to standard output at once: a step of a large model takes seconds.
void print(const std::string& text);

// Tells the user; returns the exit status: 1 usage, 2 anything else.
int fail(const Error& error);

}  // namespace llmprof::workload

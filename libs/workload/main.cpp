// llmprof-workload: the embedded transformer as a program, profiled from outside like any user's program.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <thread>

#include "base/text_table.h"
#include "workload/command.h"
#include "workload/linear.h"

namespace llmprof::workload {

Result<std::int64_t> choose_threads(std::int64_t wanted) {
  if (wanted < 0 || wanted > 1024) return Error{ErrorCode::kUsage, "threads must be 1 to 1024", ""};
  const std::int64_t threads = wanted != 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
  set_blas_threads(threads);
  return threads;
}

Result<ChosenDevice> choose_device_and_tell(const std::string& name) {
  Result<ChosenDevice> device = choose_device(name);
  if (device && name == "auto") fmt::print(stderr, "llmprof-workload: {}\n", base::printable(device->reason));
  return device;
}

Result<ModelConfig> with_sizes(ModelConfig config, const ModelConfig& sizes) {
  if (sizes.hidden != 0 || sizes.heads != 0) config.head_dim = 0;
  if (sizes.hidden != 0) config.intermediate = 0;
  if (sizes.heads != 0) config.kv_heads = 0;
  for (const auto field : {&ModelConfig::layers, &ModelConfig::hidden, &ModelConfig::heads, &ModelConfig::kv_heads,
                           &ModelConfig::intermediate, &ModelConfig::vocab, &ModelConfig::positions}) {
    if (sizes.*field != 0) config.*field = sizes.*field;
  }
  return complete(config);
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int fail(const Error& error) {
  // Names in it may come from an untrusted file.
  fmt::print(stderr, "llmprof-workload: {}\n", base::printable(error.message));
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
  return error.code == ErrorCode::kUsage ? 1 : 2;
}

}  // namespace llmprof::workload

int main(int argc, char** argv) {
  CLI::App app("The transformer inside llmprof: GPT-2 and Llama families, on the CPU or an NVIDIA GPU.",
               "llmprof-workload");
  app.require_subcommand(1);
  std::function<int()> chosen;
  llmprof::workload::add_infer(app, chosen);
  llmprof::workload::add_train(app, chosen);
  llmprof::workload::add_serve(app, chosen);
  try {
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  } catch (const std::bad_alloc&) {
    std::fputs("llmprof-workload: not enough memory for this model\n", stderr);
    return 2;
  }
}

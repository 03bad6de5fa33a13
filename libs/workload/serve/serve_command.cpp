// llmprof-workload serve: the model behind the OpenAI protocol.

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>

#include "base/errors.h"
#include "base/file.h"
#include "base/human.h"
#include "base/strings.h"
#include "llmprof/annotate.h"
#include "serving/engine.h"
#include "workload/command.h"
#include "workload/cuda/paged_model.h"
#include "workload/model_options.h"
#include "workload/serve/service.h"
#include "workload/serve/step_runner.h"

namespace llmprof::workload {
namespace {

// Of the KV cache, where nobody says how many blocks: it is not touched before it is used.
constexpr std::int64_t kKvBytesOnCpu = std::int64_t{1} << 30, kKvBytesOnGpu = std::int64_t{8} << 30;

struct Options {
  ModelOptions model;
  std::string host = "127.0.0.1", port_file, name, engine = "vllm", policy, steps;
  std::uint16_t port = 8000;
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0, max_model_len = 0, block_size = 0, blocks = 0;  // 0: rules
  std::optional<bool> prefix_caching;
  std::vector<std::string> settings;
  std::int64_t eos = -1, shutdown_s = 30, connections = 4096;
};

void describe(CLI::App& serve, Options& o) {
  describe_model(serve, o.model);
  serve.add_option("--host", o.host, "address to listen on; beyond loopback, everybody may use it")
      ->capture_default_str();
  serve.add_option("--port", o.port, "port; 0: any that is free, printed")->capture_default_str();
  serve.add_option("--port-file", o.port_file, "file to write the port to, when requests are taken");
  serve.add_option("--served-model-name", o.name, "name of the model in requests (default: the preset's)");
  serve.add_option("--engine", o.engine, "whose scheduling rules: vllm or vllm@VERSION")->capture_default_str();
  serve.add_option("--max-num-seqs", o.max_num_seqs, "requests running at once");
  serve.add_option("--max-num-batched-tokens", o.max_num_batched_tokens, "tokens of a step");
  serve.add_option("--max-model-len", o.max_model_len, "tokens of prompt and output (default: positions of the model)");
  serve.add_option("--block-size", o.block_size, "tokens of a block of the KV cache");
  serve.add_option("--num-gpu-blocks", o.blocks,
                   "blocks of the KV cache, one of them reserved (default: as many as --max-num-seqs requests could "
                   "need, at most 1 GiB, on a GPU 8 GiB)");
  serve.add_flag_callback(
      "--enable-prefix-caching", [&o] { o.prefix_caching = true; }, "find blocks of equal beginnings (default)");
  serve.add_flag_callback("--no-enable-prefix-caching", [&o] { o.prefix_caching = false; }, "compute them again");
  serve.add_option("--scheduling-policy", o.policy, "fcfs or priority");
  serve.add_option("--set", o.settings, "KEY=VALUE: another rule of the engine, as llmprof predict has them");
  serve.add_option("--eos", o.eos, "token that ends a request, unless it says ignore_eos (default: none)");
  serve.add_option("--steps", o.steps, "file for a line of JSON about every step");
  serve.add_option("--shutdown-timeout", o.shutdown_s, "seconds that running requests get after SIGTERM")
      ->capture_default_str();
  serve.add_option("--max-connections", o.connections, "clients at once")->capture_default_str();
}

double kv_bytes_per_token(const ModelConfig& c, ElementType type) {
  return 2.0 * static_cast<double>(c.layers) * static_cast<double>(c.kv_heads) * static_cast<double>(c.head_dim) *
         static_cast<double>(bytes_of(type));
}

// As many blocks as the running requests could need, within a limit.
std::int64_t default_blocks(const serving::EngineRules& rules, double bytes_per_token, bool gpu) {
  const double of_request = std::ceil(static_cast<double>(rules.max_model_len) / static_cast<double>(rules.block_size));
  const double needed = of_request * static_cast<double>(rules.max_num_seqs);
  const double most = static_cast<double>(gpu ? kKvBytesOnGpu : kKvBytesOnCpu) /
                      (bytes_per_token * static_cast<double>(rules.block_size));
  return std::max<std::int64_t>(2, 1 + static_cast<std::int64_t>(std::min(needed, most)));
}

Result<serving::EngineRules> choose_rules(const Options& o, const ModelConfig& config, ElementType type, bool gpu) {
  LLMPROF_LET(serving::EngineRules rules, serving::engine_rules(o.engine, 0));
  // A step's tokens are known before the next is scheduled, and its kernels are launched one by one.
  for (const char* const own : {"async_scheduling=false", "cudagraph_mode=none"})
    LLMPROF_TRY(serving::set_rule(rules, own));
  for (const auto& [key, value] : {std::pair{"max_num_seqs", o.max_num_seqs},
                                   {"max_num_batched_tokens", o.max_num_batched_tokens},
                                   {"block_size", o.block_size},
                                   {"num_gpu_blocks", o.blocks},
                                   {"max_model_len", o.max_model_len}}) {
    if (value != 0) LLMPROF_TRY(serving::set_rule(rules, fmt::format("{}={}", key, value)));
  }
  if (!o.policy.empty()) LLMPROF_TRY(serving::set_rule(rules, "policy=" + o.policy));
  if (o.prefix_caching)
    LLMPROF_TRY(serving::set_rule(rules, fmt::format("enable_prefix_caching={}", *o.prefix_caching)));
  for (const std::string& setting : o.settings) LLMPROF_TRY(serving::set_rule(rules, setting));
  if (rules.scheduler != serving::SchedulerKind::kContinuous || rules.async_scheduling ||
      rules.cudagraph_mode != serving::GraphMode::kNone)
    return Error{ErrorCode::kUsage,
                 "this server schedules continuously, a step at a time, and launches kernels one by one",
                 "leave scheduler, async_scheduling and cudagraph_mode as they are"};
  if (rules.max_model_len == 0 || rules.max_model_len > config.positions) {
    if (rules.max_model_len > config.positions)
      return usage_error("--max-model-len {}: the model has {} positions", rules.max_model_len, config.positions);
    LLMPROF_TRY(serving::set_rule(rules, fmt::format("max_model_len={}", config.positions)));
  }
  if (rules.num_gpu_blocks == 0) {
    const std::int64_t blocks = default_blocks(rules, kv_bytes_per_token(config, type), gpu);
    LLMPROF_TRY(serving::set_rule(rules, fmt::format("num_gpu_blocks={}", blocks)));
  }
  if (rules.num_gpu_blocks < 2) return usage_error("--num-gpu-blocks {}: one is reserved", rules.num_gpu_blocks);
  LLMPROF_TRY(serving::check_rules(rules));
  return rules;
}

// "vllm@0.28 max_num_seqs=256 …": what a profiler is told about the engine.
std::string rules_text(const serving::EngineRules& rules) {
  std::string text = rules.engine + (rules.version.empty() ? "" : "@" + rules.version);
  for (const serving::RuleSource& each : rules.sources) text += fmt::format(" {}={}", each.key, each.value);
  return text;
}

std::string default_name(const Options& o, const Preset& preset) {
  if (o.model.config_path.empty()) return std::string(preset.name);
  return std::string(base::base_name(o.model.config_path));
}

struct Server {
  ModelConfig config;
  ElementType type = ElementType::kFloat32;
  serving::EngineRules rules;
  std::int64_t threads = 1;
  ServiceOptions service;
};

// The first signal ends the server gently, the second at once.
std::atomic<Service*> g_service = nullptr;
std::atomic<int> g_signals = 0;
void on_signal(int number) {
  if (g_signals.fetch_add(1) > 0) ::_exit(128 + number);
  if (Service* const service = g_service.load()) service->shut_down();
}

void catch_signals(Service* service) {
  g_service = service;
  struct sigaction action {};
  action.sa_handler = service != nullptr ? on_signal : SIG_DFL;
  for (const int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
}

// Not more than the files that may be open, without those that the rest of the program takes.
void limit_to_descriptors(HttpLimits& limits) {
  constexpr std::size_t kOthers = 48;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t all = limit.rlim_cur;
  limits.refusals = std::min(limits.refusals, all / 8);
  const std::size_t taken = limits.refusals + kOthers;
  limits.connections = std::min(limits.connections, all > taken ? all - taken : 1);
}

Result<void> tell_where(const Options& o, const Server& server, const HttpServer& http, std::size_t clients) {
  const bool v6 = base::contains(o.host, ":");
  print(fmt::format("model    {} ({}), {} layers, hidden {}, {}\n", server.service.limits.model,
                    family_name(server.config.family), server.config.layers, server.config.hidden,
                    weights_text(o.model)));
  print(fmt::format("engine   {}\n", rules_text(server.rules)));
  if (std::cmp_less(clients, o.connections))
    print(fmt::format("clients  at most {} at once: more open files are not permitted (ulimit -n)\n", clients));
  print(fmt::format("serving  http://{}{}{}:{}/v1\n", v6 ? "[" : "", o.host, v6 ? "]" : "", http.port()));
  if (o.port_file.empty()) return {};
  return base::write_file(o.port_file, fmt::format("{}\n", http.port()));
}

// This thread is the engine's.
Result<void> serve_with(const Options& o, Server& server, StepRunner& runner) {
  LLMPROF_TRY(runner.prepare());
  HttpLimits limits;
  limits.connections = static_cast<std::size_t>(std::clamp<std::int64_t>(o.connections, 1, 1 << 20));
  limit_to_descriptors(limits);
  LLMPROF_LET(const std::unique_ptr<HttpServer> http, HttpServer::listen(o.host, o.port, limits));
  Service service(server.rules, runner, *http, server.service);
  LLMPROF_TRY(service.open());
  catch_signals(&service);
  LLMPROF_TRY(tell_where(o, server, *http, limits.connections));
  std::atomic<bool> stop = false;
  Result<void> served;
  std::thread io([&] {
    served = http->run(service, stop, std::chrono::seconds(5));
    if (!served) service.end();
  });
  const Result<void> ran = service.run_engine();
  if (!ran) service.fail_all();
  stop = true;
  http->wake();
  io.join();
  catch_signals(nullptr);
  LLMPROF_TRY(ran);
  return served;
}

Result<void> serve_on_cpu(const Options& o, Server& server) {
  ThreadPool pool(server.threads);
  llmprof_stage_push("load", 0, 0, 0);
  auto weights = make_weights(o.model, server.config, pool);
  llmprof_pop();
  if (!weights) return weights.error();
  const auto model = make_model(server.config, std::move(*weights), pool);
  CpuStepRunner runner(*model, server.rules.num_gpu_blocks, server.rules.block_size);
  return serve_with(o, server, runner);
}

Result<void> serve_on_gpu(const Options& o, Server& server, cuda::Device& gpu) {
  LLMPROF_TRY(cuda::check_heads(server.config));
  const cuda::PagedModel::Sizes sizes{.rows = server.rules.max_num_batched_tokens,
                                      .sequences = server.rules.max_num_seqs,
                                      .positions = server.rules.max_model_len,
                                      .blocks = server.rules.num_gpu_blocks,
                                      .block_tokens = server.rules.block_size};
  llmprof_stage_push("load", 0, 0, 0);
  ThreadPool pool(o.model.weights_path.empty() ? 1 : server.threads);
  auto weights = make_device_weights(o.model, server.config, server.type, pool, gpu);
  const Result<void> loaded = weights ? gpu.finish() : weights.error();
  llmprof_pop();
  LLMPROF_TRY(loaded);
  cuda::DeviceStepRunner runner(gpu, server.config, std::move(*weights), sizes);
  return serve_with(o, server, runner);
}

Result<void> serve(const Options& o) {
  LLMPROF_LET(const ChosenDevice device, choose_device_and_tell(o.model.device));
  LLMPROF_LET(const Preset preset, choose_preset(o.model, device));
  Server server;
  LLMPROF_LET(server.config, choose_model(o.model, preset));
  LLMPROF_LET(server.type, choose_type(o.model.type, device));
  LLMPROF_LET(server.rules, choose_rules(o, server.config, server.type, device.gpu != nullptr));
  LLMPROF_LET(server.threads, choose_threads(o.model.threads));
  if (o.eos >= server.config.vocab) return usage_error("--eos {}: the vocabulary has {}", o.eos, server.config.vocab);
  server.service = {.limits = {.model = o.name.empty() ? default_name(o, preset) : o.name,
                               .vocab = server.config.vocab,
                               .max_model_len = server.rules.max_model_len,
                               .eos = o.eos < 0 ? std::nullopt : std::optional(static_cast<Token>(o.eos))},
                    .shutdown = std::chrono::seconds(std::clamp<std::int64_t>(o.shutdown_s, 0, 86'400)),
                    .steps_path = o.steps};
  ::signal(SIGPIPE, SIG_IGN);
  llmprof_model(config_json(server.config, server.type).c_str());
  llmprof_note("engine", rules_text(server.rules).c_str());
  return device.gpu != nullptr ? serve_on_gpu(o, server, *device.gpu) : serve_on_cpu(o, server);
}

int run(const Options& o) {
  const Result<void> served = serve(o);
  return served ? 0 : fail(served.error());
}

}  // namespace

void add_serve(CLI::App& app, std::function<int()>& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("serve", "answer requests of the OpenAI protocol");
  describe(command, *options);
  command.callback([&chosen, options] { chosen = [options] { return run(*options); }; });
}

}  // namespace llmprof::workload

// The options of `llmprof load` as settings of libs/load.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/file.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "given_names.h"
#include "live_verb.h"
#include "load_verb.h"
#include "model_verb.h"
#include "record/record.h"
#include "report_verb.h"
#include "serving_options.h"
#include "trace/run.h"

namespace llmprof::app {
namespace {

constexpr std::uint64_t kProbeNs = 30'000'000'000;

Error wrong(std::string message, std::string hint = "") {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
}

Result<double> number_between(const Arguments& arguments, std::string_view flag, double least, double most) {
  const auto value = base::parse_number<double>(arguments.get(flag));
  if (value && *value >= least && *value <= most) return *value;
  return wrong(fmt::format("{} wants a number from {:g} to {:g}, not '{}'", flag, least, most, arguments.get(flag)));
}

Result<void> add_headers(const Arguments& arguments, std::vector<std::string>& headers) {
  bool authorized = false;
  for (const std::string& header : arguments.all("--header")) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || colon == 0 || header.find_first_of("\r\n") != std::string::npos)
      return wrong("--header wants a line", "as in --header 'X-Tenant: a'");
    authorized = authorized || base::lowercase(header.substr(0, colon)) == "authorization";
    headers.push_back(header);
  }
  const std::string key = base::env_or("OPENAI_API_KEY", "");
  if (!authorized && !key.empty()) headers.push_back("Authorization: Bearer " + key);
  return {};
}

Result<load::HttpSettings> http_settings(const Arguments& arguments) {
  load::HttpSettings out;
  LLMPROF_LET(out.base_url, load::base_url_of(arguments.positionals.front()));
  out.verify_tls = !arguments.on("--insecure");
  out.ca_file = arguments.get("--cacert");
  if (!out.ca_file.empty() && !base::is_file(out.ca_file))
    return wrong(fmt::format("--cacert {}: no such file", out.ca_file));
  LLMPROF_LET(const double timeout_ns, time_ns("--timeout", arguments.get("--timeout")));
  if (timeout_ns < 1e6) return wrong("--timeout wants at least 1ms");
  out.timeout_ns = static_cast<std::uint64_t>(timeout_ns);
  LLMPROF_TRY(add_headers(arguments, out.headers));
  return out;
}

Result<load::BodyOptions> body_options(const Arguments& arguments) {
  load::BodyOptions out;
  out.stream = !arguments.on("--no-stream");
  out.ignore_eos = arguments.on("--ignore-eos");
  out.send_ids = arguments.on("--send-ids");
  if (out.send_ids && !arguments.given("--tokenizer")) return wrong("--send-ids needs --tokenizer FILE");
  if (arguments.given("--temperature")) {
    LLMPROF_LET(out.temperature, number_between(arguments, "--temperature", 0, 100));
  }
  for (const std::string& field : arguments.all("--body")) {
    const std::size_t equals = field.find('=');
    if (equals == std::string::npos || equals == 0)
      return wrong(fmt::format("--body wants KEY=JSON, not '{}'", field), "as in --body top_p=0.9");
    out.extra.emplace_back(field.substr(0, equals), field.substr(equals + 1));
  }
  LLMPROF_TRY(load::Bodies::make(out));  // its fields are JSON, or it is said now
  return out;
}

Result<std::string> folder_of(const Arguments& arguments) {
  const bool series = arguments.given("--sweep") || arguments.on("--find-rate");
  if (arguments.on("--no-run") || (series && !arguments.given("--output"))) return std::string();
  std::string name = arguments.get("--output");
  if (name.empty()) name = record::default_name("load", static_cast<std::int64_t>(wall_now() * 1e9));
  LLMPROF_TRY(check_run_name(name));
  const std::string folder = trace::run_folder(name);
  if (series) return folder.substr(0, folder.size() - std::string_view(".llmprof").size());  // one run a point
  LLMPROF_TRY(check_place(folder, arguments.on("--force")));
  return folder;
}

Result<void> add_schedule(const Arguments& arguments, AskedLoad& asked) {
  load::LoadOptions& options = asked.options;
  LLMPROF_LET(asked.requests, number_in<std::int64_t>(arguments, "--requests", "a number of requests", 1, 10'000'000));
  LLMPROF_LET(asked.seed, number_in<std::uint64_t>(arguments, "--seed", "a whole number"));
  LLMPROF_LET(asked.warm_up, number_in<std::size_t>(arguments, "--warmup", "a number of requests", 0, 1'000'000));
  if (arguments.given("--concurrency")) {
    LLMPROF_LET(options.concurrency, number_in<std::int64_t>(arguments, "--concurrency", "a number of requests", 1));
  }
  if (arguments.given("--max-outstanding")) {
    LLMPROF_LET(options.most_outstanding,
                number_in<std::int64_t>(arguments, "--max-outstanding", "a number of requests", 1));
    if (options.concurrency > 0) return wrong("--concurrency and --max-outstanding exclude each other");
  }
  asked.steady_level = options.concurrency > 0 ? 0.9 : 0.5;
  if (arguments.given("--steady")) {
    LLMPROF_LET(asked.steady_level, number_between(arguments, "--steady", 0, 1));
  }
  if (arguments.given("--duration")) {
    LLMPROF_LET(const double duration_ns, time_ns("--duration", arguments.get("--duration")));
    options.duration_ns = static_cast<std::uint64_t>(duration_ns);
  }
  return {};
}

Result<void> find_server(const Arguments& arguments, load::LoadOptions& options) {
  std::optional<load::Endpoint> endpoint;
  const std::string asked = arguments.get("--endpoint");
  if (asked == "chat") endpoint = load::Endpoint::kChat;
  if (asked == "completions") endpoint = load::Endpoint::kCompletions;
  if (!asked.empty() && !endpoint) return wrong(fmt::format("--endpoint: '{}' is neither completions nor chat", asked));
  load::HttpSettings patient = options.http;
  patient.timeout_ns = std::min(patient.timeout_ns, kProbeNs);
  LLMPROF_LET(const std::unique_ptr<load::HttpClient> client, load::HttpClient::make(patient));
  LLMPROF_LET(const load::Server server,
              load::find_server(*client, options.http.base_url, arguments.get("--model"), endpoint));
  options.body.model = server.model, options.body.endpoint = server.endpoint;
  return {};
}

// A data set without times is sent at those of the options.
Result<void> add_arrivals(const Arguments& arguments, load::Prompts& prompts) {
  const bool timed = std::ranges::any_of(prompts.prompts, [](const load::Prompt& each) { return each.arrival_ns > 0; });
  if (timed && !arguments.given("--rate")) return {};
  LLMPROF_LET(const serving::Workload workload,
              asked_workload(arguments, static_cast<std::int64_t>(prompts.prompts.size())));
  for (std::size_t i = 0; i < prompts.prompts.size(); ++i) prompts.prompts[i].arrival_ns = workload.requests[i].arrival_ns;
  if (!arguments.given("--concurrency")) prompts.description += fmt::format(", {} requests/s", arguments.get("--rate"));
  return {};
}

}  // namespace

Result<AskedLoad> asked_load(const Arguments& arguments) {
  AskedLoad asked;
  LLMPROF_LET(asked.options.http, http_settings(arguments));
  LLMPROF_LET(asked.options.body, body_options(arguments));
  LLMPROF_LET(asked.slo, asked_slo(arguments));
  LLMPROF_TRY(add_schedule(arguments, asked));
  LLMPROF_LET(asked.folder, folder_of(arguments));
  if (arguments.given("--tokenizer")) {
    LLMPROF_LET(load::Tokenizer tokenizer, load::Tokenizer::read(arguments.get("--tokenizer")));
    asked.tokenizer = std::move(tokenizer);
  }
  if (arguments.given("--prompts") && arguments.given("--workload"))
    return wrong("--prompts and --workload exclude each other", "--prompts reads traces, too");
  LLMPROF_TRY(asked_workload(arguments, 1));  // what is wrong in its options is said before a server is asked
  LLMPROF_TRY(find_server(arguments, asked.options));
  asked.options.keep_text = asked.tokenizer || arguments.given("--vllm-json");
  const auto us = static_cast<std::uint64_t>(wall_now() * 1e6);
  asked.options.id_prefix = fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}", us >> 28 & 0xFFFFFFFF, us >> 12 & 0xFFFF,
                                        us & 0xFFF, static_cast<unsigned>(::getpid()) & 0xFFF);
  return asked;
}

Result<load::Prompts> asked_prompts(const Arguments& arguments, const AskedLoad& asked, std::int64_t requests,
                                    std::uint64_t seed) {
  const load::Tokenizer* tokenizer = asked.tokenizer ? &*asked.tokenizer : nullptr;
  if (!arguments.given("--prompts")) {
    LLMPROF_LET(const serving::Workload workload, asked_workload(arguments, requests));
    return load::synthetic_prompts(workload, tokenizer, seed);
  }
  load::PromptOptions options{.tokenizer = tokenizer, .seed = seed};
  const bool all = !arguments.given("--requests") && requests == asked.requests;
  options.most = all ? 0 : requests;
  if (arguments.given("--new")) {
    LLMPROF_LET(options.output_tokens, number_in<std::int64_t>(arguments, "--new", "a number of tokens", 1));
  }
  LLMPROF_LET(load::Prompts prompts, load::read_prompts(arguments.get("--prompts"), options));
  if (prompts.prompts.empty())
    return Error{ErrorCode::kNotFound, arguments.get("--prompts") + " has no prompt that can be sent", prompts.description};
  const bool chat = asked.options.body.endpoint == load::Endpoint::kChat;
  if (!chat && std::ranges::any_of(prompts.prompts, [](const load::Prompt& each) { return !each.messages.empty(); }))
    return wrong(arguments.get("--prompts") + " holds chats", "--endpoint chat");
  LLMPROF_TRY(add_arrivals(arguments, prompts));
  return prompts;
}

Result<load::Prompts> warm_up_prompts(const Arguments& arguments, const AskedLoad& asked) {
  if (asked.warm_up == 0) return load::Prompts{};
  // What they leave in a prefix cache is of no use to those that count.
  constexpr std::uint64_t kOther = 0x7761726D7570;
  const auto count = static_cast<std::int64_t>(asked.warm_up);
  LLMPROF_LET(load::Prompts prompts, asked_prompts(arguments, asked, count, asked.seed ^ kOther));
  if (prompts.prompts.size() > asked.warm_up) prompts.prompts.resize(asked.warm_up);
  return prompts;
}

}  // namespace llmprof::app

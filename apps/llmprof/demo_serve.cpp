#include "demo_serve.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/file.h"
#include "base/numbers.h"
#include "child.h"

namespace llmprof::app {
namespace {

constexpr auto kStart = std::chrono::seconds(120);  // measuring peaks comes first, and weights are made

Error failed(std::string_view what, int status) {
  return Error{ErrorCode::kIo, fmt::format("{} ended with status {}", what, status), "what it said stands above"};
}

// The server says its port when it takes requests.
Result<std::string> wait_for_port(const std::string& file, Child& server) {
  for (const auto until = std::chrono::steady_clock::now() + kStart; std::chrono::steady_clock::now() < until;) {
    if (const std::optional<int> status = server.status()) return failed("the server", *status);
    if (const Result<std::string> text = base::read_file(file, 64)) {
      const std::string port = text->substr(0, text->find('\n'));
      if (text->ends_with('\n')) return port;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Error{ErrorCode::kIo, "the server did not start in two minutes", ""};
}

}  // namespace

Result<std::string> run_serve_demo(const ServeDemo& demo) {
  LLMPROF_LET(const TemporaryFolder folder, TemporaryFolder::make());
  const std::string port_file = folder.path() + "/port", server_run = demo.output + "-server",
                    client_run = demo.output + "-client";
  std::vector<std::string> record{demo.llmprof, "record", "-f", "-o", server_run, "--no-report"};
  if (!demo.peaks) record.emplace_back("--no-peaks");
  record.insert(record.end(), {"--", demo.workload, "serve", "--port", "0", "--port-file", port_file});
  record.insert(record.end(), demo.server.begin(), demo.server.end());
  // Ctrl-C ends the load, which keeps what it has; the server is then asked to end by us, as always.
  LLMPROF_LET(Child server, Child::start(record, {.own_group = true}));
  LLMPROF_LET(const std::string port, wait_for_port(port_file, server));

  std::vector<std::string> load{demo.llmprof, "load", "http://127.0.0.1:" + port, "-f", "-o", client_run};
  load.insert(load.end(), demo.load.begin(), demo.load.end());
  LLMPROF_LET(const int loaded, run_child(load, {}));
  server.signal(SIGTERM);
  const int served = server.wait();
  if (loaded != 0) return failed("llmprof load", loaded);
  if (served != 0) return failed("the recorded server", served);
  LLMPROF_LET(const int merged,
              run_child({demo.llmprof, "merge", server_run, client_run, "-f", "-o", demo.output}, {}));
  if (merged != 0) return failed("llmprof merge", merged);
  return demo.output + ".llmprof";
}

}  // namespace llmprof::app

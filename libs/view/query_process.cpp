#include "view/query_process.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "analyze/basis.h"
#include "analyze/derive.h"
#include "base/file.h"
#include "base/json.h"
#include "hw/in_child.h"
#include "trace/run.h"
#include "view/query_sandbox.h"

namespace llmprof::view {
namespace {

constexpr std::uint64_t kMostFrameBytes = 4 << 20;
constexpr std::uint64_t kEngineThreadsBytes = std::uint64_t{2} << 30;  // of address space: stacks and arenas

bool read_all(int socket, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool write_frame(int socket, const std::string& text) {
  const std::uint64_t bytes = text.size();
  return write_all(socket, &bytes, sizeof bytes) && write_all(socket, text.data(), text.size());
}

bool read_frame(int socket, std::string& text) {
  std::uint64_t bytes = 0;
  if (!read_all(socket, &bytes, sizeof bytes) || bytes > kMostFrameBytes) return false;
  text.resize(bytes);
  return read_all(socket, text.data(), text.size());
}

base::Json json_of(const trace::Value& value) {
  switch (value.type) {
    case trace::Value::Type::kInt:
      return value.integer;
    case trace::Value::Type::kBool:
      return value.integer != 0;
    case trace::Value::Type::kDouble:
      return value.real;
    case trace::Value::Type::kText:
      return value.text;
    case trace::Value::Type::kNull:
      break;
  }
  return nullptr;
}

Result<base::Json> rows_of(const trace::Run& run, const std::string& sql, const QueryLimits& limits) {
  base::Json out{{"columns", base::Json::array()}, {"rows", base::Json::array()}, {"truncated", false}};
  std::size_t bytes = 0;
  LLMPROF_TRY(run.user_query_each(
      sql, [&](const std::vector<std::string>& names) { out["columns"] = names; },
      [&](const std::vector<trace::Value>& row) {
        base::Json cells = base::Json::array();
        for (const trace::Value& value : row) cells.push_back(json_of(value));
        bytes += base::to_line(cells).size() + 1;
        const bool full = bytes > limits.bytes || static_cast<std::int64_t>(out["rows"].size()) >= limits.rows;
        if (full) {
          out["truncated"] = true;
        } else {
          out["rows"].push_back(std::move(cells));
        }
        return !full;
      }));
  return out;
}

Result<base::Json> answer_to(const base::Json& question, const QueryLimits& limits) {
  LLMPROF_LET(trace::Run run, trace::Run::open(question["run"].get<std::string>()));
  LLMPROF_LET(const analyze::Basis basis, analyze::find_basis(run, {}));
  LLMPROF_TRY(analyze::ensure_derived(run, basis, base::no_progress));
  run.limit_user_memory(fmt::format("{}MB", limits.memory_bytes >> 20));
  LLMPROF_TRY(run.query("SELECT 1"));  // loads the engine: afterwards it could not be, where all was answered before
  LLMPROF_TRY(give_up_all_but_reading(limits.memory_bytes + kEngineThreadsBytes,
                                      static_cast<std::uint64_t>(limits.seconds) * 4));
  return rows_of(run, question["sql"].get<std::string>(), limits);
}

// The engine starts a thread for every CPU that it may use.
void use_one_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(std::max(0, ::sched_getcpu())), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

std::string error_text(const Error& error) {
  return base::to_line(base::Json{{"error", error.message}, {"hint", error.hint}});
}

// The life of the process: a question, a child, an answer, until the other end is closed.
[[noreturn]] void serve(int socket, const QueryLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);  // the parent decides
  std::string text;
  while (read_frame(socket, text)) {
    const auto work = [&]() -> std::string {
      use_one_cpu();
      const auto question = base::parse_json(text, "question");
      if (!question) return error_text(question.error());
      const auto answer = answer_to(*question, limits);
      return answer ? base::to_line(*answer) : error_text(answer.error());
    };
    const auto answer = hw::in_child(work, std::chrono::seconds(limits.seconds));
    const std::string why =
        fmt::format("the query was stopped: it took more than {} s or too much memory", limits.seconds);
    if (!write_frame(socket, answer ? *answer : error_text({ErrorCode::kUnsupported, why, ""}))) break;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  ::_exit(0);
}

}  // namespace

Result<QueryProcess> QueryProcess::start(const QueryLimits& limits) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return base::errno_error(ErrorCode::kIo, "socketpair", errno);
  QueryProcess process;
  process.socket_ = Descriptor(ends[0]);
  Descriptor other(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return base::errno_error(ErrorCode::kIo, "fork", errno);
  if (pid == 0) {
    ::close(ends[0]);
    serve(ends[1], limits);
  }
  process.pid_ = pid;
  return process;
}

QueryProcess::QueryProcess(QueryProcess&& other) noexcept
    : socket_(std::move(other.socket_)), pid_(std::exchange(other.pid_, -1)) {}

QueryProcess::~QueryProcess() {
  if (pid_ <= 0) return;
  end();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void QueryProcess::end() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);  // its child, if there is one, dies with it
}

Result<std::string> QueryProcess::ask(const std::string& run, const std::string& sql) {
  std::string text;
  const bool answered = write_frame(socket_.get(), base::to_line(base::Json{{"run", run}, {"sql", sql}})) &&
                        read_frame(socket_.get(), text);
  if (!answered) return Error{ErrorCode::kIo, "the process that runs queries is gone", ""};
  LLMPROF_LET(const base::Json answer, base::parse_json(text, "answer"));
  if (!answer.contains("error")) return text;
  return Error{ErrorCode::kUsage, answer["error"].get<std::string>(), answer.value("hint", "")};
}

}  // namespace llmprof::view

#include "view/query.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "analyze/context.h"
#include "analyze/derive.h"
#include "base/file.h"
#include "base/json.h"
#include "base/result.h"
#include "hw/in_child.h"
#include "trace/run.h"

namespace llmprof::view {

// What a process that runs SQL gives up.

// For this process and all its threads to come; cannot be undone: files can be opened for reading only, none can be
// made, removed or renamed, no socket, no other program, no look into other processes, no more than so much memory and
// CPU time. Under a sanitizer, which needs more, memory stays as it is.
Result<void> give_up_all_but_reading(std::uint64_t memory_bytes, std::uint64_t cpu_seconds);

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
  LLMPROF_LET(const analyze::AnalysisContext analysis, analyze::find_context(run, {}));
  LLMPROF_TRY(analyze::ensure_derived(run, analysis, base::no_progress));
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

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which AUDIT_ARCH is this?"
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

constexpr int kRefusedCalls[] = {
    SYS_socket,         SYS_connect,  SYS_bind,      SYS_listen,    SYS_sendto,
    SYS_sendmsg,        SYS_execve,   SYS_execveat,  SYS_ptrace,    SYS_process_vm_readv,
    SYS_unlinkat,       SYS_mkdirat,  SYS_symlinkat, SYS_linkat,    SYS_renameat2,
    SYS_fchmodat,       SYS_fchownat, SYS_truncate,  SYS_ftruncate, SYS_process_vm_writev,
    SYS_mount,          SYS_unshare,  SYS_setns,     SYS_bpf,       SYS_perf_event_open,
    SYS_kill,           SYS_openat2,  SYS_mknodat,   SYS_utimensat, SYS_userfaultfd,
#ifdef SYS_open
    SYS_open,           SYS_creat,    SYS_unlink,    SYS_rename,    SYS_mkdir,
    SYS_rmdir,          SYS_symlink,  SYS_link,      SYS_chmod,     SYS_fork,
    SYS_vfork,          SYS_renameat,
#endif
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
};

std::vector<sock_filter> filter() {
  constexpr std::uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  std::vector<sock_filter> code;
  const auto add = [&](int what, std::uint32_t value, int if_true = 0, int if_false = 0) {
    code.push_back({static_cast<std::uint16_t>(what), static_cast<std::uint8_t>(if_true),
                    static_cast<std::uint8_t>(if_false), value});
  };
  const auto load = [&](std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); };
  load(offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  add(BPF_JMP | BPF_JGE | BPF_K, 0x4000'0000, 0, 1);  // the x32 interface
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
#endif
  for (const int call : kRefusedCalls) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(SYS_openat), 0, 3);
  load(offsetof(seccomp_data, args) + 16);  // flags, the low half
  add(BPF_JMP | BPF_JSET | BPF_K, kWriting, 0, 1);
  add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  return code;
}

std::uint64_t address_space_bytes() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int resource, std::uint64_t value) {
  rlimit now{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlimit wanted{std::min<rlim_t>(value, now.rlim_max), std::min<rlim_t>(value, now.rlim_max)};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &wanted);
}

}  // namespace

Result<void> give_up_all_but_reading(std::uint64_t memory_bytes, std::uint64_t cpu_seconds) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CPU, cpu_seconds);
  if (!kSanitized) limit(RLIMIT_AS, address_space_bytes() + memory_bytes);
  std::vector<sock_filter> code = filter();
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return base::errno_error(ErrorCode::kIo, "no_new_privs", errno);
  // With SECCOMP_FILTER_FLAG_TSYNC: the engine has threads already.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    return base::errno_error(ErrorCode::kIo, "seccomp", errno);
  return {};
}

QueryQueue::QueryQueue(QueryProcess process, Answer answer)
    : process_(std::move(process)), answer_(std::move(answer)), thread_([this] { work(); }) {}

QueryQueue::~QueryQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  process_.end();  // whoever waits for it hears so
  thread_.join();
}

bool QueryQueue::add(std::uint64_t ticket, const std::string& run, const std::string& sql) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= kMost) return false;
    jobs_.push_back({ticket, run, sql});
  }
  changed_.notify_all();
  return true;
}

void QueryQueue::work() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    auto rows = process_.ask(job.run, job.sql);
    if (rows) {
      answer_(job.ticket, Response{.body = std::move(*rows)});
    } else {
      const Error& error = rows.error();
      answer_(job.ticket, refusal(400, error.hint.empty() ? error.message : error.message + "; " + error.hint));
    }
  }
}

}  // namespace llmprof::view

#include "workload/ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/file.h"

namespace llmprof::workload {

struct Ranks::Shared {
  static constexpr std::int64_t kMost = 64, kValues = 1 << 16;
  pthread_barrier_t barrier;
  float values[kMost][kValues];  // of each rank
};

namespace {

constexpr const char* kMemory = "LLMPROF_WORKLOAD_MEMORY";  // descriptor of what the ranks share

Error failed(const char* what) { return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)), ""}; }

std::optional<std::int64_t> variable(const char* name) {
  const char* const text = ::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::int64_t value = -1;
  const char* const end = text + std::strlen(text);
  const auto [behind, error] = std::from_chars(text, end, value);
  return error == std::errc{} && behind == end && value >= 0 ? std::optional(value) : std::nullopt;
}

// Its memory is zero, but for the barrier.
Result<int> make_memory(std::size_t bytes) {
  const int memory = ::memfd_create("llmprof-workload", 0);
  if (memory < 0 || ::ftruncate(memory, static_cast<off_t>(bytes)) != 0) return failed("memory of the ranks");
  return memory;
}

}  // namespace

Result<std::optional<Ranks>> Ranks::join() {
  const std::optional<std::int64_t> memory = variable(kMemory), rank = variable("RANK"), count = variable("WORLD_SIZE");
  if (!memory || !rank || !count || *rank >= *count || *count > Shared::kMost) return std::optional<Ranks>();
  void* const mapped =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(*memory), 0);
  if (mapped == MAP_FAILED) return failed("memory of the ranks");
  Ranks ranks;
  ranks.shared_ = {static_cast<Shared*>(mapped), [](Shared* shared) { ::munmap(shared, sizeof(Shared)); }};
  ranks.rank_ = *rank, ranks.count_ = *count;
  return std::optional(std::move(ranks));
}

void Ranks::wait() { pthread_barrier_wait(&shared_->barrier); }

void Ranks::all_reduce(float* values, std::int64_t count) {
  for (std::int64_t begin = 0; begin < count; begin += Shared::kValues) {
    const std::int64_t n = std::min(Shared::kValues, count - begin);
    std::copy_n(values + begin, n, shared_->values[rank_]);
    wait();
    std::copy_n(shared_->values[0], n, values + begin);
    for (std::int64_t rank = 1; rank < count_; ++rank) {
      for (std::int64_t i = 0; i < n; ++i) values[begin + i] += shared_->values[rank][i];
    }
    wait();  // nobody overwrites what another still reads
  }
}

Result<int> launch_ranks(std::int64_t count) {
  if (count < 2 || count > Ranks::Shared::kMost) return usage_error("--ranks must be 1 to {}", Ranks::Shared::kMost);
  LLMPROF_LET(const int memory, make_memory(sizeof(Ranks::Shared)));
  auto* const shared = static_cast<Ranks::Shared*>(
      ::mmap(nullptr, sizeof(Ranks::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
  if (shared == MAP_FAILED) return failed("memory of the ranks");
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(count));
  LLMPROF_LET(std::string command, base::read_file("/proc/self/cmdline", 1 << 20));
  std::vector<char*> words;
  for (std::size_t at = 0; at < command.size(); at += std::strlen(command.data() + at) + 1)
    words.push_back(&command[at]);
  words.push_back(nullptr);
  ::setenv("WORLD_SIZE", std::to_string(count).c_str(), 1);
  ::setenv("LOCAL_WORLD_SIZE", std::to_string(count).c_str(), 1);
  ::setenv(kMemory, std::to_string(memory).c_str(), 1);
  std::vector<pid_t> children;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    const pid_t child = ::fork();
    if (child == 0) {
      ::execv("/proc/self/exe", words.data());
      ::_exit(127);
    }
    if (child > 0) children.push_back(child);
  }
  int status = std::ssize(children) == count ? 0 : 2;
  const auto end_all = [&] {
    for (const pid_t child : children) ::kill(child, SIGTERM);  // they would wait for ever
  };
  if (status != 0) end_all();
  while (!children.empty()) {
    int ended = 0;
    const pid_t child = ::waitpid(-1, &ended, 0);
    if (child < 0 && errno == EINTR) continue;
    if (child < 0) break;
    std::erase(children, child);
    const int own = WIFEXITED(ended) ? WEXITSTATUS(ended) : 2;
    if (own != 0 && status == 0) status = own, end_all();
  }
  return status;
}

Result<ModelConfig> part_of(const ModelConfig& whole, std::int64_t ranks) {
  ModelConfig part = whole;
  if (ranks == 1) return part;
  if (whole.family != Family::kLlama) return Error{ErrorCode::kUsage, "only llama can be split among ranks", ""};
  for (const auto field :
       {&ModelConfig::heads, &ModelConfig::kv_heads, &ModelConfig::intermediate, &ModelConfig::vocab}) {
    if (whole.*field % ranks != 0) return usage_error("heads, MLP width and vocabulary must divide by {} ranks", ranks);
    if (field != &ModelConfig::vocab) part.*field /= ranks;
  }
  return part;
}

Weights part_of(const Weights& whole, const ModelConfig& part, std::int64_t rank) {
  Weights out(part);
  for (std::size_t i = 0; i < out.specs().size(); ++i) {
    const TensorSpec &to = out.specs()[i], &from = whole.specs()[i];
    const std::int64_t first_row = to.rows < from.rows ? rank * to.rows : 0;
    const std::int64_t first_column = to.columns < from.columns ? rank * to.columns : 0;
    const float* const source = whole.tensor(from.name) + first_row * from.columns + first_column;
    for (std::int64_t row = 0; row < to.rows; ++row)
      std::copy_n(source + row * from.columns, to.columns, out.tensor(to.name) + row * to.columns);
  }
  return out;
}

}  // namespace llmprof::workload

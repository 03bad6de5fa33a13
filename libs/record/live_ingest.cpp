#include "record/live_ingest.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "record/capture_folder.h"
#include "record/run_ingest.h"
#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

constexpr auto kPause = std::chrono::milliseconds(500);
constexpr int kLeastNice = 19;
constexpr auto kNap = std::chrono::milliseconds(20);

// Threads made from here on inherit it, also those that write the tables. Not SCHED_IDLE: a program that keeps all
// cores busy would leave everything to the end.
void step_back() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLeastNice); }

// The program is over: nobody needs the time more. Not everybody may do this; then it stays as it is, and on a machine
// with nothing else to do there is no difference.
void step_forward() {
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    int tid = 0;
    const std::string name = task.path().filename().string();
    std::from_chars(name.data(), name.data() + name.size(), tid);
    if (tid > 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(tid), nice);
  }
}

std::uint64_t begin_at() {
  const std::string text = base::env_or("LLMPROF_LIVE_INGEST_BYTES", "");
  std::uint64_t bytes = kLiveIngestBytes;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

}  // namespace

struct LiveIngest::State {
  CaptureInfo info;
  std::optional<trace::RunWriter> writer;
  std::optional<RunIngest> ingest;
  std::optional<Error> problem;
};

LiveIngest::LiveIngest(std::string run_folder) : run_folder_(std::move(run_folder)), begin_at_bytes_(begin_at()) {}

LiveIngest::~LiveIngest() { stop(); }

void LiveIngest::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void LiveIngest::poll(const CaptureInfo& info) {
  if (state_ != nullptr || log_bytes(capture_folder(run_folder_)) < begin_at_bytes_) return;
  state_ = std::make_unique<State>();
  state_->info = info;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the thread that waits for the program
  thread_ = std::thread([this] { work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void LiveIngest::work() {
  ::pthread_setname_np(::pthread_self(), "llmprof-ingest");
  step_back();
  State& state = *state_;
  remove_tables(run_folder_);
  auto writer = trace::RunWriter::create(run_folder_);
  if (!writer) {
    state.problem = writer.error();
    return;
  }
  state.writer.emplace(std::move(*writer));
  state.ingest.emplace(*state.writer, state.info, capture_folder(run_folder_));
  while (!stopping_) {
    if (const auto followed = state.ingest->follow([this] { return stopping_.load(); }); !followed) {
      state.problem = followed.error();
      return;
    }
    for (auto slept = kNap; slept < kPause && !stopping_; slept += kNap) std::this_thread::sleep_for(kNap);
  }
}

Result<IngestTally> LiveIngest::finish(const CaptureInfo& info, const IngestOptions& options,
                                       const base::Progress& progress) {
  stop();
  if (state_ == nullptr || state_->problem) {
    state_.reset();
    return ingest(run_folder_, options, progress);
  }
  step_forward();
  auto tally = state_->ingest->finish(info, options, progress);
  if (tally) {
    if (auto written = state_->writer->finish(run_info(info, *tally), progress); !written) tally = written.error();
  }
  state_.reset();
  return complete_ingest(run_folder_, options, std::move(tally));
}

}  // namespace llmprof::record

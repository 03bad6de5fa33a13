#include "record/run/ingest.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include "base/fields.h"
#include "base/file.h"
#include "base/numbers.h"
#include "base/version.h"
#include "record/run/run_ingest.h"
#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

std::int64_t table_bytes(const std::string& run_folder) {
  std::int64_t bytes = 0;
  const std::string folder = run_folder + "/tables";
  for (const std::string& name : base::list_directory(folder)) {
    bytes += static_cast<std::int64_t>(base::file_bytes(folder + "/" + name));
  }
  return bytes;
}

Result<IngestTally> write_tables(const std::string& run_folder, const IngestOptions& options,
                                 const base::Progress& progress) {
  const std::string folder = capture_folder(run_folder);
  auto info = read_capture_info(folder);
  if (!info && info.error().code == ErrorCode::kIo) return info.error();
  const CaptureInfo known = info ? *info : CaptureInfo{};
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(run_folder));
  RunIngest ingest(writer, known, folder);
  if (!info) ingest.ledger().add(trace::Loss::kLogUnreadable, 1, {}, info.error().message);
  LLMPROF_LET(IngestTally tally, ingest.finish(known, options, progress));
  LLMPROF_TRY(writer.finish(run_info(known, tally), progress));
  return tally;
}

}  // namespace

trace::RunInfo run_info(const CaptureInfo& info, const IngestTally& tally) {
  trace::RunInfo run;
  base::for_each_shared_field(run, info, [](auto& to, const auto& from) { to = from; });
  run.llmprof_version = base::version();
  run.created = iso_time(info.begin.wall_ns);
  if (run.environment.empty()) run.environment = "{}";
  run.models = tally.models;
  return run;
}

Result<IngestTally> complete_ingest(const std::string& run_folder, const IngestOptions& options,
                                    Result<IngestTally> tally) {
  if (!tally) {
    if (!base::is_file(run_folder + "/run.json")) remove_tables(run_folder);
    return tally;
  }
  tally->run_bytes = table_bytes(run_folder);
  if (!options.keep_capture) remove_capture_folder(run_folder);
  return tally;
}

Result<IngestTally> ingest(const std::string& run_folder, const IngestOptions& options,
                           const base::Progress& progress) {
  remove_tables(run_folder);  // of an ingest that was interrupted
  return complete_ingest(run_folder, options, write_tables(run_folder, options, progress));
}

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
    const int tid = base::leading_number<int>(task.path().filename().string()).value_or(0);
    if (tid > 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(tid), nice);
  }
}

std::uint64_t begin_at() {
  return base::leading_number<std::uint64_t>(base::env_or("LLMPROF_LIVE_INGEST_BYTES", "")).value_or(kLiveIngestBytes);
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

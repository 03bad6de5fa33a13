// A run of a server with many requests, written without one: `served_run NAME [REQUESTS]`, 100,000 unless given. 64 at
// once, a prompt of 100 to 300 tokens in one step, then nine steps of one token: ten rows of step_member a request.
// What a report of it takes: `time llmprof report NAME`.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "trace/run.h"
#include "trace/run_writer.h"

namespace {

using namespace llmprof;

constexpr std::int64_t kPlaces = 64, kSteps = 10, kBudget = 2048;

struct Live {
  std::int64_t id = 0, prompt = 0, made = 0;
  trace::RequestRow row;
};

class Server {
 public:
  explicit Server(trace::RunWriter& writer) : writer_(writer) {}

  void run(std::int64_t count) {
    std::int64_t next = 0;
    std::vector<Live> live;
    while (next < count || !live.empty()) {
      std::int64_t prompts = 0;
      while (next < count && std::ssize(live) < kPlaces && prompts + 300 + kPlaces <= kBudget &&
             arrival(next) <= now_) {
        live.push_back(admit(next++));
        prompts += live.back().prompt;
      }
      if (live.empty()) {
        now_ = arrival(next);
        continue;
      }
      step(live);
      std::erase_if(live, [](const Live& each) { return each.made == kSteps; });
    }
  }
  std::int64_t end() const { return now_; }

 private:
  static std::int64_t arrival(std::int64_t i) { return 1'000'000 + i * 900'000; }
  trace::Name name(std::string_view text) { return writer_.strings().intern(text); }

  Live admit(std::int64_t i) {
    Live out{.id = i + 1, .prompt = 100 + i * 37 % 200, .row = {}};
    out.row.id = out.id, out.row.name = name("req-" + std::to_string(i)), out.row.source = name("server"),
    out.row.process_id = 1;
    out.row.arrival_ns = arrival(i), out.row.scheduled_ns = now_, out.row.prompt_tokens = out.prompt;
    out.row.output_tokens = kSteps, out.row.cached_tokens = 0, out.row.preemptions = 0, out.row.status = name("length");
    return out;
  }
  void mark(std::int64_t ts_ns, std::int64_t request, std::string_view event, std::int64_t tokens,
            std::int64_t context) {
    trace::RequestEventRow row{
        .ts_ns = ts_ns, .event = name(event), .tokens = tokens, .context = context, .process_id = 1, .thread_id = 1};
    if (request > 0) row.request_id = request;
    writer_.add(row);
  }
  void step(std::vector<Live>& live) {
    const std::int64_t begin = now_ + 50'000;
    std::int64_t tokens = 0;
    for (Live& each : live) {
      const std::int64_t own = each.made == 0 ? each.prompt : 1;
      mark(begin + 1000, each.id, "member", own, each.prompt + each.made);
      tokens += own;
    }
    mark(begin + 1000, 0, "blocks", std::ssize(live), kPlaces);
    const std::int64_t end = begin + 2'000'000 + 5'000 * tokens;
    trace::RangeRow row{
        .id = ++ranges_, .begin_ns = begin, .end_ns = end, .name = name("mixed"), .kind = name("push_pop")};
    row.process_id = row.thread_id = 1, row.domain = name("llmprof"), row.category = name("step"),
    row.source = name("nvtx");
    writer_.add(row);
    now_ = end;
    for (Live& each : live) {
      if (++each.made == 1) each.row.first_token_ns = end;
      each.row.last_token_ns = each.row.end_ns = end;
      if (each.made == kSteps) writer_.add(each.row);
    }
  }

  trace::RunWriter& writer_;
  std::int64_t now_ = 0, ranges_ = 0;
};

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "served_run NAME [REQUESTS]\n"), 1;
  auto writer = trace::RunWriter::create(trace::run_folder(words[1]));
  if (!writer) return fail(writer.error());
  const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
  Server server(*writer);
  server.run(count > 2 ? std::atoll(words[2]) : 100'000);
  writer->add(
      trace::ProcessRow{.id = 1, .pid = 1, .executable = name("/bin/serve"), .begin_ns = 0, .end_ns = server.end()});
  writer->add(trace::ThreadRow{.id = 1, .process_id = 1, .tid = 1});
  trace::NoteRow note{
      .ts_ns = 1,
      .subject = name("engine"),
      .text = name("vllm@0.28 max_num_seqs=64 max_num_batched_tokens=2048 cudagraph_mode=none num_gpu_blocks=100000")};
  writer->add(note);
  trace::RunInfo info;
  info.llmprof_version = "0.0.0", info.created = "2026-01-02T03:04:05Z", info.source = "synthetic",
  info.environment = "{}";
  const auto written = writer->finish(info);
  return written ? 0 : fail(written.error());
}

#include "load/write_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/human.h"
#include "trace/run_writer.h"

namespace llmprof::load {
namespace {

constexpr trace::Id kProcess = 1;

std::int64_t ns_of(std::uint64_t ns) { return static_cast<std::int64_t>(ns); }
trace::OptionalInt moment(std::uint64_t ns) { return ns > 0 ? trace::OptionalInt(ns_of(ns)) : trace::OptionalInt(); }

class Writer {
 public:
  explicit Writer(trace::RunWriter& writer) : writer_(writer) {}

  void process(const LoadResult& result, const RunFacts& facts) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    writer_.add(trace::ProcessRow{.id = kProcess,
                                  .pid = ::getpid(),
                                  .host = name(host.data()),
                                  .executable = name("llmprof"),
                                  .arguments = name(fmt::format("{}", fmt::join(facts.command, " "))),
                                  .begin_ns = ns_of(result.clocks.front().raw_ns),
                                  .end_ns = ns_of(result.clocks.back().raw_ns)});
    for (const ClockPair& pair : result.clocks)
      writer_.add(trace::ClockSyncRow{.ts_ns = ns_of(pair.raw_ns), .wall_ns = ns_of(pair.wall_ns),
                                      .error_ns = ns_of(pair.error_ns), .process_id = kProcess});
    for (const std::string& text : facts.notes)
      writer_.add(trace::NoteRow{.ts_ns = ns_of(result.begin_ns), .process_id = kProcess, .subject = name("load"), .text = name(text)});
  }

  void request(const RequestRecord& request) {
    trace::RequestRow row{.id = ++requests_, .name = name(request.id), .source = name("client"), .process_id = kProcess,
                          .arrival_ns = ns_of(request.arrival_ns)};
    row.sent_ns = moment(request.sent_ns), row.end_ns = moment(request.end_ns);
    if (const Mark* first = request.first()) row.first_token_ns = ns_of(first->ns);
    if (const Mark* last = request.last()) row.last_token_ns = ns_of(last->ns);
    row.prompt_tokens = request.prompt_tokens, row.output_tokens = request.output_tokens;
    if (request.cached_tokens) row.cached_tokens = *request.cached_tokens;
    row.status = name(request.status), row.error = name(request.error);
    row.warm_up = request.warm_up;
    if (request.counted_by != CountedBy::kUnknown) row.counted_by = name(words_of(request.counted_by));
    writer_.add(row);
    std::int32_t number = 0;
    for (const Mark& mark : request.marks)
      writer_.add(trace::RequestTokenRow{.request_id = row.id, .number = number++, .ts_ns = ns_of(mark.ns),
                                         .tokens = static_cast<std::int32_t>(mark.tokens)});
  }

 private:
  trace::Name name(std::string_view text) { return text.empty() ? trace::Name{} : writer_.strings().intern(trace::storable(text)); }

  trace::RunWriter& writer_;
  trace::Id requests_ = 0;
};

}  // namespace

Result<void> write_run(const std::string& folder, const LoadResult& result, const Figures& figures, const RunFacts& facts) {
  LLMPROF_LET(trace::RunWriter run, trace::RunWriter::create(folder));
  Writer writer(run);
  RunFacts all = facts;
  const ClientRow& client = figures.client;
  all.notes.push_back(fmt::format("the client sent p50 {}, p99 {}, at most {} behind its schedule, and used {} of a core",
                                  base::human_ns(client.lag_p50_ns), base::human_ns(client.lag_p99_ns),
                                  base::human_ns(client.lag_most_ns), base::human_percent(client.cpu_share)));
  if (!client.kept) all.notes.push_back("the client did not keep up with this load: " + client.why);
  writer.process(result, all);
  for (const RequestRecord& request : result.requests) writer.request(request);
  trace::RunInfo info;
  info.command = facts.command;
  info.environment = facts.environment;
  info.source = "load";
  return run.finish(info);
}

}  // namespace llmprof::load

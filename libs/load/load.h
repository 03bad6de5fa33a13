#pragma once
// Sends requests as a schedule says, and notes what came back when. One thread.
//
//   open loop     each is sent at its moment, whatever is outstanding; with a cap, those beyond it wait here, and their
//                 arrival stays the moment at which they were due
//   closed loop   so many are outstanding; arrival is the moment at which a place became free

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/http_client.h"
#include "load/prompts.h"
#include "load/protocol.h"

namespace llmprof::load {

// How output tokens of a request were counted.
enum class CountedBy : std::uint8_t { kUnknown, kUsage, kTokenIds, kTokenizer, kMessages };
std::string_view words_of(CountedBy by);  // "usage"

// One message with a choice, at the moment at which it was read.
struct Mark {
  std::uint64_t ns = 0;
  std::uint32_t bytes = 0;   // of its text; 0: it only opened or closed the answer
  std::uint32_t tokens = 0;  // as the server named them, else divided among messages once the sum is known
};

struct RequestRecord {
  std::string id;  // X-Request-Id
  bool warm_up = false;
  bool capped = false;  // it had to wait for the cap
  std::uint64_t arrival_ns = 0;
  std::uint64_t sent_ns = 0, end_ns = 0;  // 0: never
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  std::optional<std::int64_t> cached_tokens;
  bool prompt_by_usage = false;
  CountedBy counted_by = CountedBy::kUnknown;
  std::vector<Mark> marks;
  bool streamed = false;
  int http_status = 0;
  std::int64_t malformed = 0;  // events
  std::string status, error, finish_reason;
  std::string text;  // where it is kept

  bool finished() const { return status == "finished"; }
  // Of messages with text, else of any message. nullptr: there was none, or the answer came whole.
  const Mark* first() const;
  const Mark* last() const;
};

struct Live {  // while a load runs
  bool warm_up = false;
  std::int64_t all = 0, sent = 0, running = 0, waiting = 0, done = 0, errors = 0;
  std::int64_t messages = 0;  // with text
  double seconds = 0, mean_ttft_ns = 0;
};

struct LoadOptions {
  HttpSettings http;
  BodyOptions body;
  std::int64_t concurrency = 0;       // closed loop; 0: open
  std::int64_t most_outstanding = 0;  // of an open loop; 0: no cap
  std::uint64_t duration_ns = 0;      // then nothing more is sent; 0: no limit
  bool keep_text = false;
  // Of X-Request-Id: a UUID but for its last part, which is the number of the request. llama.cpp's server of
  // llama-cpp-python refuses ids that are none.
  std::string id_prefix = "00000000-0000-4000-8000";
  std::function<int()> stops;  // Ctrl-Cs so far: 1 sends no more and waits a little, 2 gives all up
  std::function<void(const Live&)> progress;
};

struct ClockPair {  // the run's clock and wall time at the same moment, and how far apart they may be
  std::uint64_t raw_ns = 0, wall_ns = 0, error_ns = 0;
};
ClockPair read_clocks();

struct LoadResult {
  std::vector<RequestRecord> requests;  // in the order in which they were sent, warm-up first
  std::uint64_t begin_ns = 0, end_ns = 0;  // of what is no warm-up
  std::int64_t not_sent = 0;               // whose moment did not come
  bool interrupted = false, open_loop = false;
  double cpu_share = 0, cpu_share_most = 0;  // of one core, this thread; in its busiest second
  std::vector<std::uint32_t> read_lags_ns;
  std::vector<ClockPair> clocks;  // at begin and end
};

Result<LoadResult> run_load(const Prompts& prompts, const Prompts& warm_up, const LoadOptions& options);

// Output tokens of answers whose server does not say them, by their text.
void count_tokens(const Tokenizer& tokenizer, LoadResult& result);

// Tokens of messages where only their sum is known: by the length of their text, so that they add up to it.
void divide_tokens(RequestRecord& request);

}  // namespace llmprof::load

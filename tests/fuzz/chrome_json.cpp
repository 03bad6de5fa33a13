// Traces of PyTorch and Chrome: whatever the text, reading ends, events come in the order of the file, texts are UTF-8;
// the size of chunks makes no difference to what is read; and the importer makes something of it or says why not.

#include <algorithm>

#include "fuzz.h"
#include "importers/chrome_json/reader.h"
#include "importers/importer.h"
#include "importers/testing_sink.h"
#include "importers/text.h"

namespace llmprof::fuzz {
namespace {

using namespace importers;

struct Taker : chrome_json::EventTaker {
  void take_header(const chrome_json::Header& header) override {
    ++headers;
    for (const std::string_view text : {header.device_properties, header.distributed_info, header.other})
      require(is_utf8(text));
    require(header.other.starts_with('{') && header.other.ends_with('}'));
  }
  void take(const chrome_json::Event& event) override {
    require(headers == 1 && event.phase != 0);
    require(event.offset < bytes && (count == 0 || event.offset > last));
    last = event.offset;
    ++count;
    const chrome_json::Arguments& args = event.args;
    for (const std::string_view text : {event.category, event.name, event.pid.text, event.tid.text, args.dims,
                                        args.types, args.concrete, args.name, args.collective, args.raw}) {
      require(is_utf8(text));
      for (const char c : text) add(static_cast<std::uint64_t>(c));
    }
    for (const std::int64_t number : {event.ts_ns, event.dur_ns, event.id, event.pid.number, args.correlation,
                                      args.grid[0], args.block[2], args.address})
      add(static_cast<std::uint64_t>(number));
  }
  void add(std::uint64_t number) { hash = (hash ^ number) * 1099511628211u; }

  std::uint64_t bytes = 0, last = 0, count = 0, hash = 0;
  int headers = 0;
};

struct Outcome {
  Taker taker;
  MemorySink sink;
  bool read = false;
};

Outcome read(std::string_view text, std::size_t chunk_bytes) {
  Outcome outcome;
  outcome.taker.bytes = text.size();
  Input input = Input::of_text("input", std::string(text));
  const auto result = read_events(input, outcome.sink, outcome.taker, {.chunk_bytes = chunk_bytes, .threads = 1});
  outcome.read = result.has_value();
  require(outcome.read || (result.error().message.starts_with("byte ") && !result.error().hint.empty()));
  outcome.sink.flush();
  return outcome;
}

void run(std::string_view input) {
  const Outcome small = read(input, 64 + input.size() % 512), large = read(input, 32 << 10);
  if (large.sink.lost(trace::Loss::kInputDamaged) == 0) {  // where a damaged event ends is a guess
    require(small.read == large.read && small.taker.count == large.taker.count);
    require(small.taker.hash == large.taker.hash && small.sink.losses == large.sink.losses);
  }
  MemorySink sink;
  Input again = Input::of_text("input", std::string(input));
  if (const auto result = find_importer("kineto")->parse(again, sink); !result)
    require(!result.error().message.empty());
  sink.flush();
}

// Pieces of a real trace of PyTorch 2.11.
constexpr std::string_view kHeader = R"(
  {
    "schemaVersion": 1,
    "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "computeMajor": 9, "computeMinor": 0, "numSms": 132
    }
    ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
)";
constexpr std::string_view kEvents[] = {
    R"(  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 872, "tid": 872,
    "ts": 3850981959706.388, "dur": 2782.826,
    "args": {
      "External id": 5123,"Record function id": 0, "Concrete Inputs": ["", "0"], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[128, 1], []], "Input Dims": [[2, 128], [128, 64]], "Ev Idx": 2
    }
  })",
    R"(  {
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_gather_kernel<16, long>(char*, long) [clone]", "pid": 0, "tid": 7,
    "ts": 3850981963455.151, "dur": 2.272,
    "args": {
      "External id": 5123,      "queued": 0, "device": 0, "context": 1,      "stream": 7, "correlation": 18389,      "registers per thread": 32,      "shared memory": 0,      "blocks per SM": 1.939394,      "grid": [256, 1, 1],      "block": [128, 1, 1],      "est. achieved occupancy %": 12
    }
  })",
    R"(  {
    "ph": "f", "id": 18389, "pid": 0, "tid": 7, "ts": 3850981963455.151,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  })",
    R"(  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 872, "tid": 872,
    "ts": 3850981963408.950, "dur": 48.292,
    "args": {
      "External id": 5123,      "cbid": 211, "correlation": 18389
    }
  })",
    R"(  {
    "ph": "X", "cat": "python_function", "name": "torch/profiler/profiler.py(862): __enter__", "pid": 872, "tid": 872,
    "ts": 3850981958362.723, "dur": 182.777,
    "args": {
      "Python parent id": null, "Python id": 2, "Ev Idx": 4337
    }
  })",
    R"(  {
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
    "pid": 872, "tid": 872,
    "ts": 3850981959674.230,
    "args": {
      "Total Reserved": 299892736, "Total Allocated": 255874048, "Bytes": 2048, "Device Id": 0, "Device Type": 1, "Addr": 140679975554048, "finished": false, "Ev Idx": 2702
    }
  })",
    R"(  {
    "name": "process_name", "ph": "M", "ts": 3850981958440.311, "pid": 0, "tid": 7,
    "args": {
      "name": "stream 7 "
    }
  })"};

std::vector<std::string> seeds() {
  std::string all(kHeader), array = "[";
  for (const std::string_view event : kEvents) {
    all += std::string(event) + ",\n";
    array += std::string(event) + ",";
  }
  return {
      all + std::string(kEvents[2]) + "\n  ],\n  \"traceName\": \"a.json\"\n}\n", all, array + "{}]",
      R"({"displayTimeUnit":"ns","traceEvents":[{"ph":"B","pid":"a","tid":1,"ts":-1.5e3,"name":"\ud83d\ude00\n"},{"ph":"E","pid":"a","tid":1,"ts":"7"},{}]})",
      R"([{"ph":"X","name":"say "hi" now","ts":NaN},{"ph":"X","ts":1e999,"dur":-inf,"args":[1]},{"ph":"b","id":"0x1f"}])"};
}

std::vector<std::string> dictionary() {
  return {"\"traceEvents\"", "\"ph\":\"X\"", "\"args\":{", "},{\"ph\":",  "\\u", "\\\"", "NaN",
          "1e999",           "[[",           "]]",         "\xEF\xBB\xBF"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

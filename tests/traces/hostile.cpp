// Names that try to become code, markup, numbers or other text where they are shown: as kernel, range, thread, file,
// model, metric, loss and path. A payload that runs sets window.hostile_ran or loads from
// hostile.invalid, so a browser test sees it.
#include <array>

#include "builder.h"
#include "traces.h"

namespace llmprof::traces {

std::span<const std::string_view> hostile_names() {
  static constexpr std::array<std::string_view, 40> kNames = {
      "<script>window.hostile_ran=1</script>",
      "</script><script>window.hostile_ran=2</script>",
      "<ScRiPt src=//hostile.invalid/x.js></sCrIpT>",
      "<img src=x onerror=window.hostile_ran=3>",
      "<img src=\"http://hostile.invalid/i.png\">",
      "<svg onload=window.hostile_ran=4>",
      "<svg><script>window.hostile_ran=5</script></svg>",
      "<iframe srcdoc=\"<script>parent.hostile_ran=6</script>\">",
      "<a href=\"javascript:window.hostile_ran=7\">kernel</a>",
      "<meta http-equiv=refresh content=\"0;url=http://hostile.invalid/\">",
      "<base href=\"http://hostile.invalid/\">",
      "<form action=http://hostile.invalid/><button autofocus onfocus=window.hostile_ran=8>",
      "<style>@import 'http://hostile.invalid/s.css';</style>",
      "</style><script>window.hostile_ran=9</script>",
      "<!--<script>window.hostile_ran=10</script>",
      "--><script>window.hostile_ran=11</script>",
      "<![CDATA[<script>window.hostile_ran=12</script>]]>",
      "\"><script>window.hostile_ran=13</script>",
      "'><img src=x onerror='window.hostile_ran=14'>",
      "\" onmouseover=\"window.hostile_ran=15",
      "javascript:window.hostile_ran=16",
      "data:text/html,<script>window.hostile_ran=17</script>",
      "${window.hostile_ran=18}`;window.hostile_ran=18;//",
      "{{constructor.constructor('window.hostile_ran=19')()}}",
      "__proto__",
      "constructor",
      "toString",
      "&lt;script&gt;window.hostile_ran=20&lt;/script&gt;",
      "\\u003cscript\\u003ewindow.hostile_ran=21\\u003c/script\\u003e",
      "%3Cscript%3Ewindow.hostile_ran=22%3C/script%3E",
      "line\xe2\x80\xa8separator\xe2\x80\xa9window.hostile_ran=23",
      "gemm\xe2\x80\xae<tpircs>\xe2\x80\xac",  // right-to-left override
      "a\xe2\x80\x8b"
      "b\xef\xbb\xbf"
      "c\xe2\x80\x8d"
      "d",  // zero width space, byte order mark, joiner
      "\xef\xbc\x9cscript\xef\xbc\x9ewindow.hostile_ran=24\xef\xbc\x9c/script\xef\xbc\x9e",
      "=HYPERLINK(\"http://hostile.invalid/\",\"click\")",
      "@SUM(1+1)*cmd|' /C calc'!A0",
      "'; DROP TABLE kernel; --",
      "../../../../etc/passwd",
      "\x1b]0;title\x07\x1b[31mred\x1b[0m",
      "{\"__proto__\": {\"hostile_ran\": 25}}",
  };
  return kNames;
}

namespace {

constexpr std::int64_t kGpu = 2;
constexpr std::int64_t kSlot = 100'000;  // ns that each name gets

class HostileBuilder : public Builder {
 public:
  HostileBuilder(trace::RunWriter& writer, std::int64_t end_ns) : Builder(writer, end_ns), writer_(writer) {}

  // Everything that carries this name, in the time from `begin` on.
  void everywhere(std::string_view text, std::int64_t number, std::int64_t begin) {
    const std::int64_t thread_id = 10 + number, stack_id = 1 + number;
    writer_.add(
        trace::ThreadRow{.id = thread_id, .process_id = 1, .tid = 500 + number, .name = name(text), .begin_ns = begin});
    range("step", number % 2 == 0 ? "decode" : text, begin, begin + 90'000, 1 | 1 << 16 | (5 + number) << 40);
    range("module", text, begin + 5'000, begin + 80'000);
    range("", text, begin + 6'000, begin + 70'000);
    writer_.add(trace::FrameRow{.id = 1 + number,
                                .kind = name(number % 2 == 0 ? "python" : "native"),
                                .function = name(text),
                                .file = name(text),
                                .line = 7});
    writer_.add(trace::StackRow{.stack_id = stack_id, .depth = 0, .frame_id = 1 + number});
    writer_.add(trace::SampleRow{
        .id = 1 + number, .ts_ns = begin + 20'000, .thread_id = 1, .stack_id = stack_id, .weight_ns = 10'000});
    trace::KernelRow kernel{.id = 1000 + number,
                            .begin_ns = begin + 20'000,
                            .end_ns = begin + 60'000,
                            .name = name(text),
                            .device_id = kGpu};
    kernel.stream = 7;
    kernel.thread_id = 1;
    kernel.launch_begin_ns = begin + 10'000;
    kernel.launch_end_ns = begin + 12'000;
    kernel.stack_id = stack_id;
    writer_.add(kernel);
    writer_.add(trace::ApiRow{
        .id = 1 + number, .begin_ns = begin + 10'000, .end_ns = begin + 12'000, .name = name(text), .thread_id = 1});
    writer_.add(
        trace::TelemetryRow{.ts_ns = begin, .device_id = kGpu, .metric = name(text), .value = 1, .unit = name(text)});
    writer_.add(trace::LossRow{.id = 1 + number,
                               .name = name(text),
                               .severity = name("data_loss"),
                               .count = 1,
                               .unit = name(text),
                               .meaning = name(text),
                               .remedy = name(text),
                               .detail = name(text)});
    writer_.add(trace::RequestRow{.id = 1 + number,
                                  .name = name(text),
                                  .source = name(number % 2 == 0 ? "server" : text),
                                  .arrival_ns = begin,
                                  .scheduled_ns = begin + 10'000,
                                  .first_token_ns = begin + 20'000,
                                  .last_token_ns = begin + 90'000,
                                  .end_ns = begin + 90'000,
                                  .prompt_tokens = 8,
                                  .output_tokens = 4,
                                  .status = name(text),
                                  .error = name(text)});
    writer_.add(trace::NoteRow{.ts_ns = begin, .process_id = 1, .subject = name(text), .text = name(text)});
    counted(text, number, begin);
    writer_.add(trace::SourceRow{
        .id = 1 + number, .file = name(text), .format = name("kineto"), .tool = name(text), .bytes = 1});
  }

 private:
  // Hardware counters of a range, and stalls.
  void counted(std::string_view text, std::int64_t number, std::int64_t begin) {
    writer_.add(trace::CounterWindowRow{.id = 2000 + number,
                                        .counter_window_id = 2000 + number,
                                        .scope = name("range"),
                                        .method = name("range"),
                                        .begin_ns = begin,
                                        .end_ns = begin + 90'000,
                                        .process_id = 1,
                                        .thread_id = 1,
                                        .device_id = kGpu,
                                        .name = name(text)});
    for (const std::string_view metric : {std::string_view("dram__bytes_read.sum"), text})
      writer_.add(trace::CounterRow{.id = 3000 + 2 * number + (metric == text ? 1 : 0),
                                    .scope = name("range"),
                                    .scope_id = 2000 + number,
                                    .metric = name(metric),
                                    .value = 1000,
                                    .unit = name(text),
                                    .method = name("range"),
                                    .passes = 1});
    writer_.add(trace::StallRow{.id = 4000 + number,
                                .process_id = 1,
                                .device_id = kGpu,
                                .kernel = name(text),
                                .reason = name(text),
                                .samples = 1 + number,
                                .file = name(text),
                                .line = 7});
  }

  trace::RunWriter& writer_;
};

}  // namespace

Result<void> write_hostile(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  const auto names = hostile_names();
  const auto end = static_cast<std::int64_t>(names.size() + 1) * kSlot;
  HostileBuilder run(writer, end);
  run.thread(1);
  writer.add(trace::DeviceRow{
      .id = kGpu, .kind = run.name("gpu"), .name = run.name(names[3]), .units = 4, .memory_bytes = 1'000'000'000});
  run.peak("flops", names[0], 1e9, "FLOP/s", kGpu);
  run.peak("bandwidth", "read", 1e9, "B/s", kGpu);
  run.range("model", names[1], 10, 10);
  for (std::size_t i = 0; i < names.size(); ++i)
    run.everywhere(names[i], static_cast<std::int64_t>(i), static_cast<std::int64_t>(i + 1) * kSlot);
  trace::RunInfo info = run_info({});
  for (const std::string_view text : names) info.command.emplace_back(text);
  info.window = names[5];
  info.environment =
      R"({"system": {"distribution": "</script><script>window.hostile_ran=30</script>", "kernel": "<img src=x onerror=window.hostile_ran=31>"}, "variables": {"HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz123456", "HOME_OF": "/home/ann/secret"}})";
  return writer.finish(info);
}

}  // namespace llmprof::traces

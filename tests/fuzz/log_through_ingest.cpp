#include "log_through_ingest.h"

#include <cstring>

#include "fuzz.h"
#include "record/testing/log_builder.h"
#include "record/log/ingest.h"
#include "trace/run_writer.h"

// The real writer makes Parquet files with threads and DuckDB; this one looks at each row and forgets it.
namespace llmprof::trace {

class TableSink {
 public:
  Strings strings;
};
RowWriter::RowWriter(std::string folder, std::unique_ptr<TableSink> sink)
    : folder_(std::move(folder)), sink_(std::move(sink)) {}
RowWriter::RowWriter(RowWriter&&) noexcept = default;
RowWriter& RowWriter::operator=(RowWriter&&) noexcept = default;
RowWriter::~RowWriter() = default;
Strings& RowWriter::strings() { return sink_->strings; }
Result<RunWriter> RunWriter::create(const std::string&, const WriterLimits&) {
  return RunWriter("", std::make_unique<TableSink>());
}

void RowWriter::add_bytes(const Table& table, const void* row) {
  const auto* bytes = static_cast<const char*>(row);
  std::int64_t begin_ns = 0, end_ns = 0;
  for (const Column& column : table.columns) {
    if (column.type == ColumnType::kName) {
      Name name;
      std::memcpy(&name, bytes + column.offset, sizeof name);
      fuzz::require(name.id <= sink_->strings.size());
    }
    if (column.name == "begin_ns") std::memcpy(&begin_ns, bytes + column.offset, sizeof begin_ns);
    if (column.name == "end_ns" && !column.nullable) std::memcpy(&end_ns, bytes + column.offset, sizeof end_ns);
  }
  for (const std::string_view name :
       {"range", "kernel", "gemm", "copy", "graph_launch", "api", "gap", "counter_window"}) {
    if (table.name == name) fuzz::require(begin_ns <= end_ns);
  }
}

}  // namespace llmprof::trace

namespace llmprof::fuzz {
namespace {

using record::LogBuilder;
using wire::RangeOp;

// What is decoded must survive being encoded and decoded again.
void round_trip(wire::RecordKind kind, std::uint32_t thread, std::span<const wire::Record> records) {
  static std::vector<std::uint8_t> memory(sizeof(wire::BlockHeader) + wire::kMaxPayloadBytes);
  static std::vector<wire::Record> again(wire::kMaxSectionRecords);
  std::vector<const wire::Record*> pointers;
  for (const wire::Record& record : records) pointers.push_back(&record);
  wire::BlockBuilder block(memory.data(), memory.size());
  if (!block.add_records(kind, thread, pointers.data(), pointers.size())) return;  // 4096 of the widest do not fit
  block.finish(0);
  const wire::Step step = wire::BlockReader({block.data(), block.size()}, 0).next();
  wire::SectionReader sections(step.block);
  wire::Section section;
  require(sections.next(&section) && section.thread == thread && section.count == records.size());
  require(wire::decode_records(section, again.data()));
  require(std::memcmp(static_cast<const void*>(again.data()), records.data(), records.size_bytes()) == 0);
}

class CheckedIngest final : public record::LogSink {
 public:
  explicit CheckedIngest(record::LogIngest& ingest) : ingest_(ingest) {}
  void define(wire::StringId id, std::string_view text) override { ingest_.define(id, text); }
  void receive(wire::RecordKind kind, std::uint32_t thread, std::span<const wire::Record> records) override {
    round_trip(kind, thread, records);
    ingest_.receive(kind, thread, records);
  }
  void gap() override { ingest_.gap(); }

 private:
  record::LogIngest& ingest_;
};

std::string ordinary_log() {
  LogBuilder log;
  log.process({.ts_ns = 1'000'000, .pid = 4242, .parent_pid = 1, .start_ticks = 1}, "/usr/bin/python3",
              std::string("python3\0--token=x", 17));
  log.thread(1, 4242, "main", 1'000'100);
  log.domain(1, "llmprof");
  log.category(1, 7, "stage");
  log.push(1, 1'100'000, "decode",
           {.payload = 5, .category = 7, .domain = 1, .payload_type = wire::PayloadType::kSigned});
  log.push(1, 1'200'000, "layers.0.mlp.up_proj");
  log.gemm(1, "cblas_sgemm", {.begin_ns = 1'210'000, .end_ns = 1'290'000, .m = 1, .n = 4096, .k = 11008, .batch = 1});
  log.pop(1, 1'300'000);
  log.pop(1, 1'400'000, 1);
  log.end_block();
  log.range(1, RangeOp::kStart, 1'500'000, "across", {.correlation = (1ull << 32) + 1});
  log.thread(2, 4243, "worker", 1'500'100);
  log.range(2, RangeOp::kEnd, 1'600'000, "", {.correlation = (1ull << 32) + 1});
  log.range(2, RangeOp::kMark, 1'650'000, "mark");
  log.loss(wire::LossKind::kBufferFull, 3);
  log.loss(wire::LossKind::kWriteFailed, 100, 28);
  log.process({.ts_ns = 1'700'000, .pid = 4242, .start_ticks = 1, .ended = 1}, "/usr/bin/python3", "python3");
  return log.bytes();
}

// Killed with a range open; a block is missing before, and the last one is torn.
std::string killed_log() {
  LogBuilder log;
  log.thread(1, 4242, "main", 1'000'100);
  log.push(1, 1'100'000, "outer");
  log.end_block();
  log.push(1, 1'150'000, "lost");
  log.skip_block();
  for (std::uint64_t i = 0; i < 40; ++i) {
    log.push(1, 1'200'000 + 1000 * i, "inner");
    log.pop(1, 1'200'500 + 1000 * i);
  }
  const std::string bytes = log.bytes();
  return bytes.substr(0, bytes.size() - 5);
}

// Times and counts around which something might wrap.
std::string late_log() {
  LogBuilder log;
  for (const std::uint64_t ns : {1ull << 47, 1ull << 53, (1ull << 63) - 1, ~0ull}) {
    log.push(1, ns - 1, "late");
    log.pop(1, ns);
    log.loss(wire::LossKind::kBufferFull, ns);
  }
  return log.bytes();
}

// A record of a kind, filled by its member.
template <class Value>
wire::Record record_of(wire::RecordKind kind, Value wire::Record::*member, const Value& value) {
  wire::Record record{};
  record.kind = kind;
  record.*member = value;
  return record;
}

// A GPU: a kernel, a copy, a product, a captured graph of one node, launched as a whole and node by node.
std::string gpu_log() {
  using wire::Record;
  using wire::RecordKind;
  LogBuilder log;
  log.thread(1, 4242, "main", 1'000'100);
  log.add(
      0, {record_of(RecordKind::kDevice, &Record::device,
                    {.uuid_high = 1, .uuid_low = 2, .memory_bytes = 1u << 30, .name = log.name("GPU"), .units = 132})});
  log.add(0,
          {record_of(RecordKind::kKernelShape, &Record::kernel_shape,
                     {.id = 1, .name = log.name("_Z4gemmv"), .grid_x = 4, .grid_y = 1, .grid_z = 1, .block_x = 128})});
  log.add(0, {record_of(RecordKind::kGemmShape, &Record::gemm_shape,
                        {.id = 2, .function = log.name("cublasGemmEx"), .type_a = log.name("bfloat16")})});
  log.push(1, 1'100'000, "decode");
  log.add(1, {record_of(RecordKind::kGpuGemm, &Record::gpu_gemm,
                        {.begin_ns = 1'100'500, .end_ns = 1'104'000, .m = 4, .n = 5, .k = 6, .batch = 1, .shape = 2})});
  log.add(1,
          {record_of(RecordKind::kLaunch, &Record::launch,
                     {.begin_ns = 1'101'000, .end_ns = 1'103'000, .correlation = 7, .op = wire::LaunchOp::kKernel})});
  log.add(
      1,
      {record_of(RecordKind::kGraphNode, &Record::graph_node,
                 {.ts_ns = 1'105'000,
                  .node = 1,
                  .name = log.name("_Z4gemmv"),
                  .graph = 1,
                  .kind = wire::GraphNodeKind::kKernel}),
       record_of(RecordKind::kGraphNode, &Record::graph_node,
                 {.ts_ns = 1'106'000, .node = 2, .cloned_from = 1, .graph = 2, .kind = wire::GraphNodeKind::kKernel})});
  log.add(
      1,
      {record_of(
          RecordKind::kLaunch, &Record::launch,
          {.begin_ns = 1'110'000, .end_ns = 1'111'000, .correlation = 8, .graph = 2, .op = wire::LaunchOp::kGraph})});
  log.add(1, {record_of(RecordKind::kGraphNode, &Record::graph_node,
                        {.ts_ns = 1'115'000,
                         .node = 1,
                         .name = log.name("other"),
                         .graph = 2,
                         .kind = wire::GraphNodeKind::kUpdate}),
              record_of(RecordKind::kGraphNode, &Record::graph_node,
                        {.ts_ns = 1'116'000, .cloned_from = 1, .graph = 2, .kind = wire::GraphNodeKind::kUpdate})});
  log.pop(1, 1'200'000);
  log.add(
      0,
      {record_of(RecordKind::kKernel, &Record::kernel,
                 {.begin_ns = 1'104'000, .end_ns = 1'109'000, .correlation = 7, .shape = 1, .stream = 7}),
       record_of(
           RecordKind::kKernel, &Record::kernel,
           {.begin_ns = 1'112'000, .end_ns = 1'113'000, .graph_node = 2, .correlation = 8, .shape = 1, .graph = 2})});
  log.add(0, {record_of(RecordKind::kCopy, &Record::copy,
                        {.begin_ns = 1'114'000,
                         .end_ns = 1'115'000,
                         .bytes = 4096,
                         .correlation = 9,
                         .kind = wire::CopyKind::kMemset})});
  log.add(0, {record_of(RecordKind::kGraphLaunch, &Record::graph_launch,
                        {.begin_ns = 1'120'000, .end_ns = 1'130'000, .correlation = 10, .graph = 2})});
  log.add(1, {record_of(RecordKind::kDeviceMemory, &Record::device_memory,
                        {.ts_ns = 1'140'000, .address = 4096, .bytes = 512, .op = wire::MemoryOp::kAllocate})});
  log.add(1, {record_of(RecordKind::kApi, &Record::api,
                        {.begin_ns = 1'150'000, .end_ns = 1'160'000, .name = log.name("cuInit")})});
  log.add(0, {record_of(RecordKind::kGap, &Record::gap, {.begin_ns = 1, .end_ns = 2, .why = log.name("why")})});
  log.add(0, {record_of(RecordKind::kNote, &Record::note,
                        {.ts_ns = 3, .subject = log.name("cupti"), .text = log.name("text")})});
  log.loss(wire::LossKind::kCuptiError, 1, 35 | 4ull << 32);
  return log.bytes();
}

// Counters: a range of two passes, a kernel before its record, a graph, and a place where warps wait.
std::string counters_log() {
  using wire::CounterScope;
  using wire::Record;
  using wire::RecordKind;
  LogBuilder log;
  log.thread(1, 4242, "main", 1'000'100);
  const auto window = [&](wire::CounterWindowRecord record) {
    log.add(1, {record_of(RecordKind::kCounterWindow, &Record::counter_window, record)});
  };
  const auto value = [&](std::uint32_t measurement, const char* metric, double number) {
    log.add(0,
            {record_of(RecordKind::kCounter, &Record::counter,
                       {.ts_ns = 1'300'000, .value = number, .measurement = measurement, .metric = log.name(metric)})});
  };
  for (std::uint8_t pass = 0; pass < 2; ++pass) {
    window({.begin_ns = 1'100'000,
            .end_ns = 1'200'000,
            .cost_ns = 900,
            .measurement = 1,
            .name = log.name("decode"),
            .scope = CounterScope::kRange,
            .pass = pass,
            .passes = 2});
  }
  value(1, "dram__bytes_read.sum", 4096);
  window({.begin_ns = 1'210'000,
          .end_ns = 1'220'000,
          .measurement = 2,
          .correlation = 7,
          .name = log.name("_Z4gemmv"),
          .scope = CounterScope::kKernel,
          .passes = 1});
  value(2, "gpu__time_duration.sum", 2000);
  window({.begin_ns = 1'230'000,
          .end_ns = 1'240'000,
          .measurement = 3,
          .correlation = 8,
          .scope = CounterScope::kGraph,
          .passes = 1});
  log.add(0, {record_of(RecordKind::kKernel, &Record::kernel,
                        {.begin_ns = 1'211'000, .end_ns = 1'213'000, .correlation = 7})});
  log.add(0, {record_of(RecordKind::kGraphLaunch, &Record::graph_launch,
                        {.begin_ns = 1'231'000, .end_ns = 1'233'000, .correlation = 8, .graph = 2})});
  log.add(0, {record_of(RecordKind::kStall, &Record::stall,
                        {.ts_ns = 1'300'000,
                         .samples = 5,
                         .cubin = 1,
                         .pc_offset = 16,
                         .function = log.name("_Z4gemmv"),
                         .reason = log.name("long_scoreboard"),
                         .line = 3,
                         .issued = 1})});
  log.loss(wire::LossKind::kCountersFailed, 1, 999 | 16ull << 32);
  return log.bytes();
}

}  // namespace

void log_through_ingest(std::string_view log) {
  const auto reader = record::LogReader::open(in_file(log));
  if (!reader) return;
  auto writer = trace::RunWriter::create("");
  record::Ledger ledger;
  record::RunRows rows{.writer = *writer, .ledger = ledger};
  record::LogIngest ingest(rows, {.name = "input.log"}, reader->header());
  CheckedIngest checked(ingest);
  const auto stats = reader->read(checked, base::no_progress);
  require(bool(stats));
  require(stats->damaged_bytes + stats->torn_bytes <= 2 * log.size());
  ingest.finish(*stats);
  for (const record::LossTotal& total : ledger.write(*writer, rows.next_id)) require(total.count > 0);
}

std::vector<std::string> sample_logs() { return {ordinary_log(), killed_log(), late_log(), gpu_log(), counters_log()}; }

std::vector<std::string> log_words() {
  std::vector<std::string> words{"LLMPROFW", "BLK1"};
  for (const std::uint64_t value : {~0ull, 1ull << 63, 1ull << 53, 1ull << 47, 4095ull, 4096ull, 4097ull, 65536ull}) {
    std::uint8_t bytes[wire::kMaxVarintBytes];
    const std::uint8_t* end = wire::put_varint(bytes, value);
    words.emplace_back(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
  }
  return words;
}

}  // namespace llmprof::fuzz

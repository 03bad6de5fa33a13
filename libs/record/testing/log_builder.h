#pragma once
// Builds capture logs in memory, for tests and benchmarks: the collector's half of the wire without a collector.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "wire/encode.h"

namespace llmprof::record {

class LogBuilder {
 public:
  explicit LogBuilder(std::uint64_t pid = 4242, std::uint64_t start_ticks = 1, std::uint64_t raw_ns = 1'000'000,
                      std::uint32_t segment = 0)
      : memory_(sizeof(wire::BlockHeader) + wire::kMaxPayloadBytes), block_(memory_.data(), memory_.size()) {
    wire::FileHeader header{};
    header.pid = pid;
    header.start_ticks = start_ticks;
    header.raw_ns = raw_ns;
    header.wall_ns = raw_ns + 1'000'000'000'000'000'000;
    header.segment = segment;
    wire::seal_file_header(&header);
    bytes_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  }

  // The id of a name, defined at its first use.
  wire::StringId name(const std::string& text) {
    const auto [found, added] = names_.emplace(text, static_cast<wire::StringId>(names_.size() + 1));
    if (added) {
      if (string_room(text) > block_.room()) end_block();
      block_.add_string(found->second, text.data(), text.size());
    }
    return found->second;
  }

  void add(std::uint32_t thread, const std::vector<wire::Record>& records) {
    std::vector<const wire::Record*> pointers;
    for (const wire::Record& record : records) pointers.push_back(&record);
    if (block_.add_records(records.front().kind, thread, pointers.data(), pointers.size())) return;
    end_block();
    block_.add_records(records.front().kind, thread, pointers.data(), pointers.size());
  }

  void range(std::uint32_t thread, wire::RangeOp op, std::uint64_t ts_ns, const std::string& text = "",
             wire::RangeRecord more = {}) {
    wire::Record record = make(wire::RecordKind::kRange);
    record.range = more;
    record.range.op = op;
    record.range.ts_ns = ts_ns;
    record.range.name = text.empty() ? 0 : name(text);
    std::uint16_t& level = levels_[{thread, more.domain}];  // as a collector counts them
    record.range.level = wire::kNoLevel;
    if (op == wire::RangeOp::kPush) record.range.level = level++;
    if (op == wire::RangeOp::kPop) record.range.level = level > 0 ? --level : wire::kNoLevel;
    if (op == wire::RangeOp::kPush || op == wire::RangeOp::kPop) record.range.correlation = dropped_[thread];
    if (dropping_) {
      ++dropped_[thread];
    } else {
      add(thread, {record});
    }
  }
  // While on, range events count in the nesting and as dropped, but are not in the log.
  void drop(bool on) { dropping_ = on; }
  void push(std::uint32_t thread, std::uint64_t ts_ns, const std::string& text, wire::RangeRecord more = {}) {
    range(thread, wire::RangeOp::kPush, ts_ns, text, more);
  }
  void pop(std::uint32_t thread, std::uint64_t ts_ns, std::uint32_t domain = 0) {
    range(thread, wire::RangeOp::kPop, ts_ns, "", {.domain = domain});
  }
  void gemm(std::uint32_t thread, const std::string& function, wire::GemmRecord call) {
    wire::Record record = make(wire::RecordKind::kGemm);
    record.gemm = call;
    record.gemm.function = name(function);
    record.gemm.library = name("/usr/lib/libopenblas.so.0");
    add(thread, {record});
  }
  void thread(std::uint32_t number, std::uint64_t tid, const std::string& text, std::uint64_t ts_ns) {
    wire::Record record = make(wire::RecordKind::kThread);
    record.thread = {.ts_ns = ts_ns, .tid = tid, .name = name(text)};
    add(number, {record});
  }
  void process(wire::ProcessRecord process, const std::string& executable, const std::string& arguments) {
    wire::Record record = make(wire::RecordKind::kProcess);
    record.process = process;
    record.process.executable = name(executable);
    record.process.arguments = name(arguments);
    record.process.host = name("host1");
    add(0, {record});
  }
  void loss(wire::LossKind kind, std::uint64_t count, std::uint64_t detail = 0) {
    wire::Record record = make(wire::RecordKind::kLoss);
    record.loss = {.ts_ns = 2'000'000, .count = count, .detail = detail, .kind = kind};
    add(0, {record});
  }
  void domain(std::uint32_t number, const std::string& text) {
    wire::Record record = make(wire::RecordKind::kDomain);
    record.domain = {number, name(text)};
    add(0, {record});
  }
  void category(std::uint32_t domain_number, std::uint32_t number, const std::string& text) {
    wire::Record record = make(wire::RecordKind::kCategory);
    record.category = {domain_number, number, name(text)};
    add(0, {record});
  }

  void end_block() {
    if (block_.empty()) return;
    block_.finish(sequence_++);
    bytes_.append(reinterpret_cast<const char*>(block_.data()), block_.size());
    block_.clear();
  }
  void skip_block() {  // as if a block had been lost
    block_.clear();
    ++sequence_;
  }
  // The file so far.
  const std::string& bytes() {
    end_block();
    return bytes_;
  }
  void clear_bytes() { bytes_.clear(); }  // written out by the caller

  static wire::Record make(wire::RecordKind kind) {
    wire::Record record;
    __builtin_memset(static_cast<void*>(&record), 0, sizeof record);
    record.kind = kind;
    return record;
  }

 private:
  static std::size_t string_room(const std::string& text) { return wire::string_bound(text.size()); }

  std::vector<std::uint8_t> memory_;
  wire::BlockBuilder block_;
  std::string bytes_;
  std::map<std::string, wire::StringId> names_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint16_t> levels_;
  std::map<std::uint32_t, std::uint64_t> dropped_;  // by thread
  bool dropping_ = false;
  std::uint32_t sequence_ = 0;
};

}  // namespace llmprof::record

#include "record/check_log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <unordered_set>

namespace llmprof::record {
namespace {

constexpr std::array<const char*, wire::kRecordKinds> kKindNames{"none",
                                                                 "range",
                                                                 "gemm",
                                                                 "clock_sync",
                                                                 "loss",
                                                                 "thread",
                                                                 "process",
                                                                 "domain",
                                                                 "category",
                                                                 "library",
                                                                 "usage",
                                                                 "io",
                                                                 "frame",
                                                                 "stack",
                                                                 "sample",
                                                                 "cost",
                                                                 "segment",
                                                                 "device",
                                                                 "launch",
                                                                 "kernel_shape",
                                                                 "kernel",
                                                                 "copy",
                                                                 "graph_launch",
                                                                 "graph_node",
                                                                 "gemm_shape",
                                                                 "gpu_gemm",
                                                                 "device_memory",
                                                                 "api",
                                                                 "gap",
                                                                 "telemetry",
                                                                 "telemetry_device",
                                                                 "note",
                                                                 "counter_window",
                                                                 "counter",
                                                                 "stall"};
static_assert(kKindNames.back() != nullptr);

class Counter final : public LogSink {
 public:
  explicit Counter(LogCheck& check) : check_(check) {}

  void define(wire::StringId id, std::string_view) override {
    ++check_.names;
    names_.insert(id);
  }
  void gap() override {}

  void receive(wire::RecordKind kind, std::uint32_t, std::span<const wire::Record> records) override {
    counts_[static_cast<std::size_t>(kind)] += static_cast<std::int64_t>(records.size());
    for (const wire::Record& record : records) take(kind, record);
    use_names(kind, records);
  }

  void finish() {
    for (std::size_t kind = 1; kind < counts_.size(); ++kind) {
      if (counts_[kind] != 0) check_.records.emplace_back(kKindNames[kind], counts_[kind]);
    }
    check_.lost_names = static_cast<std::int64_t>(lost_names_.size());
    check_.lost_definitions = static_cast<std::int64_t>(lost_definitions_.size());
  }

 private:
  void take(wire::RecordKind kind, const wire::Record& record) {
    switch (kind) {
      case wire::RecordKind::kRange:
        return note_time(record.range.ts_ns, record.range.ts_ns);
      case wire::RecordKind::kGemm:
        return note_time(record.gemm.begin_ns, record.gemm.end_ns);
      case wire::RecordKind::kLaunch:
        return note_time(record.launch.begin_ns, record.launch.end_ns);
      case wire::RecordKind::kKernel:
        return note_time(record.kernel.begin_ns, record.kernel.end_ns);
      case wire::RecordKind::kCopy:
        return note_time(record.copy.begin_ns, record.copy.end_ns);
      case wire::RecordKind::kGraphLaunch:
        return note_time(record.graph_launch.begin_ns, record.graph_launch.end_ns);
      case wire::RecordKind::kGpuGemm:
        return note_time(record.gpu_gemm.begin_ns, record.gpu_gemm.end_ns);
      case wire::RecordKind::kFrame:
      case wire::RecordKind::kStack:
      case wire::RecordKind::kKernelShape:
      case wire::RecordKind::kGemmShape:  // their number is the first of their members
        definitions_.insert(record.frame.id);
        return;
      case wire::RecordKind::kProcess:
        check_.ended = check_.ended || record.process.ended != 0;
        return;
      case wire::RecordKind::kLoss:
        return add_loss(record.loss);
      default:
        return;
    }
  }
  // Whatever a record names must have been defined before it.
  void use_names(wire::RecordKind kind, std::span<const wire::Record> records) {
    const wire::FieldList list = wire::fields_of(static_cast<std::uint64_t>(kind));
    for (std::size_t i = 0; i < list.count; ++i) {
      const wire::Field& field = list.fields[i];
      if (field.role == wire::FieldRole::kValue) continue;
      const bool name = field.role == wire::FieldRole::kName;
      for (const wire::Record& record : records) {
        const auto id = static_cast<std::uint32_t>(wire::load_field(record, field));
        if (id != 0 && !(name ? names_ : definitions_).contains(id))
          (name ? lost_names_ : lost_definitions_).insert(id);
      }
    }
  }
  void note_time(std::uint64_t begin, std::uint64_t end) {
    const auto begin_ns = static_cast<std::int64_t>(begin);
    if (check_.first_ns == 0 || begin_ns < check_.first_ns) check_.first_ns = begin_ns;
    check_.last_ns = std::max(check_.last_ns, static_cast<std::int64_t>(end));
  }
  void add_loss(const wire::LossRecord& record) {
    if (!trace::is_of_collector(static_cast<std::size_t>(record.kind))) return;
    const auto loss = static_cast<trace::Loss>(record.kind);
    for (LossTotal& total : check_.losses) {
      if (total.loss == loss) {
        total.count += static_cast<std::int64_t>(record.count);
        return;
      }
    }
    check_.losses.push_back({loss, static_cast<std::int64_t>(record.count), ""});
  }

  LogCheck& check_;
  std::array<std::int64_t, wire::kRecordKinds> counts_{};
  std::unordered_set<std::uint32_t> names_, definitions_;
  std::unordered_set<std::uint32_t> lost_names_, lost_definitions_;
};

}  // namespace

Result<LogCheck> check_log(const std::string& path, const base::Progress& progress) {
  LLMPROF_LET(const LogReader reader, LogReader::open(path));
  LogCheck check;
  check.version = reader.header().version;
  check.pid = static_cast<std::int64_t>(reader.header().pid);
  check.header_damaged = reader.header_damaged();
  Counter counter(check);
  LLMPROF_LET(check.stats, reader.read(counter, progress));
  counter.finish();
  return check;
}

bool is_log(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  char magic[sizeof wire::kFileMagic] = {};
  const bool read = std::fread(magic, sizeof magic, 1, file) == 1;
  std::fclose(file);
  return read && std::memcmp(magic, wire::kFileMagic, sizeof magic) == 0;
}

}  // namespace llmprof::record

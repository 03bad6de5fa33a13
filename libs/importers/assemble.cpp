#include "importers/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "hw/redact.h"

namespace llmprof::importers {
namespace {

constexpr std::int64_t kDayNs = 86'400'000'000'000;
constexpr std::size_t kMostLosses = 1000;  // of one file

std::string_view text_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

std::int64_t midnight_before(std::int64_t wall_ns) {
  const std::int64_t into_day = ((wall_ns % kDayNs) + kDayNs) % kDayNs;
  return wall_ns - into_day;
}

std::string date_of(std::int64_t wall_ns) {
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string without_folder(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

Assembler::Assembler(trace::RunWriter& writer, bool joins)
    : writer_(writer), identities_(writer), held_(writer), joins_(joins) {}

void Assembler::begin_file(const Importer& importer, const std::string& name, std::uint64_t bytes) {
  File file;
  file.importer = &importer;
  file.told = {name, std::string(importer.name), std::string(importer.title), "", bytes, 0};
  files_.push_back(std::move(file));
  map_ = {};
  map_.process_id = ++next_base_;  // in case the file tells of none
  map_.id_base = next_base_;
  if (importer.role != Role::kTrace && identities_.only_process() != 0) map_.process_id = identities_.only_process();
  clock_given_ = false;
  identities_.begin_file(importer.role);
}

Result<void> Assembler::take(const Frame& frame, std::span<std::byte> payload) {
  if (frame.kind == FrameKind::kRows) return take_rows(frame, payload);
  if (frame.kind == FrameKind::kNames) return take_names(frame, payload);
  if (frame.kind == FrameKind::kClock) return take_clock(frame, text_of(payload));
  if (frame.kind == FrameKind::kFacts) return take_facts(payload);
  if (frame.kind == FrameKind::kLoss) return take_loss(frame, text_of(payload));
  return broken_protocol("a frame of an unknown kind");
}

Result<void> Assembler::take_clock(const Frame& frame, std::string_view name) {
  if (clock_given_ && files_.back().has_times) return broken_protocol("a clock after rows");
  clock_given_ = true;
  FileClock& clock = files_.back().clock;
  clock.name = std::string(name);
  clock.wall_of_zero_ns = frame.count != 0 ? std::optional(frame.number) : std::nullopt;
  return {};
}

Result<void> Assembler::take_facts(std::span<const std::byte> payload) {
  TextReader texts(payload);
  FileFacts& facts = files_.back().facts;
  for (std::string* to : {&facts.tool, &facts.command, &facts.host, &facts.model_config, &facts.rank}) {
    std::string_view text;
    if (!texts.next(text)) return broken_protocol("facts that are cut");
    *to = std::string(text);
  }
  facts.command = hw::redact_text(facts.command);
  files_.back().told.tool = facts.tool;
  identities_.set_origin(facts.rank, facts.host);
  return {};
}

Result<void> Assembler::take_names(const Frame& frame, std::span<const std::byte> payload) {
  if (frame.number != static_cast<std::int64_t>(map_.names.size())) return broken_protocol("names out of order");
  TextReader texts(payload);
  trace::Strings& strings = writer_.strings();
  for (std::int64_t i = 0; i < frame.count; ++i) {
    std::string_view text;
    if (!texts.next(text)) return broken_protocol("names that are cut");
    const bool full = strings.size() >= Sink::kMaxNames || name_bytes_ > Sink::kMaxAllNameBytes;
    if (full && !strings.knows(text)) {
      ++names_dropped_;
      text = "<other>";
    }
    const std::size_t before = strings.size();
    map_.names.push_back(strings.intern(text).id);
    if (strings.size() != before) name_bytes_ += text.size();
  }
  return texts.at_end() ? Result<void>() : broken_protocol("names that are too many");
}

Result<void> Assembler::take_loss(const Frame& frame, std::string_view detail) {
  if (frame.number <= 0 || frame.number >= static_cast<std::int64_t>(trace::Loss::kCount) || frame.count <= 0 ||
      out_.losses.size() > kMostLosses * files_.size())
    return broken_protocol("a loss that is none");
  lose(static_cast<trace::Loss>(frame.number), frame.count, std::string(detail));
  return {};
}

// A file is cut off once, however many say so.
void Assembler::lose(trace::Loss loss, std::int64_t count, std::string detail) {
  if (count <= 0) return;
  const std::string& name = files_.back().told.name;
  if (loss == trace::Loss::kInputTruncated) {
    for (ImportLoss& other : out_.losses) {
      if (other.loss != loss || other.file != name) continue;
      other.detail += other.detail.empty() || detail.empty() ? detail : "; " + detail;
      return;
    }
  }
  out_.losses.push_back({loss, count, name, std::move(detail)});
}

Result<void> Assembler::take_rows(const Frame& frame, std::span<std::byte> payload) {
  const TablePlan* plan = plan_of(frame.number);
  if (plan == nullptr) return broken_protocol("rows of a table that no importer writes");
  const trace::Table& table = plan->table();
  const auto count = static_cast<std::size_t>(frame.count);
  if (frame.count <= 0 || count > payload.size() || count * table.row_bytes != payload.size())
    return broken_protocol("rows that are cut");
  if (&table == &trace::table_of<trace::ProcessRow>()) return take_identities<trace::ProcessRow>(*plan, payload, count);
  if (&table == &trace::table_of<trace::ThreadRow>()) return take_identities<trace::ThreadRow>(*plan, payload, count);
  if (&table == &trace::table_of<trace::DeviceRow>()) return take_identities<trace::DeviceRow>(*plan, payload, count);
  File& file = files_.back();
  for (std::size_t i = 0; i < count && !file.has_times; ++i) {
    std::int64_t first_ns = 0;
    if (plan->first_time(payload.data() + i * table.row_bytes, first_ns)) settle_clock(first_ns);
  }
  LLMPROF_LET(const std::size_t kept, plan->apply(payload.data(), count, map_));
  bad_times_ += static_cast<std::int64_t>(count - kept);
  keep_rows(table, payload.data(), kept);
  return {};
}

template <class Row>
Result<void> Assembler::take_identities(const TablePlan& plan, std::span<std::byte> rows, std::size_t count) {
  const std::int64_t shift_ns = std::exchange(map_.shift_ns, 0);  // their times are settled at the end of the file
  const Result<std::size_t> kept = plan.apply(rows.data(), count, map_);
  map_.shift_ns = shift_ns;
  if (!kept) return kept.error();
  for (std::size_t i = 0; i < *kept; ++i) {
    Row row;
    std::memcpy(static_cast<void*>(&row), rows.data() + i * sizeof(Row), sizeof(Row));
    identities_.add(row, map_);
  }
  rows_ += static_cast<std::int64_t>(*kept);
  files_.back().told.rows += static_cast<std::int64_t>(*kept);
  return {};
}

void Assembler::keep_rows(const trace::Table& table, const std::byte* rows, std::size_t count) {
  const auto added = static_cast<std::int64_t>(count);
  rows_ += added;
  files_.back().told.rows += added;
  const bool kernels = &table == &trace::table_of<trace::KernelRow>();
  const bool gemms = &table == &trace::table_of<trace::GemmRow>();
  if (kernels) out_.kernels += added;
  if (&table == &trace::table_of<trace::RangeRow>()) out_.ranges += added;
  if (&table == &trace::table_of<trace::OpRow>()) out_.ops += added;
  if (&table == &trace::table_of<trace::RequestRow>()) out_.requests += added;
  if (&table == &trace::table_of<trace::ReportedFigureRow>()) out_.figures += added;
  if (joins_ && kernels) return held_.add_kernels(rows, count);
  if (joins_ && gemms) return held_.add_products(rows, count, files_.back().importer->role == Role::kLog);
  if (gemms) out_.gemms += added;
  writer_.add_rows(table, rows, count);
}

// The run's clock counts from midnight of the day of the first event, so that its numbers stay readable.
void Assembler::settle_clock(std::int64_t first_ns) {
  File& file = files_.back();
  file.has_times = true;
  std::int64_t wall_ns = 0;
  std::optional<std::int64_t>& zero = file.clock.wall_of_zero_ns;
  if (zero && __builtin_add_overflow(*zero, first_ns, &wall_ns)) zero.reset();
  if (!clock_.settled) {
    clock_.settled = true;
    if (zero) clock_.wall_of_zero_ns = midnight_before(wall_ns);
    clock_.words = zero ? fmt::format("nanoseconds since midnight of {}, UTC", date_of(*clock_.wall_of_zero_ns))
                        : fmt::format("{} (its zero means nothing)",
                                      file.clock.name.empty() ? "the clock of the file" : file.clock.name);
  }
  std::int64_t shift_ns = 0;
  if (zero && clock_.wall_of_zero_ns && __builtin_sub_overflow(*zero, *clock_.wall_of_zero_ns, &shift_ns)) shift_ns = 0;
  map_.shift_ns = shift_ns;
  file.shift_ns = shift_ns;
  if (__builtin_add_overflow(first_ns, shift_ns, &file.first_ns)) file.first_ns = 0;
}

void Assembler::end_file() {
  File& file = files_.back();
  const bool lone = file.importer->role == Role::kTrace && !identities_.file_has_process();
  if (map_.process_id == map_.id_base && (map_.uses_process || lone)) {
    trace::ProcessRow row{.id = map_.process_id};
    row.host = optional_name(file.facts.host);
    row.arguments = optional_name(file.facts.command);
    identities_.add(row, map_);
  }
  identities_.end_file(map_);
  next_base_ = map_.id_base + map_.most_id;
  lose(trace::Loss::kBadTime, std::exchange(bad_times_, 0),
       "rows that end before they begin, or whose time is too large");
  lose(trace::Loss::kStringTableFull, std::exchange(names_dropped_, 0), "");
  // Of requests and readings, which have no begin and end, the first row stands for the file.
  const std::int64_t first_ns = map_.has_times ? map_.first_ns : file.first_ns;
  if (file.has_times && (!first_ns_ || first_ns < *first_ns_)) first_ns_ = first_ns;
  map_ = {};
}

trace::Name Assembler::optional_name(std::string_view text) {
  return text.empty() ? trace::Name{} : writer_.strings().intern(text);
}

void Assembler::write_sources() {
  trace::Id id = 0;
  for (const File& file : files_) {
    trace::SourceRow row;
    row.id = ++id;
    row.file = optional_name(without_folder(file.told.name));
    row.format = optional_name(file.told.format);
    row.tool = optional_name(file.told.tool);
    row.bytes = static_cast<std::int64_t>(file.told.bytes);
    row.clock = optional_name(file.clock.name);
    row.wall_of_zero_ns = file.clock.wall_of_zero_ns;
    row.shift_ns = file.shift_ns;
    writer_.add(row);
  }
}

void Assembler::write_losses() {
  trace::Id id = 0;
  for (const ImportLoss& lost : out_.losses) {
    const trace::LossInfo& info = trace::info_of(lost.loss);
    trace::LossRow row;
    row.id = ++id;
    row.name = optional_name(info.name);
    row.severity = optional_name(trace::name_of(info.severity));
    row.count = lost.count;
    row.unit = optional_name(info.unit);
    row.meaning = optional_name(info.meaning);
    row.remedy = optional_name(info.remedy);
    row.detail =
        optional_name(lost.detail.empty() ? without_folder(lost.file) : without_folder(lost.file) + ": " + lost.detail);
    writer_.add(row);
  }
}

void Assembler::write_clock_sync() {
  std::int64_t wall_ns = 0;
  if (!clock_.wall_of_zero_ns || !first_ns_ || __builtin_add_overflow(*clock_.wall_of_zero_ns, *first_ns_, &wall_ns))
    return;
  writer_.add(trace::ClockSyncRow{.ts_ns = *first_ns_, .wall_ns = wall_ns, .error_ns = 0, .process_id = {}});
}

Imported Assembler::finish() {
  if (joins_) {
    const HeldCalls::Joined joined = held_.finish(identities_);
    out_.calls_joined = joined.calls;
    out_.gemms += joined.gemm_rows;
    std::string logs;  // which of several a call came from is not kept
    for (const File& file : files_) {
      if (file.importer->role == Role::kLog) logs += (logs.empty() ? "" : ", ") + without_folder(file.told.name);
    }
    if (joined.not_joined > 0) out_.losses.push_back({trace::Loss::kCallsNotJoined, joined.not_joined, logs, ""});
    if (joined.not_kept > 0) {
      out_.losses.push_back(
          {trace::Loss::kInputLimit, joined.not_kept, logs, "calls of a log, beyond the first 300000"});
    }
  }
  // Calls of a log are placed by the kernels they are joined to, not by their times.
  const auto placed = [](const File& file) { return file.has_times && file.importer->role != Role::kLog; };
  const bool several = std::ranges::count_if(files_, placed) > 1;
  for (const File& file : files_) {
    if (placed(file) && several && !file.clock.wall_of_zero_ns)
      out_.losses.push_back({trace::Loss::kNoClock, 1, file.told.name, ""});
    out_.files.push_back(file.told);
  }
  identities_.write();
  write_sources();
  write_losses();
  write_clock_sync();
  return out_;
}

trace::RunInfo Assembler::run_info() const {
  trace::RunInfo info;
  info.source.clear();
  info.clock = clock_.settled ? clock_.words : "none: no file has times";
  for (const File& file : files_) {
    const std::string& format = file.told.format;
    if (("+" + info.source + "+").find("+" + format + "+") == std::string::npos)
      info.source += (info.source.empty() ? "" : "+") + format;
    if (info.command.empty() && !file.facts.command.empty()) info.command = {file.facts.command};
    if (!file.facts.model_config.empty())
      info.models.push_back({"opened", "in " + without_folder(file.told.name), file.facts.model_config, {}});
  }
  return info;
}

}  // namespace llmprof::importers

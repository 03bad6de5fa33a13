#include "record/log/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "base/strings.h"

namespace llmprof::record {
namespace {

constexpr std::uint64_t kGiveBackBytes = 32u << 20;  // pages behind the reader are dropped in steps of this

Result<wire::Bytes> map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) {
    return base::errno_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path, errno);
  }
  struct stat info {};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = static_cast<std::size_t>(regular ? info.st_size : 0);
  void* data = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  const int error_number = errno;
  ::close(fd);
  if (!regular) return Error{ErrorCode::kCorruptInput, path + ": not a regular file", ""};
  if (data == MAP_FAILED) return base::errno_error(ErrorCode::kIo, path, error_number);
  if (data != nullptr) ::madvise(data, size, MADV_SEQUENTIAL);
  return wire::Bytes{static_cast<const std::uint8_t*>(data), size};
}

// Hands the sections of intact blocks to a sink and counts the rest.
class Pass {
 public:
  Pass(LogSink& sink, LogStats& stats)
      : sink_(sink),
        stats_(stats),
        records_(std::make_unique_for_overwrite<wire::Record[]>(wire::kMaxSectionRecords)) {}

  void take(const wire::Step& step) {
    if (step.kind == wire::StepKind::kTornTail) {
      stats_.torn_bytes += step.bytes;
    } else if (step.kind == wire::StepKind::kDamage) {
      stats_.damaged_bytes += step.bytes;
      sink_.gap();
    } else {
      take_block(step);
    }
  }

 private:
  void take_block(const wire::Step& step) {
    ++stats_.blocks;
    stats_.missing_blocks += step.missing_blocks;
    if (step.missing_blocks != 0) sink_.gap();
    wire::SectionReader sections(step.block);
    wire::Section section;
    bool intact = true;
    while (intact && sections.next(&section)) intact = take_section(section);
    if (intact && sections.complete()) return;
    stats_.damaged_bytes += step.bytes;
    sink_.gap();
  }

  bool take_section(const wire::Section& section) {
    if (section.kind == 0) return take_strings(section);
    if (!wire::is_known(section)) {
      stats_.unknown_records += section.count;
      return true;
    }
    if (!wire::decode_records(section, records_.get())) return false;
    stats_.records += section.count;
    sink_.receive(static_cast<wire::RecordKind>(section.kind), section.thread, {records_.get(), section.count});
    return true;
  }

  bool take_strings(const wire::Section& section) {
    wire::StringReader strings(section);
    wire::StringDefinition definition;
    while (strings.next(&definition)) sink_.define(definition.id, {definition.text, definition.length});
    return strings.complete();
  }

  LogSink& sink_;
  LogStats& stats_;
  std::unique_ptr<wire::Record[]> records_;
};

// `origin`: where in the file the step's bytes began to be counted.
void advance(LogPosition& position, const wire::Step& step, std::uint64_t origin) {
  position.offset = origin + step.offset + step.bytes;
  if (step.kind == wire::StepKind::kBlock) position.sequence = step.block.sequence + 1;
}

}  // namespace

Result<LogReader> LogReader::open(const std::string& path) {
  LogReader reader;
  LLMPROF_LET(reader.file_, map_file(path));
  switch (wire::read_file_header(reader.file_, &reader.header_)) {
    case wire::HeaderStatus::kOk:
      return reader;
    case wire::HeaderStatus::kBadCrc:
      reader.header_ = {};
      reader.header_.header_bytes = sizeof(wire::FileHeader);
      reader.header_damaged_ = true;
      return reader;
    case wire::HeaderStatus::kNewer:
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: log version {} was made by a newer llmprof; this one knows {}", path,
                               reader.header_.version, wire::kWireVersion),
                   "update llmprof"};
    case wire::HeaderStatus::kTooShort:
      return Error{ErrorCode::kCorruptInput,
                   fmt::format("{}: {} bytes are too short for a capture log", path, reader.file_.size), ""};
    case wire::HeaderStatus::kBadMagic:
      break;
  }
  return Error{ErrorCode::kCorruptInput, path + ": not a capture log", ""};
}

LogReader::LogReader(LogReader&& other) noexcept
    : file_(std::exchange(other.file_, {})), header_(other.header_), header_damaged_(other.header_damaged_) {}

LogReader::~LogReader() {
  if (file_.data != nullptr) ::munmap(const_cast<std::uint8_t*>(file_.data), file_.size);
}

Result<LogStats> LogReader::read(LogSink& sink, const base::Progress& progress) const {
  LogPosition position;
  LLMPROF_TRY(read_rest(position, sink, progress));
  return position.stats;
}

Result<void> LogReader::read_rest(LogPosition& position, LogSink& sink, const base::Progress& progress) const {
  if (position.offset == 0) {
    position.offset = header_.header_bytes;
    if (header_damaged_) position.stats.damaged_bytes += sizeof(wire::FileHeader);
  }
  position.stats.bytes = file_.size;
  Pass pass(sink, position.stats);
  wire::BlockReader blocks(file_, position.offset, position.sequence);
  std::uint64_t given_back = 0;
  for (wire::Step step = blocks.next(); step.kind != wire::StepKind::kEnd; step = blocks.next()) {
    pass.take(step);
    advance(position, step, 0);
    const std::uint64_t done = position.offset;
    if (!progress({"reading logs", static_cast<double>(done), static_cast<double>(file_.size), "bytes"})) {
      return Error{ErrorCode::kInterrupted, "interrupted", ""};
    }
    if (done - given_back < kGiveBackBytes) continue;
    const std::uint64_t end = done & ~std::uint64_t{0xffff};  // whole pages of any size
    ::madvise(const_cast<std::uint8_t*>(file_.data) + given_back, end - given_back, MADV_DONTNEED);
    given_back = end;
  }
  return {};
}

namespace {

// A piece of a growing log. Read, not mapped: the file may become shorter at any moment.
Result<std::size_t> read_piece(const std::string& path, std::uint64_t offset, std::vector<std::uint8_t>& bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return base::errno_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path, errno);
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count = ::pread(fd, bytes.data() + size, bytes.size() - size, static_cast<off_t>(offset + size));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  ::close(fd);
  return size;
}

// Hands out all steps but the last. How many there were.
std::size_t take_all_but_last(wire::Bytes piece, LogPosition& position, LogSink& sink,
                              const std::function<bool()>& stop) {
  Pass pass(sink, position.stats);
  const std::uint64_t begin = position.offset;
  wire::BlockReader blocks(piece, 0, position.sequence);
  wire::Step held = blocks.next();
  std::size_t taken = 0;
  for (wire::Step step = blocks.next(); step.kind == wire::StepKind::kBlock && !stop(); step = blocks.next()) {
    pass.take(held);
    advance(position, held, begin);
    held = step;
    ++taken;
  }
  position.stats.bytes = position.offset;
  return taken;
}

}  // namespace

Result<void> follow_log(const std::string& path, LogPosition& position, LogSink& sink,
                        const std::function<bool()>& stop) {
  constexpr std::size_t kPieceBytes = 8u << 20;  // several of the largest blocks
  std::vector<std::uint8_t> bytes(kPieceBytes);
  if (position.offset == 0) {
    LLMPROF_LET(const LogReader reader, LogReader::open(path));
    if (reader.header_damaged()) position.stats.damaged_bytes += sizeof(wire::FileHeader);
    position.offset = reader.header().header_bytes;
  }
  while (!stop()) {
    LLMPROF_LET(const std::size_t size, read_piece(path, position.offset, bytes));
    const std::size_t taken = take_all_but_last({bytes.data(), size}, position, sink, stop);
    if (taken == 0 || size < bytes.size()) return {};
  }
  return {};
}

namespace {

// "graph_launch" of RecordKind::kGraphLaunch, which is the last name in the compiler's own text of this function.
template <wire::RecordKind kKind>
std::string kind_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("RecordKind::k") + std::string_view("RecordKind::k").size());
  std::string name;
  for (const char c : text.substr(0, text.find_first_of(";]"))) {
    if (c >= 'A' && c <= 'Z' && !name.empty()) name += '_';
    name += base::lowercase({&c, 1});
  }
  return name;
}

constexpr auto kKindNames = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array{&kind_name<static_cast<wire::RecordKind>(I)>...};
}
(std::make_index_sequence<wire::kRecordKinds>());

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
      if (counts_[kind] != 0) check_.records.emplace_back(kKindNames[kind](), counts_[kind]);
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
      case wire::RecordKind::kLaunch:
      case wire::RecordKind::kKernel:
      case wire::RecordKind::kCopy:
      case wire::RecordKind::kGraphLaunch:
      case wire::RecordKind::kGpuGemm:  // all of these begin with their times
        return note_time(record.kernel.begin_ns, record.kernel.end_ns);
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
    auto total = std::ranges::find(check_.losses, loss, &LossTotal::loss);
    if (total == check_.losses.end()) total = check_.losses.insert(total, {loss, 0, ""});
    total->count += static_cast<std::int64_t>(record.count);
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
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof wire::kFileMagic] = {};
  return file.read(magic, sizeof magic) && std::memcmp(magic, wire::kFileMagic, sizeof magic) == 0;
}

}  // namespace llmprof::record

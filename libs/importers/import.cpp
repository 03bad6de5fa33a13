#include "importers/import.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/human.h"
#include "base/regular_file.h"
#include "importers/assemble.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/protocol.h"
#include "importers/sandbox.h"

namespace llmprof::importers {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 512;
// Rows wait in memory until there are enough for a part: all readers and writers together stay below 512 MiB.
constexpr trace::WriterLimits kWriterLimits{.part_bytes = 24u << 20, .all_bytes = 72u << 20};
constexpr std::uint64_t kSlowestBytesPerSecond = 2 << 20;  // of stored bytes: 20 times as many plain ones

using namespace std::string_view_literals;

// Files that llmprof does not read, by their first bytes or by the end of their name, with what makes a file that it
// does.
struct NotRead {
  std::string_view begins, ends, name, next_step;
};
constexpr NotRead kNotRead[] = {
    {"", ".qdstrm", "an unfinished Nsight Systems recording",
     "make a report of it (QdstrmImporter -i FILE.qdstrm), then nsys export -t sqlite FILE.nsys-rep, and import "
     "FILE.sqlite"},
    {"", ".pftrace", "a Perfetto trace (protobuf)",
     "write it as JSON: traceconv json FILE.pftrace FILE.json, and import that"},
    {"", ".perfetto-trace", "a Perfetto trace (protobuf)",
     "write it as JSON: traceconv json FILE.perfetto-trace FILE.json, and import that"},
    {"", ".xplane.pb", "an XLA profile (protobuf)", "import the .trace.json.gz that stands beside it"},
    {"", ".pb.gz", "a pprof profile (protobuf)", "llmprof writes these, but reads none: import what it was made from"},
    {"", ".pb", "a protobuf file", "llmprof reads none: import what it was made from"},
    {"PK\x03\x04"sv, "", "a zip archive", "unpack it, and import the profile that is in it"},
    {"\xfd"
     "7zXZ"sv,
     "", "xz data", "unpack it: xz -d FILE"},
    {"BZh"sv, "", "bzip2 data", "unpack it: bzip2 -d FILE"},
};

std::string accepted() {
  std::string list = "llmprof reads";
  for (const Importer* importer : importers())
    list += fmt::format("{} {}", importer == importers().front() ? "" : ",", importer->name);
  return list + " (llmprof import --formats); --as FORMAT says which one it is";
}

Error not_recognised(const Input& input, std::string_view head) {
  for (const NotRead& known : kNotRead) {
    const bool begins = !known.begins.empty() && head.starts_with(known.begins);
    const bool ends = !known.ends.empty() && std::string_view(input.name()).ends_with(known.ends);
    if (begins || ends)
      return {ErrorCode::kUnsupported, fmt::format("byte 0: this is {}", known.name), std::string(known.next_step)};
  }
  const std::string_view found = base::recognise(head);
  return {ErrorCode::kUnsupported,
          found.empty() ? "byte 0: no format that llmprof knows"
                        : fmt::format("byte 0: this is {}, and no profile that llmprof knows", found),
          accepted()};
}

std::string words_of(const InputRemark& remark) {
  return remark.where.empty() ? remark.what : fmt::format("{}: {}", remark.where, remark.what);
}

// The place in importers() of the one that reads this content, or that is called `format`; "": by content. An error
// says what the content is instead, and what to do.
Result<std::size_t> choose_importer(Input& input, const std::string& format) {
  LLMPROF_LET(const std::string_view head, input.head());
  const auto all = importers();
  if (head.empty()) {
    const auto remarks = input.remarks();
    return Error{ErrorCode::kCorruptInput, remarks.empty() ? "byte 0: the file is empty" : words_of(remarks[0]),
                 input.file_bytes() == 0 ? "did the program that was to write it end in order?" : ""};
  }
  const Importer* importer = format.empty() ? sniff(head) : find_importer(format);
  if (importer == nullptr && format.empty()) return not_recognised(input, head);
  if (importer == nullptr) return Error{ErrorCode::kUsage, "no format is called " + format, accepted()};
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), importer) - all.begin());
}

// One file read by the importer that fits it, said in frames: which format it is (kFormat), then, once `go` returned
// true, everything; kDone or kError comes last. Runs in a child process, or in this one for tests.
void read_file(Input& input, const std::string& format, FrameSink& sink, const std::function<bool()>& go) {
  const auto place = choose_importer(input, format);
  if (!place) return sink.say_error(place.error());
  sink.say_format(*place);
  if (!go()) return;
  auto parsed = importers()[*place]->parse(input, sink);
  const auto remarks = input.remarks();
  if (!parsed) {
    for (const InputRemark& remark : remarks) parsed.error().message += fmt::format(" ({})", words_of(remark));
    return sink.say_error(parsed.error());
  }
  if (input.refused()) return sink.say_error(*input.refused());
  for (const InputRemark& remark : remarks) sink.lose(remark.loss, 1, remark.what, remark.where);
  sink.flush();
  sink.say_done();
}

// A file on its way: its input, and the child that reads it.
struct Reading {
  Input input;
  std::optional<Child> child;
  std::unique_ptr<FrameReader> frames;
  const Importer* importer = nullptr;
};

// Rate and share of all files, for people.
class Meter {
 public:
  Meter(const base::Progress& progress, double total) : progress_(progress), total_(total) {}
  void begin(const std::string& name) {
    name_ = fs::path(name).filename().string();
    base_ += current_;
    current_ = 0;
  }
  void at(double bytes) { current_ = std::max(current_, bytes); }
  bool go_on() {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    const double done = std::min(base_ + current_, total_);
    const std::string what =
        fmt::format("importing {}, {}/s", name_, base::human_bytes(done / std::max(seconds, 1e-3)));
    return progress_({what, done, total_, "bytes"});
  }

 private:
  const base::Progress& progress_;
  double total_, base_ = 0, current_ = 0;
  std::string name_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Error about(const std::string& file, Error error) {
  if (!error.message.starts_with(file + ":")) error.message = file + ": " + error.message;
  return error;
}

Error said_error(const Frame& frame, std::span<const std::byte> payload) {
  TextReader texts(payload);
  std::string_view message, hint;
  if (!texts.next(message) || !texts.next(hint) || frame.number < 0 ||
      frame.number > static_cast<std::int64_t>(ErrorCode::kInternal))
    return broken_protocol("an error that is cut");
  return {static_cast<ErrorCode>(frame.number), std::string(message), std::string(hint)};
}

Result<std::vector<Reading>> open_all(const std::vector<std::string>& files, const std::string& folder,
                                      const ImportOptions& options) {
  const std::uint64_t most = options.max_plain_bytes == 0 ? Input::kMaxPlainBytes : options.max_plain_bytes;
  const std::string parent = fs::path(folder).parent_path().string();
  std::vector<Reading> all;
  all.reserve(files.size());
  for (const std::string& file : files) {
    LLMPROF_LET(Input input, Input::open(file, most));
    if (auto ready = input.prepare_expansion(parent.empty() ? "." : parent); !ready) return about(file, ready.error());
    all.push_back({std::move(input), std::nullopt, nullptr, nullptr});
  }
  return all;
}

// Forks the reader of a file; it waits after it has said what the file is.
Result<void> start(Reading& reading, const ImportOptions& options, Meter& meter) {
  Input& input = reading.input;
  ChildLimits limits;
  limits.cpu_seconds += input.file_bytes() / kSlowestBytesPerSecond;
  if (input.compressed()) limits.file_bytes = UINT64_MAX >> 1;  // Input knows how far it may expand
  const auto work = [&input, &options](const Child::Ends& ends) {
    FrameSink sink(write_frames_to(ends.output));
    read_file(input, options.format, sink, [&] { return ends.wait_for_go(); });
  };
  LLMPROF_LET(Child child, Child::start(input.name(), work, input.descriptors(), limits));
  reading.child.emplace(std::move(child));
  reading.frames = std::make_unique<FrameReader>(reading.child->output(), [&meter] { return meter.go_on(); });
  return {};
}

Result<void> learn_format(Reading& reading) {
  LLMPROF_LET(const Frame frame, reading.frames->next());
  if (reading.frames->ended()) {
    LLMPROF_TRY(reading.child->wait());
    return broken_protocol("it said nothing");
  }
  if (frame.kind == FrameKind::kError) return said_error(frame, reading.frames->payload());
  const auto all = importers();
  if (frame.kind != FrameKind::kFormat || frame.number < 0 || static_cast<std::size_t>(frame.number) >= all.size())
    return broken_protocol("no format");
  reading.importer = all[static_cast<std::size_t>(frame.number)];
  return {};
}

Result<void> take_all(Reading& reading, Assembler& assembler, Meter& meter) {
  reading.child->go();
  while (true) {
    LLMPROF_LET(const Frame frame, reading.frames->next());
    if (reading.frames->ended()) {
      LLMPROF_TRY(reading.child->wait());
      return broken_protocol("it ended in the middle");
    }
    if (frame.kind == FrameKind::kDone) return reading.child->wait();
    if (frame.kind == FrameKind::kError) return said_error(frame, reading.frames->payload());
    if (frame.kind == FrameKind::kProgress) {
      meter.at(static_cast<double>(frame.number));
      if (!meter.go_on()) return Error{ErrorCode::kInterrupted, "interrupted", ""};
      continue;
    }
    LLMPROF_TRY(assembler.take(frame, reading.frames->payload()));
  }
}

// The same without a child.
Result<void> take_here(Reading& reading, const ImportOptions& options, Assembler& assembler, Meter& meter) {
  std::vector<std::max_align_t> aligned(kMostPayload / sizeof(std::max_align_t));
  Result<void> outcome;
  FrameSink sink([&](const Frame& frame, std::span<const std::byte> payload) {
    std::copy(payload.begin(), payload.end(), reinterpret_cast<std::byte*>(aligned.data()));
    const std::span<std::byte> copy{reinterpret_cast<std::byte*>(aligned.data()), payload.size()};
    if (frame.kind == FrameKind::kFormat || frame.kind == FrameKind::kDone) return true;
    if (frame.kind == FrameKind::kProgress) return meter.at(static_cast<double>(frame.number)), meter.go_on();
    if (!outcome) return false;
    outcome = frame.kind == FrameKind::kError ? Result<void>(said_error(frame, payload)) : assembler.take(frame, copy);
    return outcome.has_value();
  });
  read_file(reading.input, options.format, sink, [] { return true; });
  return outcome;
}

Result<void> learn_here(Reading& reading, const ImportOptions& options) {
  LLMPROF_LET(const std::size_t place, choose_importer(reading.input, options.format));
  reading.importer = importers()[place];
  return {};
}

Result<Imported> assemble(std::vector<Reading>& readings, const std::string& folder, const ImportOptions& options,
                          const base::Progress& progress, Meter& meter) {
  const bool joins = std::ranges::any_of(readings, [](const Reading& r) { return r.importer->role == Role::kLog; });
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder, kWriterLimits));
  Assembler assembler(writer, joins);
  for (Reading& reading : readings) {
    meter.begin(reading.input.name());
    assembler.begin_file(*reading.importer, reading.input.name(), reading.input.file_bytes());
    auto taken = options.sandbox ? take_all(reading, assembler, meter) : take_here(reading, options, assembler, meter);
    if (!taken) return about(reading.input.name(), taken.error());
    meter.at(static_cast<double>(reading.input.file_bytes()));
    assembler.end_file();
  }
  Imported imported = assembler.finish();
  trace::RunInfo info = assembler.run_info();
  info.parallel = options.parallel;
  if (options.model) info.models.insert(info.models.begin(), *options.model);
  imported.folder = folder;
  LLMPROF_TRY(writer.finish(std::move(info), progress));
  return imported;
}

}  // namespace

Result<Imported> import_files(const std::vector<std::string>& files, const std::string& folder,
                              const ImportOptions& options, const base::Progress& progress) {
  if (files.size() > kMostFiles) {
    return Error{ErrorCode::kUsage, fmt::format("{} files; at most {} at once", files.size(), kMostFiles), ""};
  }
  LLMPROF_LET(std::vector<Reading> readings, open_all(files, folder, options));
  double total = 0;
  for (const Reading& reading : readings) total += static_cast<double>(reading.input.file_bytes());
  Meter meter(progress, total);
  ::tzset();  // while the zone's file can be opened: some formats have local times
  if (options.sandbox) {
    for (Reading& reading : readings) LLMPROF_TRY(start(reading, options, meter));
  }
  for (Reading& reading : readings) {
    meter.begin(reading.input.name());
    const auto known = options.sandbox ? learn_format(reading) : learn_here(reading, options);
    if (!known) return about(reading.input.name(), known.error());
  }
  std::vector<Reading> in_order;
  in_order.reserve(readings.size());
  for (const Role role : {Role::kTrace, Role::kLog, Role::kReadings, Role::kSummary}) {
    for (Reading& reading : readings) {
      if (reading.importer->role == role) in_order.push_back(std::move(reading));
    }
  }
  const bool existed = base::is_directory(folder);
  auto imported = assemble(in_order, folder, options, progress, meter);
  if (!imported && !existed) ::rmdir(folder.c_str());  // the writer has removed its tables
  return imported;
}

}  // namespace llmprof::importers

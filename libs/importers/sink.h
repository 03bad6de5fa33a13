#pragma once
// Where an importer's rows go. Rows are those of trace/rows.h with two freedoms that the assembler (assemble.h) takes
// care of: ids come from new_id() and are unique in this file only, and times are on the file's own clock.
// Not thread-safe: parsers that work on several threads hand their results to one.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/loss.h"
#include "trace/rows.h"
#include "trace/strings.h"

namespace llmprof::importers {

// The clock of a file: what its time 0 is in wall time (ns since 1970, UTC), if it says so.
struct FileClock {
  std::optional<std::int64_t> wall_of_zero_ns;
  std::string name;  // "Kineto: microseconds since baseTimeNanoseconds"
};

// What run.json says about an imported run. "" and empty: the file does not tell.
struct FileFacts {
  std::string tool;     // "PyTorch 2.11, Kineto", "Nsight Systems 2025.3.1, export schema 3.20.3"
  std::string command;  // of the recorded program
  std::string host;
  std::string model_config;  // a model's config as JSON text, where the file holds one
  std::string rank;  // of a distributed job, a number; before the first device, so that files of a rank share theirs
};

class Sink {
 public:
  static constexpr std::size_t kMaxNames = 600'000;           // a name costs about 100 bytes beside its text
  static constexpr std::size_t kMaxNameBytes = 64 << 10;      // of one; longer ones are cut and counted
  static constexpr std::size_t kMaxAllNameBytes = 64u << 20;  // of all; further ones are <other> and counted

  virtual ~Sink() = default;

  // Must be set before the first row with a time.
  virtual void set_clock(FileClock clock) = 0;
  virtual void set_facts(FileFacts facts) = 0;

  trace::Id new_id() { return ++last_id_; }
  // Bytes that are not UTF-8 become U+FFFD and are counted. "" is a name, not NULL.
  trace::Name name(std::string_view text);
  trace::Name name_or_null(std::string_view text) { return text.empty() ? trace::Name{} : name(text); }
  const trace::Strings& names() const { return names_; }

  // Rows of process, thread and device come before the first rows that name them: that is how the assembler can merge
  // them with those of other files. A process or thread whose begin_ns is 0 begins with the first event of the file.
  template <class Row>
  void add(const Row& row) {
    add_bytes(trace::table_of<Row>(), &row);
  }
  // Something that a report should say of the file.
  void note(std::string_view subject, std::string_view text, std::int64_t ts_ns = 0) {
    add(trace::NoteRow{ts_ns, std::nullopt, name(subject), name(text)});
  }
  // Something was left out, cut or repaired. `where`: "byte 17", "line 3"; the first three are kept per kind and
  // `what`.
  void lose(trace::Loss loss, std::int64_t count, std::string_view what = "", std::string_view where = "");

  // How far the input was read, and whether to go on: false after Ctrl-C or when the rows cannot be written.
  // Call it at least for every few MB of input; return kInterrupted when it is false.
  virtual bool progress(std::uint64_t stored_bytes_done) = 0;

  // Hands over what is buffered. Called by whoever made the sink, after the importer.
  void flush();

 protected:
  // Everything below comes in order: a name before the rows that use it.
  virtual void take_names(trace::Name first, std::span<const std::string_view> texts) = 0;
  virtual void take_rows(const trace::Table& table, const std::byte* rows, std::size_t count) = 0;
  virtual void take_loss(trace::Loss loss, std::int64_t count, std::string_view detail) = 0;

 private:
  struct Buffer {
    const trace::Table* table;
    bool identity;  // a row of process, thread or device: before all others
    std::vector<std::byte> rows;
  };
  struct LossSum {
    trace::Loss loss;
    std::string what;
    std::int64_t count = 0;
    std::vector<std::string> where;
  };
  void add_bytes(const trace::Table& table, const void* row);
  void hand_over(Buffer& buffer);
  void flush_names();

  trace::Id last_id_ = 0;
  trace::Strings names_;
  std::size_t names_handed_over_ = 0, name_bytes_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<LossSum> losses_;
};

}  // namespace llmprof::importers

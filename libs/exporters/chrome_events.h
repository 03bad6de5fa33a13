#pragma once
// Trace events, written one after the other into the array of a Chrome trace. An event is begun, given its duration and
// arguments, and ended.

#include <cstdint>
#include <string>
#include <string_view>

#include "exporters/json_text.h"
#include "exporters/output_file.h"
#include "trace/run.h"

namespace llmprof::exporters {

class ChromeEvents {
 public:
  explicit ChromeEvents(OutputFile& out) : out_(out) {}

  // `name` has its quotes.
  void begin(std::string_view phase, std::string_view category, std::string_view name, std::int64_t pid,
             std::int64_t tid, std::int64_t at_ns) {
    line_ = written_ == 0 ? "\n{\"ph\": \"" : ",\n{\"ph\": \"";
    line_ += phase;
    if (!category.empty()) {
      line_ += "\", \"cat\": \"";
      line_ += category;
    }
    line_ += "\", \"name\": ";
    line_ += name;
    line_ += ", \"pid\": ";
    append_number(line_, pid);
    line_ += ", \"tid\": ";
    append_number(line_, tid);
    line_ += ", \"ts\": ";
    append_microseconds(line_, at_ns);
  }
  // One that lasts; after it, arguments.
  void slice(std::string_view category, std::string_view name, std::int64_t pid, std::int64_t tid,
             std::int64_t begin_ns, std::int64_t end_ns) {
    begin("X", category, name, pid, tid, begin_ns);
    line_ += ", \"dur\": ";
    append_microseconds(line_, end_ns > begin_ns ? end_ns - begin_ns : 0);
    line_ += ", \"args\": {";
    first_ = true;
  }
  void json(std::string_view key, std::string_view value) {
    line_ += first_ ? "\"" : ", \"";
    line_ += key;
    line_ += "\": ";
    line_ += value;
    first_ = false;
  }
  void integer(std::string_view key, std::int64_t value) {
    if (value == trace::Columns::kNull) return;
    json(key, "");
    append_number(line_, value);
  }
  void real(std::string_view key, double value) {
    json(key, "");
    append_real(line_, value);
  }
  void end(std::string_view tail = "}}") {
    line_ += tail;
    out_.write(line_);
    ++written_;
  }
  // From a launch ("s") to what it launched ("f").
  void flow(std::string_view phase, std::int64_t id, std::int64_t pid, std::int64_t tid, std::int64_t at_ns) {
    begin(phase, "ac2g", "\"ac2g\"", pid, tid, at_ns);
    line_ += ", \"id\": ";
    append_number(line_, id);
    end(phase == "f" ? ", \"bp\": \"e\"}" : "}");
  }
  // One that has a single argument and no duration.
  void point(std::string_view phase, std::string_view category, std::string_view name, std::int64_t pid,
             std::int64_t tid, std::int64_t at_ns, std::string_view key, std::string_view value) {
    begin(phase, category, name, pid, tid, at_ns);
    line_ += ", \"args\": {";
    first_ = true;
    json(key, value);
    end();
  }
  std::int64_t written() const { return written_; }

 private:
  OutputFile& out_;
  std::string line_;
  bool first_ = true;
  std::int64_t written_ = 0;
};

}  // namespace llmprof::exporters

#pragma once
// Answers to questions that a run was asked before, kept in one file beside the derived tables: asking again needs no
// engine. The file bears a seal made with a secret of this user. Nobody else's file is believed, because an answer of
// the wrong shape would hurt; neither is one of other tables, of another version, or a damaged one. Not thread-safe.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "trace/run.h"

namespace llmprof::trace {

class Answers {
 public:
  Answers() = default;  // knows nothing and keeps nothing
  // `basis` is what the answers follow from, besides the questions: the lists of the tables' files with checksums.
  Answers(std::string file, std::string_view basis);

  bool believed() const { return believed_; }  // the file was there and bears the seal
  std::optional<ResultTable> table(const std::string& sql) const;
  std::optional<Columns> columns(const std::string& sql) const;
  bool chunks(const std::string& sql, const ChunkSink& sink) const;  // false: not known, `sink` was not called

  // Large answers are not kept.
  void keep(const std::string& sql, const ResultTable& table);
  void keep(const std::string& sql, const Columns& columns);
  // Hands pieces on to `sink`; the answer is kept by calling the second function when all pieces have come.
  struct Recorder {
    ChunkSink sink;
    std::function<void()> all_came;
  };
  Recorder recorder(const std::string& sql, const ChunkSink& sink);

  void write();  // what came since; a folder that cannot be written stays as it is

 private:
  bool keeps() const { return !seal_key_.empty(); }
  void add(std::string question, std::string answer);
  bool replay(const std::string& asked, const ChunkSink& sink) const;
  std::string seal(std::string_view payload) const;

  std::string file_, seal_key_;
  std::map<std::string, std::string, std::less<>> answers_;
  std::size_t bytes_ = 0;
  bool believed_ = false, changed_ = false;
};

}  // namespace llmprof::trace

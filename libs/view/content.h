#pragma once
// The runs as answers.

#include "view/query_queue.h"
#include "view/routes.h"
#include "view/runs.h"

namespace llmprof::view {

class RunContent : public Content {
 public:
  RunContent(const Runs& runs, QueryQueue& queries, bool allow_sql)
      : runs_(runs), queries_(queries), allow_sql_(allow_sql) {}

  std::size_t runs() const override { return runs_.size(); }
  Response list() const override;
  Response run(std::size_t at) const override;
  Response timeline(std::size_t at, const pictures::TimelineRequest& request) const override;
  Response diffs() const override;
  std::optional<Response> rows(std::size_t at, std::size_t finding, std::size_t evidence,
                               std::uint64_t ticket) const override;
  std::optional<Response> query(std::size_t at, const std::string& sql, std::uint64_t ticket) const override;

 private:
  Response unready(std::size_t at) const;
  const Runs& runs_;
  QueryQueue& queries_;
  bool allow_sql_;
};

}  // namespace llmprof::view

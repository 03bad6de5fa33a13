// llmprof check: can this run, or this capture log, be trusted? Integrity first, then what was lost.

#include <fmt/format.h>

#include "base/human.h"
#include "base/text_table.h"
#include "given_names.h"
#include "record/log/reader.h"
#include "record/open_run.h"
#include "run_head.h"
#include "trace/loss.h"
#include "verb.h"

namespace llmprof::app {
namespace check_verb {
namespace {

using base::Json;
using trace::CheckFinding;

constexpr Option kOptions[] = {{"--json", "", "", "", "", "print the verdict as JSON"}};
constexpr Positional kPositionals[] = {{"RUN|LOG", false}};

constexpr int kFine = 0;
constexpr int kNotTrustworthy = 2;

// What both kinds of input come down to.
struct Verdict {
  Json json;          // the whole JSON output, findings and verdict still missing
  std::string title;  // "x.llmprof: run format 1, …"
  std::vector<CheckFinding> findings;
  std::vector<std::string> losses;  // lines

  bool trustworthy() const {
    return std::ranges::none_of(findings, [](const CheckFinding& finding) { return finding.fatal; });
  }
  std::string_view word() const {
    return !trustworthy()                       ? "not trustworthy"
           : findings.empty() && losses.empty() ? "fine"
           : findings.empty()                   ? "fine, with losses"
                                                : "usable";
  }
};

std::int64_t total_rows(const trace::RunInfo& info) {
  std::int64_t rows = 0;
  for (const trace::TableFile& file : info.files) rows += file.rows;
  return rows;
}

double total_bytes(const trace::RunInfo& info) {
  double bytes = 0;
  for (const trace::TableFile& file : info.files) bytes += static_cast<double>(file.bytes);
  return bytes;
}

Result<Verdict> check_run(const std::string& path) {
  LLMPROF_LET(const trace::Run run, record::open_run(path, progress_line()));
  LLMPROF_LET(std::vector<CheckFinding> findings, trace::check_run(run));
  LLMPROF_LET(const trace::ResultTable losses, losses_of(run));
  LLMPROF_LET(Json json, run_head("llmprof.check", run));
  const trace::RunInfo& info = run.info();
  json["files"] = info.files.size();
  json["rows"] = total_rows(info);
  json["bytes"] = static_cast<std::int64_t>(total_bytes(info));
  Verdict verdict{std::move(json), "", std::move(findings), {}};
  verdict.title = fmt::format("{}: run format {}, made by llmprof {} ({}) on {}\n{} rows in {} files, {}", run.folder(),
                              info.format_version, info.llmprof_version, info.source, info.created, total_rows(info),
                              info.files.size(), base::human_bytes(total_bytes(info)));
  for (const auto& row : losses.rows) {
    verdict.losses.push_back(trace::describe({.name = row[0].text,
                                              .severity = row[1].text,
                                              .count = row[2].as_int(),
                                              .unit = row[3].text,
                                              .meaning = row[4].text,
                                              .remedy = row[5].text,
                                              .detail = {}}));
  }
  return verdict;
}

// The error of a run that cannot even be opened is its first finding.
Verdict broken_run(const std::string& path, const Error& error) {
  Json json = json_head("llmprof.check");
  json["run"] = {{"path", path}};
  json["coverage"] = nullptr;
  json["losses"] = Json::array();
  return {std::move(json), path + ": cannot be opened", {{path, error.message, true}}, {}};
}

std::vector<CheckFinding> log_findings(const std::string& path, const record::LogCheck& log) {
  std::vector<CheckFinding> findings;
  const auto add = [&](bool wrong, std::string what, bool fatal) {
    if (wrong) findings.push_back({path, std::move(what), fatal});
  };
  add(log.header_damaged, "the file header is damaged", true);
  add(log.stats.damaged_bytes > 0, fmt::format("{} bytes do not match their checksum", log.stats.damaged_bytes), true);
  add(log.stats.missing_blocks > 0, fmt::format("{} blocks are missing", log.stats.missing_blocks), true);
  add(log.stats.torn_bytes > 0,
      fmt::format("torn tail: the last {} bytes are half a block (the process was killed)", log.stats.torn_bytes),
      false);
  add(log.stats.unknown_records > 0,
      fmt::format("{} records of a kind this llmprof does not know", log.stats.unknown_records), false);
  add(log.lost_names > 0, fmt::format("{} names have no definition", log.lost_names), false);
  add(log.lost_definitions > 0,
      fmt::format("{} kernel shapes, GEMM shapes or stacks have no definition", log.lost_definitions), false);
  return findings;
}

Result<Verdict> check_log(const std::string& path) {
  LLMPROF_LET(const record::LogCheck log, record::check_log(path, progress_line()));
  Verdict verdict{json_head("llmprof.check"), "", log_findings(path, log), {}};
  Json& json = verdict.json;
  json["run"] = nullptr;
  json["coverage"] = nullptr;
  json["losses"] = Json::array();
  for (const record::LossTotal& total : log.losses) {
    const trace::LossEntry entry = loss_entry(total.loss, total.count);
    verdict.losses.push_back(trace::describe(entry));
    json["losses"].push_back(base::fields_json(entry));
  }
  std::string kinds;
  Json records = Json::object();
  for (const auto& [kind, count] : log.records) {
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
    records[kind] = count;
  }
  json["log"] = {{"path", path},
                 {"wire_version", log.version},
                 {"pid", log.pid},
                 {"ended_in_order", log.ended},
                 {"bytes", log.stats.bytes},
                 {"blocks", log.stats.blocks},
                 {"records", records},
                 {"names", log.names},
                 {"duration_ns", log.last_ns - log.first_ns}};
  verdict.title =
      fmt::format("{}: capture log, wire format {}, process {}{}\n{} in {} blocks, {} names, {}", path, log.version,
                  log.pid, log.ended ? "" : ", which did not end in order", kinds.empty() ? "no records" : kinds,
                  log.stats.blocks, log.names, base::human_bytes(static_cast<double>(log.stats.bytes)));
  return verdict;
}

void show_json(Verdict& verdict) {
  Json& json = verdict.json;
  json["verdict"] = verdict.word();
  json["trustworthy"] = verdict.trustworthy();
  json["findings"] = Json::array();
  for (const CheckFinding& finding : verdict.findings) {
    json["findings"].push_back({{"where", finding.where}, {"what", finding.what}, {"fatal", finding.fatal}});
  }
  print(base::to_text(json));
}

void show_text(const Verdict& verdict) {
  std::string text = verdict.title + "\n";
  for (const CheckFinding& finding : verdict.findings) {
    text += fmt::format("{} {}: {}\n", finding.fatal ? "wrong:" : "note:", base::printable(finding.where),
                        base::printable(finding.what));
  }
  for (const std::string& loss : verdict.losses) text += fmt::format("lost: {}\n", base::printable(loss));
  print(fmt::format("{}verdict: {}\n", text, verdict.word()));
}

bool is_damage(ErrorCode code) { return code == ErrorCode::kCorruptInput || code == ErrorCode::kIo; }

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const RunArgument given, run_argument(arguments));
  const std::string& path = given.run;
  Result<Verdict> verdict = record::is_log(path) ? check_log(path) : check_run(path);
  if (!verdict && arguments.on("--json") && is_damage(verdict.error().code))
    verdict = broken_run(path, verdict.error());
  LLMPROF_TRY(verdict);
  if (arguments.on("--json")) {
    show_json(*verdict);
  } else {
    show_text(*verdict);
  }
  return verdict->trustworthy() ? kFine : kNotTrustworthy;
}

}  // namespace
}  // namespace check_verb

extern const Verb kCheck;
const Verb kCheck{"check",
                  "tell whether a run or a capture log is whole, and what was lost",
                  check_verb::kOptions,
                  check_verb::kPositionals,
                  false,
                  check_verb::run};

}  // namespace llmprof::app

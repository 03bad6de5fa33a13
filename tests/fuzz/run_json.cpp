// run.json and derived/<key>/index.json, perhaps from a stranger.

#include "fuzz.h"
#include "trace/run_info.h"
#include "trace/table_files.h"

namespace llmprof::fuzz {
namespace {

// No listed file may lead out of its folder.
void check_files(const std::vector<trace::TableFile>& files, std::string_view prefix) {
  for (const trace::TableFile& file : files) {
    require(file.file.starts_with(prefix) && file.file.find("..") == std::string::npos);
    require(file.file.find('/', prefix.size()) == std::string::npos);
    require(file.rows >= 0 && file.bytes >= 0 && trace::find_table(file.table) != nullptr);
  }
}

void run(std::string_view input) {
  if (const auto files = trace::parse_table_files(input, "input")) check_files(*files, "");
  const auto info = trace::parse_run_info(input, "input");
  if (!info) return;
  check_files(info->files, "tables/");
  const std::string text = trace::format_run_info(*info);
  const auto again = trace::parse_run_info(text, "again");
  require(bool(again));
  require(trace::format_run_info(*again) == text);
}

std::vector<std::string> seeds() {
  const std::string files = R"("files": [{"table": "kernel", "file": "tables/kernel.parquet", "rows": 3, "bytes": 700,
    "crc32c": "0123abcd"}, {"table": "kernel", "file": "tables/kernel.1.parquet", "rows": 1, "bytes": 9, "crc32c": "ffffffff"},
    {"table": "of the future", "file": "x"}])";
  return {
      R"({"format": "llmprof-run", "format_version": 1, "llmprof_version": "0.1.0", "created": "2026-11-15T10:15:00Z",
    "source": "record", "clock": "CLOCK_MONOTONIC_RAW", "command": ["python3", "x.py"], "environment": {"cpu": {"cores": 2}}, )" +
          files + "}",
      R"({"format_version": 1, "files": [{"table": "module", "file": "module.parquet", "rows": 0, "bytes": 1, "crc32c": "00000000"}]})",
      R"({"format": "llmprof-run", "format_version": 99, )" + files + "}"};
}

std::vector<std::string> dictionary() {
  return {"\"format\"",  "\"format_version\"", "\"files\"",   "\"table\"",       "\"file\"", "\"rows\"",
          "\"bytes\"",   "\"crc32c\"",         "\"command\"", "\"kernel\"",      "tables/",  "../",
          "/etc/passwd", ".parquet",           "\"range\"",   "\"environment\"", "-1",       "9223372036854775808"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

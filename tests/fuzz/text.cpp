// Small readers of foreign text: sizes of the command line, settings of the collector, secrets in command lines, names
// that become Parquet strings or go to a terminal.

#include "base/text_table.h"
#include "collect/settings.h"
#include "fuzz.h"
#include "hw/environment.h"
#include "hw/redact.h"
#include "record/record.h"
#include "trace/strings.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const std::string text(input);
  if (const auto bytes = record::parse_bytes(text)) require(*bytes < 1ull << 63);
  for (const collect::SettingRow& row : collect::kSettings) {
    const std::uint64_t value = collect::parse_setting(row, text.c_str());
    require(value >= row.least && value <= row.most);
  }
  const std::string stored = trace::storable(input);
  require(trace::storable(stored) == stored);  // valid now, so nothing is left to escape
  const std::string shown = base::printable(input);
  require(shown.find('\n') == std::string::npos && shown.find('\x1b') == std::string::npos);
  (void)base::shorten(shown, 10);
  (void)hw::redact_text(input);
  (void)hw::redact_variable(input.substr(0, input.size() / 2), input.substr(input.size() / 2));
  (void)hw::redact({text, text});
}

std::vector<std::string> seeds() {
  return {"500MB",
          "10GiB",
          "18446744073709551615",
          "1e400",
          "https://user:pass@host/x?token=abc",
          "--api-key=sk-abcdefghijklmnop",
          "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz",
          "na\xc3\xafve \xff\xfe \xed\xa0\x80 \xf4\x90\x80\x80",
          "\x1b[31mred\n",
          R"({"Authorization": "Bearer abc"})"};
}

std::vector<std::string> dictionary() {
  return {"://",  "@", "token", "api-key", "password", "Bearer ", "hf_", "sk-",
          "ghp_", "=", ": ",    "KiB",     "tib",      "inf",     "nan", "0x"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

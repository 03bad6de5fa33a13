// capture/record.json: read again after a recorder was killed, perhaps from a stranger's folder.

#include "fuzz.h"
#include "record/run/capture.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const std::string folder = in_folder("record.json", input);
  const auto info = record::read_capture_info(folder);
  if (!info) return;
  (void)record::iso_time(info->begin.wall_ns);
  // What was read can be written, and then reads the same.
  require(bool(record::write_capture_info(folder, *info)));
  const auto again = record::read_capture_info(folder);
  require(bool(again));
  require(again->root_pid == info->root_pid && again->begin.raw_ns == info->begin.raw_ns &&
          again->command.size() == info->command.size() && again->losses.size() == info->losses.size() &&
          again->peaks.size() == info->peaks.size() && again->exit_status == info->exit_status);
}

std::vector<std::string> seeds() {
  record::CaptureInfo info;
  info.llmprof_version = "0.1.0";
  info.command = {"python3", "x.py"};
  info.root_pid = 4242;
  info.root_start_ticks = 17;
  info.begin = {1'000'000, 1'700'000'000'000'000'000, 50};
  info.end = info.begin;
  info.exit_status = 0;
  info.cpu.name = "CPU";
  info.cpu.clock_mhz = 3000;
  info.peaks.push_back({"flops", "float32", 1e11, "FLOP/s", "measured", "loop"});
  info.losses.push_back({trace::Loss::kBufferFull, 3, "detail"});
  const std::string folder = in_folder("record.json", "");
  (void)record::write_capture_info(folder, info);
  std::string text;
  if (std::FILE* file = std::fopen((folder + "/record.json").c_str(), "rb")) {
    char bytes[1 << 16];
    text.assign(bytes, std::fread(bytes, 1, sizeof bytes, file));
    std::fclose(file);
  }
  return {text, "{}"};
}

std::vector<std::string> dictionary() {
  return {"\"command\"", "\"begin\"",       "\"end\"",  "\"raw_ns\"",          "\"peaks\"", "\"losses\"",
          "\"cpu\"",     "\"exit_status\"", "\"name\"", "\"count\"",           "\"value\"", "null",
          "true",        "\"injectable\"",  "-1",       "18446744073709551615"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

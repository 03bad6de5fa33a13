#include "importers/nsys_sqlite/about.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "base/numbers.h"
#include "hw/redact.h"

namespace llmprof::importers::nsys {
namespace {

constexpr std::int64_t kMajor = 3, kKnownMinor = 20;
constexpr std::size_t kMostArguments = 1000, kMostWords = 4096;

std::optional<std::int64_t> to_number(std::string_view text) { return base::parse_number<std::int64_t>(text); }

using Pairs = std::map<std::string, std::string, std::less<>>;

// Names that come several times keep their last value, except variables, which are kept by their own names.
Result<Pairs> read_pairs(Database& database, std::string_view table, const char* name_column) {
  constexpr std::string_view kVariable = ":ENVIRONMENT_VARIABLE";
  Pairs pairs;
  LLMPROF_TRY(database.each(table, {name_column, "value"}, 2, [&](Rows& rows) {
    const auto name = rows.text(0), value = rows.text(1);
    if (!name || !value || value->size() > Sink::kMaxNameBytes || pairs.size() >= kMostWords) return;
    const std::size_t equals = value->find("=\"");
    const bool variable = name->ends_with(kVariable) && equals != std::string_view::npos && value->ends_with('"');
    if (variable)
      pairs["$" + std::string(value->substr(0, equals))] = value->substr(equals + 2, value->size() - equals - 3);
    else
      pairs[std::string(*name)] = *value;
  }));
  return pairs;
}

std::string get(const Pairs& pairs, std::string_view name) {
  const auto found = pairs.find(name);
  return found == pairs.end() ? "" : found->second;
}

Result<void> check_version(const std::string& schema) {
  const auto major = to_number(std::string_view(schema).substr(0, schema.find('.')));
  if (schema.empty() || major == kMajor) return {};
  return Error{ErrorCode::kUnsupported, fmt::format("nsys export schema {} not supported, only 3.x", schema),
               "export the report again with a Nsight Systems of 2024 or 2025: nsys export --type sqlite --output "
               "NEW.sqlite REPORT.nsys-rep"};
}

std::string command_of(const Pairs& capture) {
  std::string command = get(capture, "PROCESS_0:COMMAND");
  for (std::size_t i = 0; i < kMostArguments && command.size() < Sink::kMaxNameBytes; ++i) {
    const auto argument = capture.find(fmt::format("PROCESS_0:ARGUMENT_{}", i));
    if (argument == capture.end()) break;
    command += " " + argument->second;
  }
  return hw::redact_text(command);
}

trace::OptionalInt rank_of(const Pairs& capture) {
  for (const char* name : {"$RANK", "$OMPI_COMM_WORLD_RANK", "$PMI_RANK", "$SLURM_PROCID", "$LOCAL_RANK"}) {
    if (const auto rank = to_number(get(capture, name)); rank && *rank >= 0) return rank;
  }
  return std::nullopt;
}

// Times count from the start of the session unless the export shifted them.
FileClock clock_of(const Pairs& exported, std::optional<std::int64_t> session_wall_ns) {
  FileClock clock;
  clock.name = "Nsight Systems: nanoseconds since the session began";
  const std::int64_t shift_ns = to_number(get(exported, "EXPORT_PARAM_TIME_SHIFT")).value_or(0);
  const bool is_wall = get(exported, "EXPORT_PARAM_TIME_NORMALIZE") == "true";
  if (is_wall) clock.name = "Nsight Systems: nanoseconds since 1970, UTC";
  if (is_wall) session_wall_ns = 0;
  if (session_wall_ns && is_time(*session_wall_ns) && is_time(shift_ns))
    clock.wall_of_zero_ns = *session_wall_ns - shift_ns;
  return clock;
}

Result<std::optional<std::int64_t>> session_start(Database& database) {
  LLMPROF_LET(Rows rows, database.rows("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}));
  std::optional<std::int64_t> ns;
  if (rows.next()) ns = rows.integer(0);
  return ns;
}

std::string machine_of(const Pairs& system) {
  std::string words;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) words += (words.empty() ? "" : ", ") + text;
  };
  add(get(system, "OsDescription"));
  add(get(system, "CpuDescription"));
  if (const std::string cores = get(system, "CpuCores"); !cores.empty()) add(cores + " CPU cores");
  if (const std::string driver = get(system, "NvDriverVersion"); !driver.empty()) add("NVIDIA driver " + driver);
  if (const auto cuda = to_number(get(system, "CudaDriverVersion")); cuda && *cuda > 0)
    add(fmt::format("CUDA {}.{}", *cuda / 1000, *cuda % 1000 / 10));
  return words;
}

}  // namespace

Result<About> read_about(Database& database) {
  About about;
  LLMPROF_LET(const Pairs exported, read_pairs(database, "META_DATA_EXPORT", "name"));
  about.schema = get(exported, "EXPORT_SCHEMA_VERSION");
  LLMPROF_TRY(check_version(about.schema));
  about.product = get(exported, "EXPORT_PRODUCT_VERSION");
  LLMPROF_LET(const Pairs capture, read_pairs(database, "META_DATA_CAPTURE", "name"));
  about.command = command_of(capture);
  about.rank = rank_of(capture);
  const auto period = to_number(get(capture, "LINUX_PERF_OPTIONS:SAMPLING_PERIOD"));
  if (period && *period > 0 && get(capture, "LINUX_PERF_OPTIONS:CPU_IP_TRIGGER_TYPE") == "Software")
    about.sample_period_ns = period;  // of the CPU clock
  LLMPROF_LET(const Pairs system, read_pairs(database, "TARGET_INFO_SYSTEM_ENV", "name"));
  about.host = get(system, "Hostname");
  about.driver = get(system, "NvDriverVersion");
  about.machine = machine_of(system);
  LLMPROF_LET(const auto started, session_start(database));
  about.clock = clock_of(exported, started);
  return about;
}

void write_about(Sink& sink, const About& about) {
  FileFacts facts;
  facts.tool = "Nsight Systems" + (about.product.empty() ? "" : " " + about.product) +
               (about.schema.empty() ? "" : ", export schema " + about.schema);
  facts.command = about.command;
  facts.host = about.host;
  sink.set_facts(facts);
  sink.set_clock(about.clock);
  if (!about.machine.empty()) sink.note("machine", about.machine);
  const std::string_view schema = about.schema;
  const auto minor = schema.size() > 2 ? to_number(schema.substr(2, schema.find('.', 2) - 2)) : std::nullopt;
  if (schema.empty())
    sink.note("import", "the export does not say the version of its schema; tables were read by their columns");
  else if (!minor || *minor > kKnownMinor)
    sink.lose(
        trace::Loss::kInputIgnored, 1,
        fmt::format("export schema {} is newer than 3.{}, which llmprof was tested with: what it adds was not read",
                    schema, kKnownMinor));
}

}  // namespace llmprof::importers::nsys

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/diagnosis.h"
#include "report/layout.h"
#include "report/page.h"
#include "report/ranges.h"
#include "report/sections.h"
#include "report/waterfall.h"
#include "trace/loss.h"

namespace llmprof::report {

namespace {

using analyze::Coverage;
using analyze::Summary;

double part(std::int64_t some, std::int64_t all) {
  return all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 0;
}

std::string title(const Page& page, const Style& style) {
  std::string command;
  for (const std::string& word : page.info.command) command += (command.empty() ? "" : " ") + word;
  std::string out = style.heading(page.run).substr(1);
  if (!command.empty()) out += wrapped(command);
  return out + wrapped(fmt::format("{}, llmprof {}{}", page.info.created, page.info.llmprof_version,
                                   page.info.source == "record" ? ""
                                   : is_predicted(page)         ? ", predicted"
                                                                : ", from " + page.info.source));
}

std::string losses(const Page& page, const Style& style) {
  std::string out;
  for (const analyze::Loss& loss : page.summary.losses) {
    const std::string line = loss_words(loss);
    const bool bad = loss.severity == trace::name_of(trace::Severity::kDataLoss);
    out += bad ? style.warning(wrapped(line, 4)) : wrapped(line, 4);
  }
  return out;
}

// Of processes that we recorded it matters whether the collector was in them; a file says nothing of that.
std::string seen(const Page& page) {
  const Coverage& c = page.summary.coverage;
  if (is_imported(page)) return counted(c.processes, "process") + ",";
  return fmt::format("{} of {} instrumented;", c.injected, counted(c.processes, "process"));
}

// What was lost or not seen comes before everything that is said about the rest.
std::string coverage(const Page& page, const Style& style) {
  const std::string lost = losses(page, style);
  if (is_predicted(page)) return style.heading("Coverage") + prediction_lines(page) + lost + gap_lines(page, style);
  return style.heading("Coverage") + source_lines(page) + window_line(page) +
         (lost.empty() ? "  Nothing was lost.\n" : "  Lost or not seen:\n" + lost) + gap_lines(page, style);
}

std::string recorded(const Page& page, const Style& style) {
  if (is_predicted(page)) return predicted_section(page, style);
  const Coverage& c = page.summary.coverage;
  std::string out = style.heading("What was recorded");
  if (only_results(page)) {
    return out + wrapped(fmt::format("{} and {}; nothing of the work behind them.",
                                     counted(std::ssize(page.summary.requests.all), "request"),
                                     counted(std::ssize(page.summary.imported.reported), "figure")));
  }
  out += wrapped(fmt::format("{} {}, {}{}, {}, {}.", seen(page), counted(c.threads, "thread"),
                             counted(c.kernels, "kernel"), is_imported(page) ? "" : " and BLAS calls",
                             counted(c.ranges, "range"), counted(c.gemms, "matrix product")));
  if (c.wall_ns > 0) {
    const std::string_view whole = page.info.window.empty() ? "" : " of the whole program, recorded or not";
    out += wrapped(fmt::format("Wall time {}{}; {} of it in stages.", base::human_ns(static_cast<double>(c.wall_ns)),
                               whole, base::human_percent(part(c.in_stages_ns, c.wall_ns))));
  }
  if (c.kernel_ns > c.gpu_ns) {
    out += wrapped(fmt::format("Kernel time {}, the sum over kernels; {} of it belongs to a step.",
                               base::human_ns(static_cast<double>(c.kernel_ns)),
                               base::human_percent(part(c.attributed_kernel_ns, c.kernel_ns))));
  }
  out += gpu_coverage(page);
  out += stack_coverage(page);
  return is_imported(page) ? out : out + cost_lines(page, style);
}

std::string job_lines(const Page& page) {
  const std::string words = job_words(page.summary, is_predicted(page));
  return words.empty() ? "" : wrapped(words);
}

std::string machine(const Page& page, const Style& style) {
  std::string out = style.heading("Machine");
  if (is_imported(page) && page.summary.devices.empty()) return out + wrapped("The files name no device.");
  for (const analyze::DeviceCard& device : page.summary.devices) {
    std::string line = fmt::format("{}: {}", device.kind, device.name.empty() ? "of unknown name" : device.name);
    if (!device.chip.empty()) line += " (" + device.chip + ")";
    if (device.units > 0) line += fmt::format(", {} {}", device.units, device.kind == "cpu" ? "cores" : "units");
    if (device.memory_bytes > 0) line += ", memory " + base::human_bytes(static_cast<double>(device.memory_bytes));
    if (device.cache_bytes > 0)
      line += ", last-level cache " + base::human_bytes(static_cast<double>(device.cache_bytes));
    if (!device.driver.empty()) line += ", driver " + device.driver;
    if (page.verbose && !device.uuid.empty()) line += ", " + device.uuid;
    if (device.idle && device.kernel_ns > 0 && device.kind == page.summary.devices.front().kind)
      line += fmt::format("; counts as idle: {} of kernels are less than 1 % of what the busiest executed",
                          base::human_ns(static_cast<double>(device.kernel_ns)));
    out += wrapped(line);
  }
  return out + job_lines(page) + wrapped(environment_line(page.info.environment));
}

std::string model(const Page& page, const Style& style) {
  const Summary& s = page.summary;
  std::string line = s.model_family.empty() ? "unknown: " + s.model_why : s.model_family;
  if (s.parameters) line += fmt::format(", {} parameters", base::human_count(static_cast<double>(*s.parameters)));
  if (s.weights_read_bytes)
    line += fmt::format(", {} of weights read by one pass", base::human_bytes(*s.weights_read_bytes));
  std::string out = style.heading("Model") + wrapped(line);
  if (!s.model_origin.empty()) {
    out += wrapped(fmt::format("Source: {}{}{}.", s.model_origin, s.model_note.empty() ? "" : "; ", s.model_note));
  }
  return out;
}

std::string denominator(std::string_view what, std::string_view of, const std::optional<double>& peak, const char* unit,
                        std::string_view source, std::string_view method, std::int64_t devices,
                        std::string_view name = "") {
  if (!peak) return wrapped(fmt::format("{}: unknown, this device has no peak {}.", what, of));
  return wrapped(fmt::format("{}, of {} {} ({}{}{}{}{}{}).", what, base::human_rate(*peak, unit), of,
                             devices > 1 ? fmt::format("{} devices together; ", devices) : "", name,
                             name.empty() ? "" : ", ", source == "measured" ? "measured on this machine" : source,
                             method.empty() ? "" : ": ", method));
}

std::string denominators(const Page& page) {
  const Summary& s = page.summary;
  if (s.devices.empty()) return wrapped("MFU and MBU: unknown, the run names no device.");
  const analyze::DeviceCard& device = s.devices.front();
  std::string out = denominator("MFU %: model FLOPs / time", device.type, s.peak_flops, "FLOP/s",
                                device.peak_flops_source, device.peak_flops_method, s.busy_devices);
  out += denominator("MBU %: bytes that must move / time", "bandwidth", s.peak_bandwidth, "B/s",
                     device.peak_bandwidth_source, device.peak_bandwidth_method, s.busy_devices,
                     device.peak_bandwidth_name);
  return out;
}

std::string recomputation(const Page& page) {
  std::string out;
  for (const analyze::Stage& stage : page.summary.stages) {
    const analyze::Efficiency& e = stage.efficiency;
    if (!e.recomputed_flops || !e.hfu || !e.mfu || !shown(page, stage.name)) continue;
    out += wrapped(fmt::format(
        "{}: HFU {}, MFU {}: products of the forward pass are computed again ({}FLOP, which HFU "
        "counts and MFU does not).",
        stage.name, base::human_percent(*e.hfu), base::human_percent(*e.mfu), base::human_count(*e.recomputed_flops)));
  }
  return out;
}

// Reasons for what is missing, each once, with the stages it concerns.
std::string reasons(const Page& page) {
  std::vector<std::pair<std::string, std::string>> notes;  // why, stages
  for (const analyze::Stage& stage : page.summary.stages) {
    if (stage.efficiency.why.empty() || !shown(page, stage.name)) continue;
    const auto same =
        std::find_if(notes.begin(), notes.end(), [&](const auto& note) { return note.first == stage.efficiency.why; });
    if (same == notes.end()) {
      notes.emplace_back(stage.efficiency.why, stage.name);
    } else {
      same->second += ", " + stage.name;
    }
  }
  std::string out;
  for (const auto& [why, stages] : notes) out += wrapped(fmt::format("{}: {}.", stages, why));
  return out;
}

std::string without_stages(const Page& page, const Style& style) {
  std::string out = style.heading("Stages");
  if (!page.summary.host.sampled_stages.empty()) {
    return out + wrapped(
                     "No steps: the program announced no ranges and made no call that tells them, and stack samples do "
                     "not tell one "
                     "step from the next for certain. What functions took tells the section below.");
  }
  if (!has_timeline(page)) return out + wrapped("None: what was imported has no times of single executions.");
  out += wrapped(page.summary.coverage.ranges == 0
                     ? "None: the program announced no ranges, so llmprof cannot tell prefill from decode."
                     : "None: no range of the program is named as a stage or step that llmprof knows.");
  if (page.summary.coverage.gemms == 0) {
    return out +
           wrapped(
               "Stages cannot be inferred from matrix products either: none was seen. To get them, annotate the "
               "program "
               "with include/llmprof/annotate.h, or give NVTX ranges the names prefill, decode, forward, backward or "
               "optimizer.");
  }
  if (page.summary.model_family.empty()) {
    out += wrapped(
        "To get them, say the model (--model NAME|PATH): stages are then inferred from the shapes and order of its "
        "matrix "
        "products. Or annotate the program with include/llmprof/annotate.h, or give NVTX ranges the names prefill, "
        "decode, forward, backward or optimizer.");
  } else {
    out += wrapped(
        "The matrix products that were seen are not, in order, those of a pass over the model. To get stages, annotate "
        "the program with include/llmprof/annotate.h, or give NVTX ranges the names prefill, decode, forward, backward "
        "or optimizer.");
  }
  return out;
}

}  // namespace

std::string loss_words(const analyze::Loss& loss) {
  return trace::describe({.name = loss.name,
                          .severity = loss.severity,
                          .count = loss.count,
                          .unit = loss.unit,
                          .meaning = loss.meaning,
                          .remedy = loss.remedy,
                          .detail = loss.detail});
}

Flags flags_of(const Page& page) {
  const analyze::Summary& s = page.summary;
  const auto any_shown = [&](const auto& rows, const auto& what) {
    return std::ranges::any_of(rows, [&](const auto& row) { return shown(page, row.stage) && what(row); });
  };
  Flags flags;
  const auto set = [&](bool is, const char* flag) { is ? void(flags.insert(flag)) : void(); };
  const bool inference = std::ranges::any_of(s.stages, &analyze::Stage::makes_tokens);
  const bool steps = std::ranges::any_of(
      s.stages, [&](const analyze::Stage& stage) { return shown(page, stage.name) && stage.times_steps(); });
  set(s.on_gpu, "gpu");
  set(inference, "inference");
  set(inference && steps, "tokens_and_steps");
  set(inference && !steps, "only_tokens");
  set(s.gpu.by == "function", "functions");
  set(s.imported.framework_device_ns > 0, "framework_gpu");
  set(std::ranges::any_of(s.device_memory.devices,
                          [](const auto& device) {
                            return std::ranges::any_of(device.at_peak,
                                                       [](const auto& group) { return !group.function.empty(); });
                          }),
      "allocation_stacks");
  set(std::ranges::any_of(s.range_tree, [](const auto& range) { return range.kernel_ns > 0; }), "range_kernels");
  set(any_shown(s.gemms, [](const auto& gemm) { return gemm.shared_ns > 0; }), "shared");
  return flags;
}

// Stages, what they reach and what lies between that and the floor.
std::string stages_part(const Page& page, const Style& style, const TableText& tables) {
  if (page.summary.stages.empty())
    return (is_plain_program(page) || only_results(page) ? "" : without_stages(page, style)) + hardware_section(page, style) +
           sampled_section(page, style, tables);
  std::string out = stage_table(page, style, tables);
  if (page.summary.host.sampled_stages.empty())
    out += efficiency_table(style, tables, page) + denominators(page) + recomputation(page) + reasons(page);
  return out + hardware_section(page, style) + waterfall_section(page, style) + idle_section(page, style) +
         sampled_section(page, style, tables);
}

std::string host_part(const Page& page, const Style& style, const TableText& tables) {
  return (is_imported(page) || is_predicted(page)) && page.summary.host.memory.empty()
             ? ""
             : host_section(page, style, tables);
}

namespace {

using PartText = std::string (*)(const Page&, const Style&, const TableText&);

// The order is that of the whole report.
struct NamedPart : ReportPart {
  PartText text;
};
constexpr std::array<NamedPart, 20> kParts{{
    {{"losses", "what was lost or not recorded, and what to do about it"},
     [](const Page& page, const Style& style, const TableText&) { return coverage(page, style); }},
    {{"diagnosis", "every finding with its evidence and advice, and what was looked for"},
     [](const Page& page, const Style& style, const TableText&) { return full_diagnosis(page, style); }},
    {{"run", "what was recorded, what that cost, machine and model"},
     [](const Page& page, const Style& style, const TableText&) {
       return recorded(page, style) + (only_results(page) ? "" : machine(page, style) + model(page, style));
     }},
    {{"life", "the life of the program from exec to exit, phase by phase"},
     [](const Page& page, const Style& style, const TableText& tables) { return life_section(page, style, tables); }},
    {{"stages", "stages: times, rates, efficiency, waterfall, idle time", "stages[]"}, stages_part},
    {{"steps", "training steps, and the blocks of the model"},
     [](const Page& page, const Style& style, const TableText& tables) {
       return training_table(page, style, tables) + block_table(page, style);
     }},
    {{"ranges", "ranges of the program (NVTX, annotations) as a tree"},
     [](const Page& page, const Style& style, const TableText&) { return range_section(page, style); }},
    {{"operators", "operators of each stage, with their shapes and costs", "operators[]"}, operator_tables},
    {{"modules", "modules of the model, with their costs"}, module_tables},
    {{"kernels", "kernels by GPU time", "kernels[]"},
     [](const Page& page, const Style& style, const TableText& tables) { return kernel_table(page, style, tables); }},
    {{"gemms", "matrix products and attention by shape", "gemms[]"},
     [](const Page& page, const Style& style, const TableText& tables) {
       return gemm_table(page, style, tables) + tables.section("attention[]", style);
     }},
    {{"framework", "operators and totals of imported profiles"},
     [](const Page& page, const Style& style, const TableText& tables) {
       return framework_table(page, style, tables) + totals_table(page, style, tables);
     }},
    {{"counters", "hardware counters"},
     [](const Page& page, const Style& style, const TableText& tables) {
       return has_hardware(page) ? hardware_alone(page, style, tables) : counter_table(page, style, tables);
     }},
    {{"power", "power, energy, clocks and activity of devices", "telemetry.stages[]"},
     [](const Page& page, const Style& style, const TableText& tables) {
       return telemetry_section(page, style, tables);
     }},
    {{"memory", "memory of devices and of frameworks' allocators", "device_memory.devices[]"},
     [](const Page& page, const Style& style, const TableText& tables) {
       return device_memory_section(page, style, tables) + allocator_section(page, style, tables);
     }},
    {{"requests", "requests: latencies, what steps did for them, who held whom up", "requests.all[]"},
     [](const Page& page, const Style& style, const TableText& tables) {
       return requests_section(page, style, tables) + tables.section("reported[]", style);
     }},
    {{"server", "metrics of an inference server: requests, KV cache, latencies"},
     [](const Page& page, const Style& style, const TableText& tables) {
       return metrics_section(page, style, tables);
     }},
    {{"host", "processes: CPU time, memory, I/O", "host.processes[]"}, host_part},
    {{"functions", "functions by CPU time, from stack samples", "top_functions[]"}, functions_section},
    {{"python", "Python functions, with the native code that they call"},
     [](const Page&, const Style& style, const TableText& tables) {
       return tables.section("python_functions[]", style);
     }},
}};

std::string without_kernels(const Page& page) {
  if (is_plain_program(page)) {
    return "\n" + wrapped(
                      "No BLAS call, kernel or range was seen: a program on the CPU, or one whose calls llmprof cannot "
                      "see (a statically linked BLAS, a GPU of another maker).");
  }
  if (is_imported(page) || page.summary.coverage.kernels > 0 || page.summary.coverage.gemms > 0) return "";
  return "\n" +
         wrapped(
             "No BLAS call or kernel was seen: the program made none, or made them in a way llmprof cannot see "
             "(a statically linked BLAS; a GPU of another maker, or one whose recording another program holds).");
}

}  // namespace

std::span<const ReportPart> report_parts() {
  static const std::vector<ReportPart> parts(kParts.begin(), kParts.end());
  return parts;
}

std::string part_text(const Page& page, std::string_view name, bool colour) {
  const Style style{colour};
  const base::Json report = tables_json(page);
  const TableText tables(report, flags_of(page), page.top);
  const auto part = std::ranges::find(kParts, name, &NamedPart::name);
  const std::string text = part == kParts.end() ? "" : part->text(page, style, tables);
  // What was lost is said first, where it can change what follows.
  const bool bad = std::ranges::any_of(page.summary.losses, [](const analyze::Loss& loss) {
    return loss.severity == trace::name_of(trace::Severity::kDataLoss);
  });
  return title(page, style) + (bad && name != "losses" ? "  Lost or not seen:\n" + losses(page, style) : "") +
         (text.empty() ? "\n" + wrapped(fmt::format("This run has nothing of it: {}.", part->meaning)) : text);
}

std::string to_text(const Page& page, bool colour) {
  const Style style{colour};
  std::string out = title(page, style) + coverage(page, style);
  if (page.diagnosis) return out + full_diagnosis(page, style);
  const base::Json report = tables_json(page);
  const TableText tables(report, flags_of(page), page.top);
  if (page.counters) return out + hardware_alone(page, style, tables);
  out += diagnosis_section(page, style);
  const auto add = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      out += std::ranges::find(kParts, name, &NamedPart::name)->text(page, style, tables);
  };
  out += recorded(page, style) + life_section(page, style, tables) +
         (only_results(page) ? "" : machine(page, style)) +
         (is_plain_program(page) || only_results(page) ? "" : model(page, style));
  add({"stages", "steps", "ranges", "operators", "modules", "kernels"});
  out += source_table(page, style, tables);
  add({"gemms", "framework"});
  out += counter_table(page, style, tables);
  add({"requests", "power", "memory", "server", "host", "functions"});
  return out + without_kernels(page);
}

// The card (libs/hw/environment.h) may come from another version of llmprof: what is not there is not said.
std::string environment_line(std::string_view card_json) {
  const Result<base::Json> card = base::parse_json(card_json, "environment");
  if (!card || !card->is_object()) return "";
  struct Field {
    const char *section, *key, *label;
  };
  static constexpr std::array<Field, 8> kFields{{{"system", "distribution", ""},
                                                 {"system", "kernel", "kernel "},
                                                 {"system", "hypervisor", "virtual machine "},
                                                 {"system", "container", "container "},
                                                 {"cpu", "cores", "cores "},
                                                 {"cpu", "threads_per_core", "threads per core "},
                                                 {"cpu", "quota_cpus", "CPU quota "},
                                                 {"cpu", "governor", "governor "}}};
  std::string out;
  for (const Field& field : kFields) {
    const auto section = card->find(field.section);
    if (section == card->end() || !section->is_object() || !section->contains(field.key)) continue;
    const base::Json& value = (*section)[field.key];
    if (value.is_null()) continue;
    out += (out.empty() ? "" : ", ") + std::string(field.label) +
           (value.is_string() ? value.get<std::string>() : base::to_line(value));
  }
  return out;
}

std::string job_words(const analyze::Summary& summary, bool predicted) {
  const analyze::Job& job = summary.job;
  const std::int64_t ranks = std::ssize(job.ranks);
  const bool divided = job.groups.parts() > 1 || job.groups.expert > 1;
  if (ranks < 2 && job.world < 2 && !divided) return job.note.empty() ? "" : job.note + ".";
  if (!job.known) return job.why + ". Tokens/s and whatever else depends on it are not stated.";
  std::string line =
      fmt::format("{} on {}{}: {}.", counted(ranks, "rank"), counted(job.devices, summary.on_gpu ? "GPU" : "CPU"),
                  ranks > job.devices ? ", shared" : "", job.groups.words());
  if (ranks < job.world) {
    line += fmt::format(" {} of {} {}.", ranks, counted(job.world, "rank"),
                        predicted ? "is in the run, as all do the same" : "were recorded");
  }
  if (!job.origin.empty()) line += fmt::format(" Source: {}{}{}.", job.origin, job.note.empty() ? "" : "; ", job.note);
  if (ranks > 1) line += " Findings and waterfalls are of a mean rank, stages and their rates of all together.";
  return line;
}

}  // namespace llmprof::report

#include "report/environment_line.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "base/json.h"
#include "report/layout.h"

namespace llmprof::report {

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

std::string job_words(const analyze::Summary& summary) {
  const analyze::Job& job = summary.job;
  const std::int64_t ranks = std::ssize(job.ranks);
  const bool divided = job.groups.parts() > 1 || job.groups.expert > 1;
  if (ranks < 2 && job.world < 2 && !divided) return job.note.empty() ? "" : job.note + ".";
  if (!job.known) return job.why + ". Tokens/s and whatever else depends on it are not stated.";
  std::string line =
      fmt::format("{} on {}{}: {}.", counted(ranks, "rank"), counted(job.devices, summary.on_gpu ? "GPU" : "CPU"),
                  ranks > job.devices ? ", shared" : "", job.groups.words());
  if (ranks < job.world) line += fmt::format(" {} of {} were recorded.", ranks, counted(job.world, "rank"));
  if (!job.origin.empty())
    line += fmt::format(" Known by: {}{}{}.", job.origin, job.note.empty() ? "" : "; ", job.note);
  if (ranks > 1) line += " Findings and waterfalls are of a mean rank, stages and their rates of all together.";
  return line;
}

}  // namespace llmprof::report

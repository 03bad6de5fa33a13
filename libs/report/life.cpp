#include "report/life.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/human.h"
#include "base/text_table.h"

namespace llmprof::report {
namespace {

using analyze::Companion;
using analyze::Life;
using analyze::LifePhase;
using base::Json;

constexpr double kLeastShare = 0.001;  // of the life: phases with less are one row

// One sign for each phase: a letter of its label that no longer one has, time without work as '.'.
std::vector<std::string> signs(const Life& life) {
  std::vector<std::string> out(life.phases.size());
  std::vector<std::size_t> order(life.phases.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return life.phases[i].time_ns; });
  std::string used;
  const auto take = [&](char sign) {
    const bool fresh = used.find(sign) == std::string::npos;
    if (fresh) used += sign;
    return fresh;
  };
  for (const std::size_t phase_number : order) {
    const LifePhase& phase = life.phases[phase_number];
    char sign = phase.name == "idle" ? '.' : phase.name == "unknown" ? '?' : ' ';
    const std::string letters = phase.label + "abcdefghijklmnopqrstuvwxyz0123456789";
    for (std::size_t i = 0; i < letters.size() && sign == ' '; ++i) {
      const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(letters[i])));
      if (std::isalnum(static_cast<unsigned char>(upper)) != 0 && take(upper)) sign = upper;
    }
    out[phase_number] = sign;
  }
  return out;
}

// Without the folder of the program: what follows says more.
std::string whose(const Life& life) {
  std::string command = life.arguments.empty() ? life.executable : life.arguments;
  const std::size_t folder = command.substr(0, command.find(' ')).rfind('/');
  if (folder != std::string::npos) command.erase(0, folder + 1);
  return fmt::format("{} (process {})", cut_off(base::printable(command), 60), life.pid);
}

std::string phase_table(const Life& life, const std::vector<std::string>& sign, const TableText& tables) {
  Json rows = Json::array();
  std::int64_t small = 0, small_ns = 0;
  for (std::size_t i = 0; i < life.phases.size(); ++i) {
    if (life.phases[i].share < kLeastShare) {
      ++small, small_ns += life.phases[i].time_ns;
      continue;
    }
    rows.push_back(tables.report()["life"]["phases"][i]);
    rows.back()["sign"] = sign[i];
  }
  if (small > 0) {
    rows.push_back({{"label", counted(small, "phase") + " below 0.1 %"},
                    {"time_ns", small_ns},
                    {"share", static_cast<double>(small_ns) / static_cast<double>(life.time_ns())}});
  }
  return tables.rows("life.phases[]", rows, SIZE_MAX);
}

std::string companion_line(const Life& life) {
  constexpr std::size_t kMost = 5;
  if (life.concurrent.empty()) return "";
  std::string names;
  for (std::size_t i = 0; i < std::min(kMost, life.concurrent.size()); ++i) {
    const Companion& c = life.concurrent[i];
    names += fmt::format("{}{} {} ({}, CPU {})", names.empty() ? "" : ", ", c.processes, base::printable(c.name),
                         base::human_ns(static_cast<double>(c.life_ns)), base::human_ns(static_cast<double>(c.cpu_ns)));
  }
  const auto left = static_cast<std::int64_t>(life.concurrent.size() - std::min(kMost, life.concurrent.size()));
  if (left > 0) names += ", " + counted(left, "other program");
  return wrapped(fmt::format("At the same time ran, not in the bar, lives and CPU times added up: {}.", names));
}

std::string how_it_ended(const Life& life) {
  if (!life.exit_status) return "";
  if (*life.exit_status <= 128) return fmt::format(", status {}", *life.exit_status);
  const auto signal = static_cast<int>(*life.exit_status - 128);
  const char* name = ::sigabbrev_np(signal);
  return fmt::format(", status {}{}", *life.exit_status,
                     name != nullptr ? fmt::format(" (as by signal SIG{})", name) : "");
}

}  // namespace

std::string life_section(const Page& page, const Style& style, const TableText& tables) {
  const Life& life = page.summary.life;
  if (life.process_id == 0 || life.time_ns() <= 0) return "";
  const std::vector<std::string> sign = signs(life);
  std::string out = style.heading("Life of the program");
  out += wrapped(fmt::format("{}: {} from {} to {}{}.", whose(life),
                             base::human_ns(static_cast<double>(life.time_ns())), life.root ? "exec" : "its start",
                             life.ended ? "exit" : "what was seen last of it", how_it_ended(life)));
  std::string bar;
  for (const std::size_t phase : life.strip) bar += sign[phase];
  out += fmt::format("  {}\n", bar) + phase_table(life, sign, tables);
  out += wrapped(
      "Each letter is 1/64 of the life and stands for the phase that took most of it. Phases come from steps; "
      "elsewhere from stack samples of the main thread, from copies, and where it waits from other threads and "
      "processes.");
  if (!life.sampled) out += wrapped("No stacks were sampled: what the host did outside of steps is not known.");
  return out + companion_line(life);
}

}  // namespace llmprof::report

#include "analyze/steps/life.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/steps/idle.h"
#include "base/human.h"
#include "base/text_table.h"

namespace llmprof::analyze {

LifePainter::LifePainter(std::int64_t begin_ns, std::int64_t end_ns) : begin_ns_(begin_ns), end_ns_(end_ns) {
  if (end_ns > begin_ns) free_.push_back({begin_ns, end_ns, 0});
}

std::vector<std::int64_t> LifePainter::paint(const std::vector<LifePiece>& pieces) {
  std::vector<std::int64_t> got(pieces.size());
  std::vector<LifePiece> rest;
  std::size_t i = 0;
  std::int64_t covered_ns = INT64_MIN;
  for (LifePiece gap : free_) {
    while (i < pieces.size()) {
      const std::int64_t from = std::max({pieces[i].begin_ns, gap.begin_ns, covered_ns});
      const std::int64_t to = std::min(pieces[i].end_ns, gap.end_ns);
      if (pieces[i].begin_ns >= gap.end_ns) break;
      if (from < to) {
        if (gap.begin_ns < from) rest.push_back({gap.begin_ns, from, 0});
        add({from, to, pieces[i].phase});
        got[i] += to - from;
        gap.begin_ns = covered_ns = to;
      }
      if (pieces[i].end_ns > gap.end_ns) break;  // it goes on behind this gap
      ++i;
    }
    if (gap.begin_ns < gap.end_ns) rest.push_back(gap);
  }
  free_ = std::move(rest);
  return got;
}

void LifePainter::add(const LifePiece& piece) {
  if (phases_.size() <= piece.phase) phases_.resize(piece.phase + 1);
  Painted& phase = phases_[piece.phase];
  if (phase.time_ns == 0 || piece.begin_ns < phase.first_ns) phase.first_ns = piece.begin_ns;
  phase.time_ns += piece.end_ns - piece.begin_ns;
  const double part_ns = static_cast<double>(end_ns_ - begin_ns_) / kParts;
  const auto part_of = [&](std::int64_t ns) {
    return std::min(kParts - 1, static_cast<std::size_t>(static_cast<double>(ns - begin_ns_) / part_ns));
  };
  for (std::size_t part = part_of(piece.begin_ns); part <= part_of(piece.end_ns - 1); ++part) {
    const double from = part_ns * static_cast<double>(part) + static_cast<double>(begin_ns_);
    phase.parts[part] += static_cast<std::int64_t>(std::min(from + part_ns, static_cast<double>(piece.end_ns)) -
                                                   std::max(from, static_cast<double>(piece.begin_ns)));
  }
}

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
// Off the CPU between two samples of one phase: it waits for what the phase needs, such as a file.
constexpr std::int64_t kSamePhaseNs = 500 * kMillisecond;
// A stack that lacks its outer frames says little: the phase is that of its neighbours, if these are near and agree.
constexpr std::int64_t kNeighbourNs = 250 * kMillisecond;
constexpr std::int64_t kUnsampledNs = 20 * kMillisecond;  // two samples at 99 Hz: less is not resolved
constexpr std::int64_t kReadingSlackNs = 200 * kMillisecond;
constexpr double kMostlyOnCpu = 0.8;  // of a phase by samples: else the CPU time is said
constexpr double kBusyCore = 0.5;     // CPU time of a process, of one core, from which it is not idle

enum class How { kSteps, kSamples, kCopies, kCalls, kReadings, kProcess, kNone };
constexpr const char* kHow[] = {"steps", "samples", "copies", "calls", "readings", "process", "none"};

constexpr std::string_view kFillers[] = {"between_steps", "unsampled", "idle", "unknown"};

struct Sample {
  std::int64_t ts_ns = 0, weight_ns = 0;
  std::string phase, label;
  bool truncated = false;
  bool told() const { return !phase.empty() && phase != "libraries"; }
};

struct Samples {
  std::vector<Sample> main, threads, processes;  // of the main thread, of the others, of later processes
};

// Everything that one process's life is told from, painted in the order of how much it is worth.
class Story {
 public:
  explicit Story(Life& life) : life_(life), painter_(life.begin_ns, life.end_ns) {}

  void steps(const trace::Columns& rows, bool compile);
  void exit_handlers(std::optional<std::int64_t> begin_ns);
  void samples(const Samples& all, const trace::Columns& copies);
  void waits(const trace::Columns& rows);
  void between_steps();
  void readings(const trace::Columns& rows, std::optional<std::int64_t> first_ns, std::optional<std::int64_t> last_ns);
  void finish();

 private:
  struct Tally {
    std::string name;
    std::map<How, std::int64_t> ns, counts;
    std::int64_t bytes = 0;
    std::int64_t cpu_ns = 0;                     // that samples stand for
    std::map<std::string, std::int64_t> labels;  // by time
  };

  std::size_t phase(const std::string& name);
  std::vector<std::int64_t> paint(const std::vector<LifePiece>& pieces, How how);
  void paint(const std::vector<Sample>& samples, bool told, const std::string& otherwise);
  void copies(const trace::Columns& rows);
  std::string evidence(Tally& tally, How how) const;

  Life& life_;
  LifePainter painter_;
  std::vector<Tally> tallies_;  // by phase
  std::map<std::string, std::size_t, std::less<>> numbers_;
  std::int64_t first_step_ns_ = INT64_MAX, last_step_ns_ = INT64_MIN;
};

std::size_t Story::phase(const std::string& name) {
  const auto [at, fresh] = numbers_.try_emplace(name, tallies_.size());
  if (fresh) tallies_.push_back({.name = name});
  return at->second;
}

std::vector<std::int64_t> Story::paint(const std::vector<LifePiece>& pieces, How how) {
  std::vector<std::int64_t> got = painter_.paint(pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (got[i] == 0) continue;
    Tally& tally = tallies_[pieces[i].phase];
    tally.ns[how] += got[i];
    ++tally.counts[how];
  }
  return got;
}

// Steps of a stage are a phase of that name. Compilation gives way to the other steps: it may go on beside them.
void Story::steps(const trace::Columns& rows, bool compile) {
  std::vector<LifePiece> pieces;
  std::vector<std::size_t> of_row;
  const auto text = [&](std::size_t column, std::size_t row) -> const std::string& {
    return rows.names[rows.values[column][row]];
  };
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const std::string& stage = text(3, i);
    const bool concurrent = stage == "compile" || stage == "load";
    if (rows.values[0][i] != life_.process_id || concurrent != compile) continue;
    const bool warm_up = rows.values[4][i] != 0 && !concurrent;
    pieces.push_back({rows.values[1][i], rows.values[2][i], phase(warm_up ? "warm_up" : stage)});
    of_row.push_back(i);
    first_step_ns_ = std::min(first_step_ns_, rows.values[1][i]);
    last_step_ns_ = std::max(last_step_ns_, rows.values[2][i]);
  }
  const std::vector<std::int64_t> got = paint(pieces, How::kSteps);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Tally& tally = tallies_[pieces[i].phase];
    if (got[i] > 0) tally.labels[text(tally.name == "warm_up" ? 3 : 5, of_row[i])] += got[i];
    if (got[i] == 0) ++tally.counts[How::kSteps];  // beside another one
  }
}

void Story::exit_handlers(std::optional<std::int64_t> begin_ns) {
  if (life_.ended && begin_ns) paint({{*begin_ns, life_.end_ns, phase("exit")}}, How::kProcess);
}

void by_neighbours(std::vector<Sample>& samples) {
  for (std::size_t i = 1; i + 1 < samples.size(); ++i) {
    Sample& sample = samples[i];
    if (sample.told() || !sample.truncated) continue;
    std::size_t next = i + 1;
    while (next < samples.size() && !samples[next].told() && samples[next].truncated) ++next;
    const Sample& before = samples[i - 1];
    if (next == samples.size() || !before.told() || before.phase != samples[next].phase) continue;
    if (sample.ts_ns - before.ts_ns > kNeighbourNs || samples[next].ts_ns - sample.ts_ns > kNeighbourNs) continue;
    sample.phase = before.phase;
    sample.label = before.label;
  }
}

// A sample stands for the time before it that its thread was on a CPU.
void Story::paint(const std::vector<Sample>& samples, bool told, const std::string& otherwise) {
  std::vector<LifePiece> pieces;
  std::vector<const Sample*> of_piece;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    if (told && sample.phase.empty()) continue;
    std::int64_t begin_ns = sample.ts_ns - sample.weight_ns;
    if (told && i > 0 && samples[i - 1].phase == sample.phase && begin_ns - samples[i - 1].ts_ns <= kSamePhaseNs)
      begin_ns = std::min(begin_ns, samples[i - 1].ts_ns);
    pieces.push_back({begin_ns, sample.ts_ns, phase(sample.phase.empty() ? otherwise : sample.phase)});
    of_piece.push_back(&sample);
  }
  std::vector<std::size_t> order(pieces.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return pieces[i].begin_ns; });
  std::vector<LifePiece> sorted;
  for (const std::size_t i : order) sorted.push_back(pieces[i]);
  const std::vector<std::int64_t> got = paint(sorted, How::kSamples);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (got[i] == 0) continue;
    Tally& tally = tallies_[sorted[i].phase];
    tally.labels[of_piece[order[i]]->label] += got[i];
    tally.cpu_ns += std::min(got[i], of_piece[order[i]]->weight_ns);
  }
}

void Story::copies(const trace::Columns& rows) {
  std::vector<LifePiece> pieces;
  std::vector<std::size_t> of_row;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (rows.values[0][i] != life_.process_id && rows.values[0][i] != 0) continue;
    pieces.push_back({rows.values[1][i], rows.values[2][i], phase("host_to_device")});
    of_row.push_back(i);
  }
  const std::vector<std::int64_t> got = paint(pieces, How::kCopies);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (got[i] == 0) continue;
    Tally& tally = tallies_[pieces[i].phase];
    tally.counts[How::kCopies] += rows.values[3][of_row[i]] - 1;
    tally.bytes += rows.values[4][of_row[i]];
  }
}

// First what says most: the main thread where it does something that is known, then copies, then the main thread
// whatever it does. Where it waits, others of the process or its children work for it.
void Story::samples(const Samples& all, const trace::Columns& copied) {
  paint(all.main, true, "");
  copies(copied);
  paint(all.main, false, "host_work");
  if (!all.main.empty()) {
    const Sample& first = all.main.front();
    paint({{life_.begin_ns, first.ts_ns - first.weight_ns, phase("start")}}, How::kProcess);
  }
  paint(all.threads, true, "");
  paint(all.processes, true, "");
  paint(all.threads, false, "threads");
  paint(all.processes, false, "processes");
}

void Story::waits(const trace::Columns& rows) {
  std::vector<LifePiece> pieces;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (rows.values[0][i] == life_.process_id)
      pieces.push_back({rows.values[1][i], rows.values[2][i], phase("gpu_wait")});
  }
  paint(pieces, How::kCalls);
}

// Too short for a sample to be likely: not idle, only not seen.
void Story::between_steps() {
  std::vector<LifePiece> pieces;
  for (const LifePiece& gap : painter_.free()) {
    if (gap.end_ns - gap.begin_ns <= kUnsampledNs && gap.begin_ns >= first_step_ns_ && gap.end_ns <= last_step_ns_)
      pieces.push_back({gap.begin_ns, gap.end_ns, phase("between_steps")});
  }
  paint(pieces, How::kNone);
}

void Story::readings(const trace::Columns& rows, std::optional<std::int64_t> first_ns,
                     std::optional<std::int64_t> last_ns) {
  std::vector<LifePiece> busy;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (rows.values[0][i] != life_.process_id) continue;
    const std::int64_t begin_ns = rows.values[1][i], end_ns = rows.values[2][i];
    if (rows.values[3][i] >= kBusyCore * static_cast<double>(end_ns - begin_ns))
      busy.push_back({begin_ns, end_ns, phase("unsampled")});
  }
  paint(busy, How::kReadings);
  if (first_ns && last_ns)
    paint({{*first_ns - kReadingSlackNs, *last_ns + kReadingSlackNs, phase("idle")}}, How::kReadings);
  paint({{life_.begin_ns, life_.end_ns, phase("unknown")}}, How::kNone);
}

// The labels that take most of the time, with their shares of it, as far as a line of a report has room.
std::string shares(const std::map<std::string, std::int64_t>& labels, std::int64_t all_ns) {
  constexpr std::size_t kMost = 3, kLabel = 26, kRoom = 34;
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (const auto& [label, ns] : labels) {
    if (!label.empty() && label.find("+0x") == std::string::npos) sorted.emplace_back(ns, label);
  }
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(kMost, sorted.size()); ++i) {
    const double share = static_cast<double>(sorted[i].first) / static_cast<double>(std::max<std::int64_t>(all_ns, 1));
    const std::string more = fmt::format("{} {:.0f} %", base::shorten(sorted[i].second, kLabel), 100 * share);
    if (i > 0 && (share < 0.05 || base::display_width(out) + base::display_width(more) + 2 > kRoom)) break;
    out += (out.empty() ? "" : ", ") + more;
  }
  return out;
}

std::string counted_as(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string Story::evidence(Tally& tally, How how) const {
  const std::int64_t count = tally.counts[how];
  std::string out;
  const auto join = [&](const std::string& text) {
    if (!text.empty()) out += (out.empty() ? "" : "; ") + text;
  };
  if (how == How::kSteps) {
    const bool one = tally.labels.size() == 1 && tally.name != "warm_up";
    join(counted_as(count, "step", "steps") + (one ? ", " + tally.labels.begin()->first : ""));
    if (tally.name == "warm_up") join(shares(tally.labels, tally.ns[how]));
    return out;
  }
  if (const std::int64_t copies = tally.counts[How::kCopies]; copies > 0)
    join(fmt::format("{}, {}", counted_as(copies, "copy", "copies"),
                     base::human_bytes(static_cast<double>(tally.bytes))));
  if (const std::int64_t samples = tally.counts[How::kSamples]; samples > 0) {
    const std::int64_t ns = tally.ns[How::kSamples];
    const bool waits = tally.cpu_ns < kMostlyOnCpu * ns;
    join(counted_as(samples, "sample", "samples") +
         (waits ? fmt::format(", {} CPU", base::human_ns(static_cast<double>(tally.cpu_ns))) : ""));
    if (tally.name != "exit") join(shares(tally.labels, tally.ns[How::kSamples]));
  }
  if (how == How::kCalls) join(counted_as(count, "call that waits", "calls that wait"));
  if (tally.name == "start") join("before the first sample");
  if (tally.name == "exit" && tally.ns[How::kProcess] > 0)
    join(fmt::format("{} behind the handlers", base::human_ns(static_cast<double>(tally.ns[How::kProcess]))));
  if (tally.name == "between_steps") join("shorter than two samples are apart");
  if (tally.name == "idle") join("no thread of it on a CPU");
  if (tally.name == "unsampled") join("CPU time without a sample");
  if (tally.name == "unknown") join("not watched");
  return out;
}

void Story::finish() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < painter_.phases().size(); ++i) {
    if (painter_.phases()[i].time_ns > 0) order.push_back(i);
  }
  // What nothing is known of comes behind what the program did.
  const auto filler = [&](std::size_t i) { return std::ranges::count(kFillers, tallies_[i].name) > 0; };
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return std::pair(filler(i), painter_.phases()[i].first_ns); });
  for (const std::size_t i : order) {
    Tally& tally = tallies_[i];
    const auto by_time = [](const auto& entry) { return entry.second; };
    const How most = tally.ns.empty() ? How::kSteps : std::ranges::max_element(tally.ns, {}, by_time)->first;
    life_.phases.push_back({.name = tally.name,
                            .source = kHow[static_cast<std::size_t>(most)],
                            .evidence = evidence(tally, most),
                            .time_ns = painter_.phases()[i].time_ns,
                            .count = tally.counts[most],
                            .bytes = tally.bytes});
  }
  for (std::size_t part = 0; part < LifePainter::kParts && !order.empty(); ++part) {
    const auto most =
        std::ranges::max_element(order, {}, [&](std::size_t i) { return painter_.phases()[i].parts[part]; });
    life_.strip.push_back(static_cast<std::size_t>(most - order.begin()));
  }
}

// "x86_64-linux-gnu-g++-12" is g++, "ld.bfd" is ld.
std::string tool_name(std::string name) {
  if (const std::size_t triple = name.rfind("-gnu-"); triple != std::string::npos) name.erase(0, triple + 5);
  const std::size_t version = name.find_last_not_of("0123456789.");
  if (version != std::string::npos && version + 1 < name.size() && name[version] == '-') name.erase(version);
  return name.starts_with("ld.") ? "ld" : name;
}

bool is_compiler(const std::string& name) {
  static const std::set<std::string, std::less<>> kCompilers{
      "as",  "cc",  "cc1", "cc1plus", "cicc", "clang", "clang++", "collect2", "c++",   "cudafe++", "fatbinary",
      "g++", "gcc", "ld",  "ld.lld",  "lld",  "ninja", "nvcc",    "nvlink",   "ptxas", "tileiras"};
  return kCompilers.contains(name);
}

// The program's file; of an interpreter the script, of a package its name.
std::string program_name(const std::string& executable, const std::string& arguments) {
  std::string name = std::filesystem::path(executable).filename().string();
  if (name.empty()) return "without a name";
  if (!name.starts_with("python")) return tool_name(std::move(name));
  for (std::size_t at = arguments.find(' '); at != std::string::npos; at = arguments.find(' ', at + 1)) {
    const std::string word = arguments.substr(at + 1, arguments.find(' ', at + 1) - at - 1);
    if (!word.ends_with(".py")) continue;
    const std::filesystem::path script = word;
    return script.filename() == "__main__.py" ? script.parent_path().filename().string()
                                              : name + " " + script.filename().string();
  }
  return name;
}

struct ProcessRow {
  std::int64_t process_id = 0, pid = 0;
  std::optional<std::int64_t> parent_pid;
  std::string executable, arguments;
  std::int64_t begin_ns = 0, end_ns = 0;
  bool ended = false;
  std::optional<std::int64_t> first_reading_ns, last_reading_ns, collector_end_ns;
  std::int64_t step_ns = 0, cpu_ns = 0;
  bool root = false;
  std::optional<std::int64_t> exit_status;
};

// Those that ran at the same time. Returns the names of those that began within the life, by id.
std::map<std::int64_t, std::string> fill_companions(const std::vector<ProcessRow>& processes, Life& life) {
  std::map<std::int64_t, std::string> later;
  std::map<std::string, Companion> by_name;
  for (const ProcessRow& row : std::span(processes).subspan(1)) {
    const std::string name = program_name(row.executable, row.arguments);
    if (row.pid == life.pid || row.begin_ns > life.end_ns || row.end_ns < life.begin_ns) continue;
    if (row.begin_ns >= life.begin_ns) later[row.process_id] = name;
    Companion& companion = by_name[name];
    companion.name = name;
    ++companion.processes;
    companion.life_ns += row.end_ns - row.begin_ns;
    companion.cpu_ns += row.cpu_ns;
  }
  for (auto& [name, companion] : by_name) life.concurrent.push_back(companion);
  std::ranges::stable_sort(life.concurrent, std::greater{}, &Companion::life_ns);
  return later;
}

// Runs without such rows need not be asked.
Result<trace::Columns> ask_of(const trace::Run& run, std::string_view table, std::string_view name) {
  const bool there = std::ranges::any_of(run.info().files, [&](const auto& file) { return file.table == table; });
  return there ? ask_columns(run, name) : trace::Columns();
}

struct LifeFrame {
  StackFrame frame;
  FramePhase tells;
  bool module() const { return frame.function == "<module>"; }  // of Python: the code of a file
  bool linker() const { return tells.phase == "libraries"; }
  bool names_phase() const { return !tells.phase.empty() && !linker() && !module(); }
};
using LifeFrames = std::unordered_map<std::int64_t, LifeFrame>;  // by id

// A model that is moved without a single copy to a device stays where it is.
Result<LifeFrames> read_frames(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns rows, run.columns("SELECT id, kind, function, file FROM frame"));
  LLMPROF_LET(const std::int64_t copied,
              ask_number(run, "SELECT EXISTS (SELECT 1 FROM copy WHERE direction = 'host_to_device')::BIGINT"));
  LifeFrames frames;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const auto text = [&](std::size_t column) {
      const std::int64_t code = rows.values[column][i];
      return code > 0 ? rows.names[code] : std::string();
    };
    LifeFrame frame{.frame = {text(1), text(2), text(3)}, .tells = {}};
    frame.tells = phase_of(frame.frame);
    if (frame.frame.function.starts_with("Module.") && frame.tells.phase == "host_to_device" && copied == 0)
      frame.tells = {};
    frames.emplace(rows.values[0][i], std::move(frame));
  }
  return frames;
}

struct SaidPhase {
  std::string phase, label;  // label: which compiler, package or function
};

// "/x/site-packages/torch/_ops.py" -> "torch"
std::string package_of(std::string_view file) {
  const std::size_t at = file.find("-packages/");
  return at == std::string_view::npos ? "" : std::string(file.substr(at + 10, file.find('/', at + 10) - at - 10));
}

// The innermost frame that tells a phase counts, but what a library does while it is imported or loaded is importing or
// loading.
SaidPhase phase_of_stack(const std::vector<const LifeFrame*>& stack) {
  constexpr std::size_t kNowhere = SIZE_MAX;
  std::size_t teller = kNowhere, linker = kNowhere, package = kNowhere;
  bool importing = false, library_begins = false;
  std::string python, leaf;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const LifeFrame& each = *stack[i];
    if (teller == kNowhere && each.names_phase()) teller = i;
    if (each.linker()) linker = i;
    importing = importing || each.tells.phase == "imports";
    library_begins = library_begins || (each.module() && !each.tells.phase.empty());
    if (each.module() && !package_of(each.frame.file).empty()) package = i;
    if (python.empty() && each.frame.kind == "python" && !each.module()) python = each.frame.function;
    if (leaf.empty() && each.frame.kind != "kernel" && each.frame.function.find("+0x") == std::string::npos)
      leaf = each.frame.function;
  }
  const std::string own = python.empty() ? leaf : python;
  const bool loads = teller != kNowhere && linker != kNowhere && linker > teller;
  if (teller != kNowhere && stack[teller]->tells.phase == "exit") return {"exit", own};
  if (library_begins || (importing && loads))
    return {"imports", package == kNowhere ? "" : package_of(stack[package]->frame.file)};
  if (teller == kNowhere || loads) return {linker == kNowhere ? "" : "libraries", own};
  const LifeFrame& tells = *stack[teller];
  const std::string phase(tells.tells.phase);
  if (phase == "imports") return {phase, package == kNowhere ? "" : package_of(stack[package]->frame.file)};
  if (phase == "compile") return {phase, std::string(tells.tells.what)};
  for (const char* device : {"memory", "gpu_start", "gpu_wait", "host_to_device", "recording"}) {
    if (phase == device) return {phase, tells.frame.function};
  }
  return {phase, own};
}

Result<std::unordered_map<std::int64_t, SaidPhase>> read_phases(const trace::Run& run) {
  LLMPROF_LET(const LifeFrames frames, read_frames(run));
  LLMPROF_LET(const trace::Columns rows, ask_columns(run, "life_stacks"));
  std::unordered_map<std::int64_t, SaidPhase> phases;
  std::vector<const LifeFrame*> stack;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (const auto frame = frames.find(rows.values[1][i]); frame != frames.end()) stack.push_back(&frame->second);
    if (i + 1 < rows.rows() && rows.values[0][i + 1] == rows.values[0][i]) continue;
    phases.emplace(rows.values[0][i], phase_of_stack(stack));
    stack.clear();
  }
  return phases;
}

Result<Samples> read_samples(const trace::Run& run, const Life& life,
                             const std::map<std::int64_t, std::string>& later) {
  LLMPROF_LET(const trace::Columns rows, ask_of(run, "sample", "life_samples"));
  Samples out;
  if (rows.rows() == 0) return out;
  LLMPROF_LET(const auto phases, read_phases(run));
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const auto said = phases.find(rows.values[5][i]);
    const SaidPhase told = said == phases.end() ? SaidPhase{} : said->second;
    Sample sample{rows.values[2][i], rows.values[3][i], told.phase, told.label, rows.values[4][i] != 0};
    if (rows.values[0][i] == life.process_id) {
      (rows.values[1][i] != 0 ? out.main : out.threads).push_back(std::move(sample));
    } else if (const auto other = later.find(rows.values[0][i]); other != later.end()) {
      // A worker that was made to compile also starts, imports and ends.
      if (sample.phase != "compile") sample.phase = is_compiler(other->second) ? "compile" : "";
      sample.label = other->second;
      out.processes.push_back(std::move(sample));
    }
  }
  by_neighbours(out.main);
  return out;
}

}  // namespace

Result<Life> life_of(const trace::Run& run) {
  Life life;
  if (run.info().source != "record") return life;
  LLMPROF_LET(const std::vector<ProcessRow> processes, ask_rows<ProcessRow>(run, "life_process"));
  if (processes.empty()) return life;
  const ProcessRow& own = processes.front();
  life.process_id = own.process_id, life.pid = own.pid;
  life.executable = own.executable, life.arguments = own.arguments;
  life.begin_ns = own.begin_ns, life.end_ns = own.end_ns;
  life.ended = own.ended, life.exit_status = own.exit_status;
  life.root = std::ranges::any_of(processes, [&](const ProcessRow& row) { return row.root && row.pid == own.pid; });
  const auto later = fill_companions(processes, life);
  LLMPROF_LET(const Samples samples, read_samples(run, life, later));
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "life_steps"));
  LLMPROF_LET(const trace::Columns copies, ask_of(run, "copy", "life_copies"));
  LLMPROF_LET(const trace::Columns waits, ask_of(run, "api", "life_waits"));
  LLMPROF_LET(const trace::Columns readings, ask_of(run, "process_usage", "life_readings"));
  LLMPROF_LET(const std::int64_t unsampled,
              ask_number(run, "SELECT count(*) FROM loss WHERE name = 'no_stack_samples'"));
  life.sampled = !samples.main.empty() || unsampled == 0;
  Story story(life);
  story.steps(steps, false);
  story.steps(steps, true);
  story.exit_handlers(own.collector_end_ns);
  story.samples(samples, copies);
  story.waits(waits);
  story.between_steps();
  story.readings(readings, own.first_reading_ns, own.last_reading_ns);
  story.finish();
  for (LifePhase& phase : life.phases) {
    phase.label = phase_label(phase.name);
    if (life.time_ns() > 0) phase.share = static_cast<double>(phase.time_ns) / static_cast<double>(life.time_ns());
  }
  return life;
}

}  // namespace llmprof::analyze

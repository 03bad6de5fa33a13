#include "host/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "host/proc.h"

namespace llmprof::host {
namespace {

constexpr pid_t kFewIds = 64;  // more new ids than this: listing all processes is cheaper

std::set<pid_t> ancestors() {
  std::set<pid_t> found{1};
  for (pid_t pid = ::getpid(); pid > 1 && found.insert(pid).second;) {
    const auto stat = read_stat(pid);
    pid = stat ? stat->parent : 0;
  }
  return found;
}

}  // namespace

ProcessTree::ProcessTree(pid_t root, std::string setting)
    : setting_(std::move(setting)), members_{root}, adopters_(ancestors()), found_{root} {
  if (const auto stat = read_stat(root)) root_start_ticks_ = stat->start_ticks;
}

std::vector<pid_t> ProcessTree::look() {
  const pid_t newest = newest_id();
  if (newest == newest_ && newest != 0 && unborn_.empty()) return std::exchange(found_, {});
  const bool few = newest_ != 0 && newest >= newest_ && newest - newest_ <= kFewIds;
  std::vector<Candidate> candidates = few ? newly_made(newest) : not_yet_seen();
  newest_ = newest;
  // A parent may stand behind its child when ids start over: as long as one was found, the rest gets another chance.
  for (bool again = true; again;) {
    again = std::erase_if(candidates, [&](const Candidate& candidate) {
              if (!belongs(candidate)) return false;
              members_.insert(candidate.pid);
              found_.push_back(candidate.pid);
              return true;
            }) > 0;
  }
  return std::exchange(found_, {});
}

// Ids are given out in order, to threads too, and a moment before the process can be seen: who is not there is either
// gone or not there yet, and gets a second look.
std::vector<ProcessTree::Candidate> ProcessTree::newly_made(pid_t newest) {
  std::vector<Candidate> candidates;
  const auto probe = [&](pid_t pid) {
    const auto stat = read_stat(pid);
    if (stat && !stat->ended()) candidates.push_back({pid, stat->parent});
    return stat.has_value();
  };
  for (const pid_t pid : std::exchange(unborn_, {})) probe(pid);
  for (pid_t pid = newest_ + 1; pid <= newest; ++pid) {
    if (!probe(pid)) unborn_.push_back(pid);
  }
  return candidates;
}

std::vector<ProcessTree::Candidate> ProcessTree::not_yet_seen() {
  std::vector<Candidate> candidates;
  std::set<pid_t> alive;
  unborn_.clear();
  for (const pid_t pid : processes()) {
    if (members_.contains(pid)) continue;
    alive.insert(pid);
    if (foreign_.contains(pid)) continue;
    const auto stat = read_stat(pid);
    if (stat && !stat->ended() && stat->start_ticks >= root_start_ticks_) candidates.push_back({pid, stat->parent});
  }
  foreign_ = std::move(alive);
  return candidates;
}

bool ProcessTree::belongs(const Candidate& candidate) const {
  if (candidate.pid == ::getpid() || members_.contains(candidate.pid)) return false;
  const bool orphan = !setting_.empty() && adopters_.contains(candidate.parent);
  if (!members_.contains(candidate.parent) && !(orphan && has_variable(candidate.pid, setting_))) return false;
  const auto status = read_status(candidate.pid);
  return status && status->process == candidate.pid;  // not a thread
}

}  // namespace llmprof::host

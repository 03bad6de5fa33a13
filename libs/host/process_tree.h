#pragma once
// Finds the processes that descend from one. Looking is cheap while nobody makes processes or threads: one read.

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace llmprof::host {

class ProcessTree {
 public:
  // `setting`, "NAME=value", stands in the environment of the root: it tells a process whose parents ended before it
  // was seen. "": those are missed.
  ProcessTree(pid_t root, std::string setting);

  // Processes of the tree that were not there at the last call; the root at the first.
  std::vector<pid_t> look();
  void ended(pid_t pid) { members_.erase(pid); }

 private:
  struct Candidate {
    pid_t pid = 0, parent = 0;
  };
  std::vector<Candidate> newly_made(pid_t newest);
  std::vector<Candidate> not_yet_seen();
  bool belongs(const Candidate& candidate) const;

  std::string setting_;
  std::uint64_t root_start_ticks_ = 0;
  std::set<pid_t> members_;
  std::set<pid_t> adopters_;   // who may become the parent of an orphan: our own ancestors and we
  std::set<pid_t> foreign_;    // alive at the last full look, not of the tree
  pid_t newest_ = 0;           // id given out last, at the last look
  std::vector<pid_t> unborn_;  // given out, but not there at the last look
  std::vector<pid_t> found_;
};

}  // namespace llmprof::host

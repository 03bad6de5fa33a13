#pragma once
// A process of its own that reads devices and tells this one through a pipe. A driver that hangs takes only that
// process with it: it is asked to end, killed when it does not, and never waited for. It holds none of our files open.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace llmprof::record {

class WatchChild {
 public:
  // What the child does: with the pipe to write into, which does not block, and one that is ready to be read when there
  // is a word of the parent's, and at its end when it is time to end.
  using Body = std::function<void(int events, int orders)>;

  // Forks. To be called while this process has one thread.
  static Result<std::unique_ptr<WatchChild>> start(const Body& body);
  ~WatchChild();
  WatchChild(const WatchChild&) = delete;
  WatchChild& operator=(const WatchChild&) = delete;

  void receive();                             // what came by now, into bytes(); does not wait
  std::string& bytes() { return bytes_; }     // received, not yet taken
  int descriptor() const { return events_; }  // ready to be read when there is something
  bool ended() const { return ended_; }       // nothing more will come
  void tell(char word) const;                 // to the child; lost where it does not listen
  // Asks it to end. False: it did not answer in time and was abandoned.
  bool stop(std::chrono::milliseconds patience);

 private:
  WatchChild(pid_t pid, int events, int orders) : pid_(pid), events_(events), orders_(orders) {}
  bool read_some();

  pid_t pid_;
  int events_, orders_;
  bool ended_ = false;
  std::string bytes_;
};

}  // namespace llmprof::record

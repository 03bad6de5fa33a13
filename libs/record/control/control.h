#pragma once
// A socket through which a recording is started and stopped while the program runs: one command a line (start, stop,
// status, dump), one line of JSON as the answer. The collectors are told by lines of the file `control` beside their
// logs, which they read some times a second. A start is told so long ahead that all know it when its time comes.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace llmprof::record {

// The stretches in which recording is on, on CLOCK_MONOTONIC_RAW. Not for several threads.
class Stretches {
 public:
  // False: it is so already.
  bool switch_at(std::int64_t ts_ns, bool on);
  bool is_on() const { return !begun_.empty() && begun_.size() > ended_.size(); }
  std::size_t count() const { return begun_.size(); }
  std::int64_t total_ns(std::int64_t now_ns) const;  // of what lies before now

 private:
  std::vector<std::int64_t> begun_, ended_;
};

class Control {
 public:
  struct Options {
    std::string socket;          // path
    std::string capture_folder;  // with the file for the collectors
    bool start_stopped = false;
    std::int64_t begin_ns = 0;                  // of the recording
    std::function<Result<std::string>()> dump;  // path of the run it made
  };

  // Makes file and socket and answers from a thread of its own until it is destroyed.
  static Result<std::unique_ptr<Control>> open(Options options);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // "switched on 2 times, 3.20 s in all"
  std::string summary(std::int64_t now_ns) const;

 private:
  explicit Control(Options options) : options_(std::move(options)) {}
  struct Client {
    int socket = -1;
    std::string received;
  };
  Result<void> make_file();
  Result<void> make_socket();
  void run();
  void accept_client();
  bool serve(Client& client);  // false: it is gone
  std::string answer(const std::string& command);
  std::string switch_now(bool on);
  std::string status() const;
  std::string dump();

  Options options_;
  int listener_ = -1, stop_ = -1, file_ = -1;
  bool bound_ = false;
  std::vector<Client> clients_;
  mutable std::mutex mutex_;  // of stretches_
  Stretches stretches_;
  std::thread thread_;
};

// Sends a command to a recording's socket; its answer, a line of JSON.
Result<std::string> ask_control(const std::string& socket, const std::string& command);

}  // namespace llmprof::record

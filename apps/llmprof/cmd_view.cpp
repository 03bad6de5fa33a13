// llmprof view: look at runs in the browser, with all their data.

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "given_names.h"
#include "report_verb.h"
#include "view/view.h"

extern char** environ;

namespace llmprof::app {
namespace view_verb {
namespace {

constexpr Option kOptions[] = {
    {"--port", "", "LLMPROF_VIEW_PORT", "N", "0", "port to serve on; 0 is any that is free"},
    {"--no-open", "", "", "", "", "do not open a browser; the URL is printed either way"},
    {"--idle", "", "", "SECONDS", "3600", "end when nothing was asked for so long; 0 is never"},
    {"--allow-sql", "", "", "", "", "let the page send SELECTs of your own, as llmprof query runs them"},
    {"--listen", "", "", "ADDRESS", "127.0.0.1", "another address of this machine; needs --i-understand"},
    {"--i-understand", "", "", "", "", "with --listen: others in the network may read what goes over it"},
    {"--json", "", "", "", "", "print {url, port, pid} as one line of JSON when it is ready"},
};
constexpr Positional kPositionals[] = {{"RUN", false, true}};

std::atomic<bool> stop{false};

// Ctrl-C ends it when what is being done allows; a second one at once.
void on_signal(int) {
  if (stop.exchange(true)) ::_exit(130);
}

Result<view::Settings> settings_of(const Arguments& arguments) {
  view::Settings settings{.runs = arguments.positionals,
                          .listen = arguments.get("--listen"),
                          .understood = arguments.on("--i-understand"),
                          .allow_sql = arguments.on("--allow-sql")};
  LLMPROF_LET(settings.port, number_in<std::uint16_t>(arguments, "--port", "a number"));
  LLMPROF_LET(settings.idle_seconds, number_in<std::int64_t>(arguments, "--idle", "a number"));
  return settings;
}

bool has_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

// A page that leads to the URL, in a folder that only this user can read: command lines are everybody's to read, and
// the URL holds the secret. It is gone when the program ends.
class PrivatePage {
 public:
  explicit PrivatePage(const std::string& url) {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    folder_ = std::string(runtime != nullptr && *runtime != '\0' ? runtime : "/tmp") + "/llmprof-view-XXXXXX";
    if (::mkdtemp(folder_.data()) == nullptr) {
      folder_.clear();
      return;
    }
    path_ = folder_ + "/open.html";
    std::ofstream(path_) << "<!doctype html><meta charset=\"utf-8\"><title>llmprof</title><script>location.replace("
                         << base::Json(url).dump() << ")</script>\n";
  }
  PrivatePage(const PrivatePage&) = delete;
  PrivatePage& operator=(const PrivatePage&) = delete;
  ~PrivatePage() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  const std::string& path() const { return path_; }  // "": there is none

 private:
  std::string folder_, path_;
};
std::optional<PrivatePage> private_page;

// No shell: the address is one argument.
void open_browser(const std::string& url) {
  private_page.emplace(url);
  if (private_page->path().empty()) return;
  std::string program = "xdg-open", argument = "file://" + private_page->path();
  char* words[] = {program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  ::posix_spawnp(&pid, program.c_str(), nullptr, nullptr, words, environ);  // without one, the printed URL remains
}

void announce(const Arguments& arguments, const view::Ready& ready) {
  if (arguments.on("--json")) {
    print(base::to_line({{"url", ready.url}, {"port", ready.port}, {"pid", ::getpid()}}) + "\n");
  } else {
    print(fmt::format("{}\n", ready.url));
    fmt::print(stderr, "Open this in a browser on this machine; whoever has the URL sees the runs. Ctrl-C ends it.\n");
  }
  if (!arguments.on("--no-open") && has_display()) open_browser(ready.url);
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(view::Settings settings, settings_of(arguments));
  if (settings.runs.empty()) {
    LLMPROF_LET(std::string latest, latest_run());
    settings.runs.push_back(std::move(latest));
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, on_signal);
  const auto served = view::serve(
      settings, [&](const view::Ready& ready) { announce(arguments, ready); }, stop);
  private_page.reset();
  LLMPROF_TRY(served);
  return 0;
}

}  // namespace
}  // namespace view_verb

extern const Verb kView;
const Verb kView{"view",
                 "look at runs in the browser, with all their data",
                 view_verb::kOptions,
                 view_verb::kPositionals,
                 false,
                 view_verb::run};

}  // namespace llmprof::app

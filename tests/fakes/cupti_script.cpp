#include "cupti_script.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

namespace fake {
namespace {

void set_fault(Script* script, const std::string& value) {
  const std::size_t at = value.find('@'), colon = value.rfind(':');
  if (at == std::string::npos || colon == std::string::npos) std::_Exit(95);
  script->failing = value.substr(0, at);
  script->fail_at = std::strtoull(value.c_str() + at + 1, nullptr, 10);
  script->fail_on = value[colon - 1] == '+';
  script->error = std::atoi(value.c_str() + colon + 1);
}

void set(Script* script, const std::string& key, const std::string& value) {
  const std::map<std::string, std::uint64_t Script::*> numbers{{"drop", &Script::drop},
                                                               {"zero", &Script::zero},
                                                               {"reversed", &Script::reversed},
                                                               {"shifted", &Script::shifted},
                                                               {"early", &Script::early},
                                                               {"unheard", &Script::unheard},
                                                               {"grown", &Script::grown},
                                                               {"twice", &Script::twice},
                                                               {"stray", &Script::stray},
                                                               {"empty", &Script::empty},
                                                               {"overlong", &Script::overlong},
                                                               {"shuffle", &Script::shuffle},
                                                               {"hide_nodes", &Script::hide_nodes},
                                                               {"late_ms", &Script::late_ms},
                                                               {"flush_ms", &Script::flush_ms},
                                                               {"lock", &Script::lock},
                                                               {"keep", &Script::keep},
                                                               {"incomplete", &Script::incomplete},
                                                               {"forbidden", &Script::forbidden},
                                                               {"busy", &Script::busy},
                                                               {"slow_ms", &Script::slow_ms},
                                                               {"first_ms", &Script::first_ms},
                                                               {"launch_ms", &Script::launch_ms},
                                                               {"pc_no_period", &Script::pc_no_period},
                                                               {"pc_dropped", &Script::pc_dropped},
                                                               {"pc_full", &Script::pc_full},
                                                               {"pc_nameless", &Script::pc_nameless},
                                                               {"pm_overflow", &Script::pm_overflow}};
  const std::uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
  if (key == "version") {
    script->version = static_cast<std::uint32_t>(number);
  } else if (key == "fail") {
    set_fault(script, value);
  } else if (key == "held") {
    script->held = value;
  } else if (key == "thief") {
    script->thief_after = number;
    script->thief_takes = std::strtoull(value.c_str() + value.find(':') + 1, nullptr, 10);
  } else if (numbers.count(key) != 0) {
    script->*numbers.at(key) = number;
  } else {
    std::fprintf(stderr, "FAKE_CUPTI: what is %s?\n", key.c_str());
    std::_Exit(95);
  }
}

}  // namespace

const Script& script() {
  static const Script* read = [] {
    auto* made = new Script;
    const char* text = std::getenv("FAKE_CUPTI");
    std::istringstream words(text != nullptr ? text : "");
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) std::_Exit(95);
      set(made, word.substr(0, equals), word.substr(equals + 1));
    }
    return made;
  }();
  return *read;
}

}  // namespace fake

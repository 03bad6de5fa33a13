#include <array>
#include <cctype>

#include "base/json.h"
#include "hw/environment.h"
#include "hw/redact.h"
#include "pictures/page_data.h"

namespace llmprof::pictures {
namespace {

using base::Json;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }

// "/home/ann/x" and "/Users/ann/x" become "~/x", "/root/x" too; "/homework" stays.
void replace_homes(std::string& text) {
  for (const std::string_view home : {"/home/", "/Users/", "/root"}) {
    for (std::size_t at = text.find(home); at != std::string::npos; at = text.find(home, at + 1)) {
      if (at > 0 && (is_name(text[at - 1]) || text[at - 1] == '/')) continue;
      std::size_t end = at + home.size();
      if (home.back() == '/') {
        const std::size_t name = end;
        while (end < text.size() && is_name(text[end])) ++end;
        if (end == name) continue;
      } else if (end < text.size() && is_name(text[end])) {
        continue;
      }
      text.replace(at, end - at, "~");
    }
  }
}

void replace_word(std::string& text, const std::string& word, std::string_view by) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at > 0 && is_name(text[at - 1])) || (end < text.size() && is_name(text[end]))) continue;
    text.replace(at, word.size(), by);
    at += by.size() - 1;
  }
}

class Redactor {
 public:
  explicit Redactor(const Privacy& privacy) : privacy_(privacy) {}

  // `secrets`: below a key whose texts may hold secrets.
  void visit(Json& value, bool secrets) {
    if (value.is_string()) return clean(value.get_ref<std::string&>(), secrets);
    if (value.is_array()) {
      for (Json& item : value) visit(item, secrets);
      return;
    }
    if (!value.is_object()) return;
    for (auto& [key, item] : value.items()) {
      if (key == "command" && item.is_array()) {
        clean_words(item);
      } else if (key == "variables" && item.is_object()) {
        for (auto& [name, text] : item.items())
          if (text.is_string()) text = hw::redact_variable(name, text.get_ref<std::string&>());
      }
      visit(item, secrets || key == "arguments" || key == "environment" || key == "notes" || key == "losses" ||
                      key == "command");
    }
  }

 private:
  static void clean_words(Json& words) {
    std::vector<std::string> texts;
    for (const Json& word : words) texts.push_back(word.is_string() ? word.get<std::string>() : "");
    texts = hw::redact(texts);
    for (std::size_t i = 0; i < words.size() && i < texts.size(); ++i)
      if (words[i].is_string()) words[i] = texts[i];
  }
  void clean(std::string& text, bool secrets) const {
    if (secrets) text = hw::redact_text(text);
    replace_homes(text);
    if (privacy_.keep_hosts) return;
    for (const std::string& host : privacy_.hosts) replace_word(text, host, "(host)");
  }
  const Privacy& privacy_;
};

}  // namespace

Result<Privacy> privacy_of(const trace::Run& run) {
  Privacy privacy;
  LLMPROF_LET(const trace::ResultTable hosts, run.query("SELECT DISTINCT host FROM process WHERE host IS NOT NULL"));
  for (const auto& row : hosts.rows) {
    const std::string& name = row[0].text;
    // A name that is a common word would take that word out of every text.
    if (name.size() > 3 && name != "localhost") privacy.hosts.push_back(name);
  }
  return privacy;
}

void redact(Json& data, const Privacy& privacy) { Redactor(privacy).visit(data, false); }

}  // namespace llmprof::pictures

#pragma once
// Words as a POSIX shell reads them back.

#include <string>
#include <string_view>
#include <vector>

namespace llmprof::advise {

std::string shell_word(std::string_view word);
// The same, but '*' stays a pattern: "a b/*.log" is 'a b/'*.log.
std::string shell_pattern(std::string_view word);
std::string shell_words(const std::vector<std::string>& words);
// "NAME=value" with the value quoted.
std::string shell_assignment(std::string_view assignment);

}  // namespace llmprof::advise

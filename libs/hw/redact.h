#pragma once
// Secrets out of text that goes into a run: command lines and the values of variables. Errs on the side of "***".

#include <string>
#include <string_view>

namespace llmprof::hw {

// Is `name` (an option, a variable, a header, a JSON key) the name of a secret? "--api-key", "HF_TOKEN",
// "Authorization"; not "--max-new-tokens", "TOKENIZERS_PARALLELISM".
bool names_secret(std::string_view name);

// Free text: name=value and name: value of secret names, "--name value", passwords in URLs, strings that look like the
// tokens of well-known services.
std::string redact_text(std::string_view text);

// The value of a variable.
std::string redact_variable(std::string_view name, std::string_view value);

}  // namespace llmprof::hw

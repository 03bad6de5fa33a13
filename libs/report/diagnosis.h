#pragma once
// What holds the model back, for the terminal (in short, or in full with all evidence) and as JSON.

#include <string>

#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

// The headline, the first findings (Page::findings, or five) in a few lines each, and what else was looked for. ""
// without a diagnosis.
std::string diagnosis_section(const Page& page, const Style& style);

// The same with everything: evidence, advice, the rows behind each number, and the outcome of every rule.
std::string full_diagnosis(const Page& page, const Style& style);

// One finding in full, as full_diagnosis shows it.
std::string full_finding(const Page& page, const analyze::Finding& finding, const Style& style);

// "saves up to 1.03 ms of 2.06 ms per token (50.0 % of decode, 31.2 % of the run)"; "" where nothing is to be gained.
std::string gain_text(const Page& page, const analyze::Finding& finding);
// "decode.mbu 28.5 % of 4.80 TB/s, spec (measured)"; without a value "decode.mbu unknown: no peak".
std::string evidence_text(const analyze::Evidence& evidence);
std::string_view severity_word(const analyze::Finding& finding);  // "HIGH", "medium", "low", "note", "open"

// "" all stages; else findings of that stage and of the whole run.
base::Json diagnosis_json(const analyze::Diagnosis& diagnosis, const std::string& stage = "");

}  // namespace llmprof::report

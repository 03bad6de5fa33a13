#include "importers/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/regular_file.h"
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

using namespace std::string_view_literals;

// Files that llmprof does not read, by their first bytes or by the end of their name, with what makes a file that it
// does.
struct NotRead {
  std::string_view begins, ends, name, next_step;
};
constexpr NotRead kNotRead[] = {
    {"", ".qdstrm", "an unfinished Nsight Systems recording",
     "make a report of it (QdstrmImporter -i FILE.qdstrm), then nsys export -t sqlite FILE.nsys-rep, and import "
     "FILE.sqlite"},
    {"", ".pftrace", "a Perfetto trace (protobuf)",
     "write it as JSON: traceconv json FILE.pftrace FILE.json, and import that"},
    {"", ".perfetto-trace", "a Perfetto trace (protobuf)",
     "write it as JSON: traceconv json FILE.perfetto-trace FILE.json, and import that"},
    {"", ".xplane.pb", "an XLA profile (protobuf)", "import the .trace.json.gz that stands beside it"},
    {"", ".pb.gz", "a pprof profile (protobuf)", "llmprof writes these, but reads none: import what it was made from"},
    {"", ".pb", "a protobuf file", "llmprof reads none: import what it was made from"},
    {"PK\x03\x04"sv, "", "a zip archive", "unpack it, and import the profile that is in it"},
    {"\xfd"
     "7zXZ"sv,
     "", "xz data", "unpack it: xz -d FILE"},
    {"BZh"sv, "", "bzip2 data", "unpack it: bzip2 -d FILE"},
};

std::string accepted() {
  std::string list = "llmprof reads";
  for (const Importer* importer : importers())
    list += fmt::format("{} {}", importer == importers().front() ? "" : ",", importer->name);
  return list + " (llmprof import --formats); --as FORMAT says which one it is";
}

Error not_recognised(const Input& input, std::string_view head) {
  for (const NotRead& known : kNotRead) {
    const bool begins = !known.begins.empty() && head.starts_with(known.begins);
    const bool ends = !known.ends.empty() && std::string_view(input.name()).ends_with(known.ends);
    if (begins || ends)
      return {ErrorCode::kUnsupported, fmt::format("byte 0: this is {}", known.name), std::string(known.next_step)};
  }
  const std::string_view found = base::recognise(head);
  return {ErrorCode::kUnsupported,
          found.empty() ? "byte 0: no format that llmprof knows"
                        : fmt::format("byte 0: this is {}, and no profile that llmprof knows", found),
          accepted()};
}

std::string words_of(const InputRemark& remark) {
  return remark.where.empty() ? remark.what : fmt::format("{}: {}", remark.where, remark.what);
}

}  // namespace

Result<std::size_t> choose_importer(Input& input, const std::string& format) {
  LLMPROF_LET(const std::string_view head, input.head());
  const auto all = importers();
  if (head.empty()) {
    const auto remarks = input.remarks();
    return Error{ErrorCode::kCorruptInput, remarks.empty() ? "byte 0: the file is empty" : words_of(remarks[0]),
                 input.file_bytes() == 0 ? "did the program that was to write it end in order?" : ""};
  }
  const Importer* importer = format.empty() ? sniff(head) : find_importer(format);
  if (importer == nullptr && format.empty()) return not_recognised(input, head);
  if (importer == nullptr) return Error{ErrorCode::kUsage, "no format is called " + format, accepted()};
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), importer) - all.begin());
}

void read_file(Input& input, const std::string& format, FrameSink& sink, const std::function<bool()>& go) {
  const auto place = choose_importer(input, format);
  if (!place) return sink.say_error(place.error());
  sink.say_format(*place);
  if (!go()) return;
  auto parsed = importers()[*place]->parse(input, sink);
  const auto remarks = input.remarks();
  if (!parsed) {
    for (const InputRemark& remark : remarks) parsed.error().message += fmt::format(" ({})", words_of(remark));
    return sink.say_error(parsed.error());
  }
  if (input.refused()) return sink.say_error(*input.refused());
  for (const InputRemark& remark : remarks) sink.lose(remark.loss, 1, remark.what, remark.where);
  sink.flush();
  sink.say_done();
}

}  // namespace llmprof::importers

// Prints a capture log: its bytes, and what they say. For docs/format/wire.md and for looking at a log by hand.

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "wire/decode.h"

using namespace llmprof;

namespace {

void print_hex(const std::uint8_t* bytes, std::size_t size, std::uint64_t offset) {
  for (std::size_t i = 0; i < size; i += 16) {
    std::printf("%06" PRIx64 " ", offset + i);
    for (std::size_t j = i; j < i + 16 && j < size; ++j) std::printf(" %02x", bytes[j]);
    std::printf("\n");
  }
}

void print_section(const wire::Section& section, const std::uint8_t* file, std::vector<wire::Record>* records) {
  std::printf("  at %06zx: kind %" PRIu64 " thread %u count %u bytes %zu\n",
              static_cast<std::size_t>(section.body.data - file), section.kind, section.thread, section.count,
              section.body.size);
  wire::StringReader strings(section);
  wire::StringDefinition definition;
  while (section.kind == 0 && strings.next(&definition)) {
    std::printf("    %u = %.*s\n", definition.id, static_cast<int>(definition.length), definition.text);
  }
  if (section.kind == 0 || !wire::decode_records(section, records->data())) return;
  const wire::FieldList list = wire::fields_of(section.kind);
  for (std::uint32_t i = 0; i < section.count; ++i) {
    std::printf("   ");
    for (std::size_t f = 0; f < list.count; ++f)
      std::printf(" %" PRIu64, wire::load_field((*records)[i], list.fields[f]));
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  std::ifstream stream(argv[1], std::ios::binary);
  const std::vector<char> content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const wire::Bytes file{reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
  const bool hex = argc > 2;
  wire::FileHeader header;
  std::vector<wire::Record> records(wire::kMaxSectionRecords);
  std::printf("header status %d\n", static_cast<int>(wire::read_file_header(file, &header)));
  if (hex && file.size >= sizeof(header)) print_hex(file.data, sizeof(header), 0);
  wire::BlockReader blocks(file, sizeof(header));
  for (wire::Step step = blocks.next(); step.kind != wire::StepKind::kEnd; step = blocks.next()) {
    std::printf("step %d at %" PRIu64 ": %" PRIu64 " bytes, block %u, %u records, %u missing before\n",
                static_cast<int>(step.kind), step.offset, step.bytes, step.block.sequence, step.block.records,
                step.missing_blocks);
    if (hex) print_hex(file.data + step.offset, step.bytes, step.offset);
    if (step.kind != wire::StepKind::kBlock) continue;
    wire::SectionReader sections(step.block);
    wire::Section section;
    while (sections.next(&section)) print_section(section, file.data, &records);
  }
}

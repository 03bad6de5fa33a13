#include "base/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/strings.h"

namespace llmprof::base {
namespace {

bool is_bidi_control(std::string_view sequence) {
  // U+200B..U+200F, U+202A..U+202E, U+2066..U+2069
  if (sequence.size() != 3 || sequence[0] != '\xE2') return false;
  const auto second = static_cast<unsigned char>(sequence[1]);
  const auto third = static_cast<unsigned char>(sequence[2]);
  return (second == 0x80 && ((third >= 0x8B && third <= 0x8F) || (third >= 0xAA && third <= 0xAE))) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string shorten(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  const std::size_t head = (width - 1) / 2;
  const std::size_t tail = width - 1 - head;
  const std::size_t total = display_width(text);
  std::string out;
  std::size_t column = 0;
  bool gap = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_bytes(text.substr(i)));
    if (column < head || column >= total - tail) {
      out.append(text.substr(i, length));
    } else if (!gap) {
      out += "…";
      gap = true;
    }
    ++column;
    i += length;
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_bytes(text.substr(i));
    const std::string_view sequence = text.substr(i, std::max<std::size_t>(1, length));
    const auto lead = static_cast<unsigned char>(sequence[0]);
    if (length == 0 || lead < 0x20 || lead == 0x7F || is_bidi_control(sequence)) {
      for (const char c : sequence) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.append(sequence);
    }
    i += sequence.size();
  }
  return out;
}

void TextTable::add(std::vector<std::string> cells) {
  LLMPROF_ASSERT(cells.size() == columns_.size());
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kReadable = 16;  // an elastic cell with less says too little: the table rather continues below
constexpr std::size_t kLeast = 8;      // where even two columns do not fit

}  // namespace

std::size_t TextTable::natural_width(std::size_t column) const {
  std::size_t widest = display_width(columns_[column].title);
  for (const auto& row : rows_) widest = std::max(widest, display_width(row[column]));
  return widest;
}

std::vector<std::vector<std::size_t>> TextTable::blocks(std::size_t width, std::size_t indent) const {
  std::vector<std::size_t> natural, least;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    natural.push_back(natural_width(c));
    least.push_back(columns_[c].elastic ? std::min(natural[c], kReadable) : natural[c]);
  }
  const auto total = [&](const std::vector<std::size_t>& shown, const std::vector<std::size_t>& widths) {
    std::size_t sum = indent;
    for (const std::size_t c : shown) sum += widths[c] + kGap;
    return sum - (shown.empty() ? 0 : kGap);
  };
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < columns_.size(); ++c) shown.push_back(c);
  for (std::size_t i = shown.size(); i-- > 0 && total(shown, natural) > width;) {
    if (columns_[shown[i]].optional) shown.erase(shown.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<std::vector<std::size_t>> out;
  std::vector<std::size_t> block;
  for (const std::size_t c : shown) {
    block.push_back(c);
    if (block.size() <= 2 || total(block, least) <= width) continue;
    block.pop_back();
    out.push_back(std::move(block));
    block = {shown.front(), c};
  }
  out.push_back(std::move(block));
  return out;
}

std::string TextTable::render_block(const std::vector<std::size_t>& shown, std::size_t width,
                                    std::size_t indent) const {
  std::vector<std::size_t> widths(columns_.size());
  std::size_t total = indent;
  for (const std::size_t c : shown) total += (widths[c] = natural_width(c)) + (c != shown.front() ? kGap : 0);
  for (std::size_t i = 0; i < shown.size() && total > width; ++i) {
    const std::size_t c = shown[i];
    if (!columns_[c].elastic) continue;
    const std::size_t excess = std::min(total - width, widths[c] > kLeast ? widths[c] - kLeast : 0);
    widths[c] -= excess;
    total -= excess;
  }
  const auto line = [&](const auto& cell_of) {
    std::string text(indent, ' ');
    for (const std::size_t c : shown) {
      const std::string cell = shorten(cell_of(c), widths[c]);
      const std::string padding(widths[c] - display_width(cell), ' ');
      if (c != shown.front()) text.append(kGap, ' ');
      text += columns_[c].align == Align::kRight ? padding + cell : cell + padding;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return shorten(text, width) + "\n";
  };
  std::string out = line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) out += line([&](std::size_t c) -> const std::string& { return row[c]; });
  return out;
}

std::string TextTable::render(std::size_t width, std::size_t indent) const {
  std::string out;
  for (const auto& block : blocks(width, indent)) out += (out.empty() ? "" : "\n") + render_block(block, width, indent);
  return out;
}

}  // namespace llmprof::base

#!/usr/bin/env python3
"""Writes unicode_tables.inc: the classes and compositions of Unicode that `tokenizers` has built in, so that texts are
split and composed as it does. Classes are those of Unicode 16 (its regular expressions), compositions those of Unicode 9
(its NFC): of later ones, which this asks `tokenizers` for, nothing is taken.
Needs: pip install tokenizers==0.23.3 unicodedata2==16.0.0"""
import pathlib

import unicodedata2 as unicode
from tokenizers import normalizers

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()
LAST = 0x110000


def rows(values):
    line = ""
    for value in values:
        if len(line) + len(value) > 118:
            yield line
            line = ""
        line += value + ","
    yield line


def table(kind, name, values):
    yield f"constexpr {kind} {name}[] = {{"
    yield from rows(values)
    yield "};"


def runs(value_of):
    """(first code point, value) wherever the value changes."""
    before = None
    for code in range(LAST):
        value = value_of(code)
        if value != before:
            yield code, value
        before = value


def main():
    nfc = normalizers.NFC()

    def known_class(code):
        """Of combination: whether tokenizers moves this mark before one of class 240, or behind one of class 1."""
        own = unicode.combining(chr(code))
        if not own:
            return 0
        text = "a" + ("\u0345" + chr(code) if own < 240 else chr(code) + "\u0334")
        return own if nfc.normalize_str(text) != text else 0

    def pair(code):
        parts = unicode.decomposition(chr(code))
        if not parts or parts[0] == "<":
            return None
        codes = [int(part, 16) for part in parts.split()] + [0]
        known = nfc.normalize_str(unicode.normalize("NFD", chr(code))) == unicode.normalize("NFC", chr(code))
        composes = unicode.normalize("NFC", chr(code)) == chr(code)
        return (code, codes[0], codes[1], composes) if known else None

    scalars = [code for code in range(LAST) if not 0xD800 <= code < 0xE000 and not 0xAC00 <= code < 0xD7A4]
    pairs = [each for each in map(pair, scalars) if each]
    lines = ["// Written by make_unicode_tables.py. Each class begins at `code << 5 | category` and ends where the next begins;"
             " each", "// combining class at `code << 8 | class`. {code, first, second, whether the two compose to it again}."]
    lines += table("std::uint32_t", "kClasses",
                   (hex(code << 5 | value) for code, value in runs(lambda code: CATEGORIES.index(unicode.category(chr(code))))))
    lines += table("std::uint32_t", "kCombining", (hex(code << 8 | value) for code, value in runs(known_class)))
    lines += table("Composition", "kCompositions", (f"{{{a:#x},{b:#x},{c:#x},{int(d)}}}" for a, b, c, d in pairs))
    pathlib.Path(__file__).with_name("unicode_tables.inc").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

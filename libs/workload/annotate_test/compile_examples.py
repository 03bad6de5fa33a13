#!/usr/bin/env python3
"""Compiles and runs every C and C++ example of a manual page: ```c as C11, ```cpp as C++17 and C++20.

usage: compile_examples.py MANUAL.md INCLUDE_DIR CC CXX
"""
import pathlib
import re
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


def main() -> int:
    manual, include, cc, cxx = sys.argv[1:5]
    examples = re.findall(r"^```(c|cpp)\n(.*?)^```$", pathlib.Path(manual).read_text(), re.M | re.S)
    languages = {language for language, _ in examples}
    if languages != {"c", "cpp"}:
        print(f"{manual}: expected C and C++ examples, found {languages or 'none'}")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        for number, (language, text) in enumerate(examples):
            source = pathlib.Path(folder) / f"example{number}.{language}"
            source.write_text(text)
            compiler, standards = (cc, ["c11"]) if language == "c" else (cxx, ["c++17", "c++20"])
            for standard in standards:
                for define in [[], ["-DLLMPROF_NO_ANNOTATIONS"]]:
                    program = pathlib.Path(folder) / "program"
                    command = [compiler, f"-std={standard}", *WARNINGS, *define, f"-I{include}", str(source), "-o", str(program)]
                    subprocess.run(command, check=True)
                    subprocess.run([str(program)], check=True, timeout=30)
            print(f"example {number + 1}: {language}, {len(text.splitlines())} lines: fine as {', '.join(standards)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

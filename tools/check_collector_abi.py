#!/usr/bin/env python3
"""What an injected library may show and need: it lives in somebody else's process.

check_collector_abi.py LIBRARY (--exports A,B,… | --exports-from FILE.def) [--needed libc.so.6] [--max-glibc 2.35]
                       [--constructors 0]

Fails unless the library exports exactly these names, needs exactly these libraries, uses no newer glibc symbol, has so many
static constructors of its own, stays loaded (NODELETE), resolves at load (NOW), is RELRO and has no executable stack.
"""
import argparse
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    return {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines() if line.strip()}


def newest_glibc(library):
    versions = re.findall(r"@+GLIBC_(\d+)\.(\d+)", output("nm", "-D", "--undefined-only", library))
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


def check(arguments):
    library = arguments.library
    wanted = set(arguments.exports.split(",")) if arguments.exports else set()
    if arguments.exports_from:
        text = open(arguments.exports_from, encoding="utf-8").read()
        wanted |= set(re.findall(r"^LLMPROF_BLAS_(?:FUNCTION|GUARDED|CUDA)\((\w+),", text, re.M))
    found = exported(library)
    for name in sorted(wanted - found):
        yield f"does not export {name}"
    for name in sorted(found - wanted):
        yield f"exports {name}"
    dynamic = output("readelf", "-dW", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    if sorted(needed) != sorted(arguments.needed.split(",")):
        yield f"needs {needed}, should need {arguments.needed}"
    limit = tuple(int(part) for part in arguments.max_glibc.split("."))
    if newest_glibc(library) > limit:
        yield "needs glibc {}.{}, at most {} is allowed".format(*newest_glibc(library), arguments.max_glibc)
    for flag in ("NODELETE", "NOW"):
        if not re.search(rf"\(FLAGS_1\).*\b{flag}\b", dynamic):
            yield f"is not marked {flag}"
    for tag in ("RPATH", "RUNPATH", "TEXTREL"):
        if f"({tag})" in dynamic:
            yield f"has {tag}"
    segments = output("readelf", "-lW", library)
    if "GNU_RELRO" not in segments:
        yield "is not RELRO"
    if re.search(r"GNU_STACK.*RWE", segments):
        yield "has an executable stack"
    # One entry is the compiler's own (frame_dummy); the others are constructors of ours.
    sections = re.search(r"\.init_array\s+INIT_ARRAY\s+\w+\s+\w+\s+(\w+)", output("readelf", "-SW", library))
    constructors = int(sections.group(1), 16) // 8 - 1 if sections else 0
    if constructors != arguments.constructors:
        yield f"has {constructors} static constructors, should have {arguments.constructors}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--exports")
    parser.add_argument("--exports-from")
    parser.add_argument("--needed", default="libc.so.6")
    parser.add_argument("--max-glibc", default="2.35")
    parser.add_argument("--constructors", type=int, default=0)
    arguments = parser.parse_args()
    problems = list(check(arguments))
    for problem in problems:
        print(f"{arguments.library}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

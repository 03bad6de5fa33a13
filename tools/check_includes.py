#!/usr/bin/env python3
"""Holds #includes to the layers declared in CMake: libs/<x> may include only <x> and the libraries in its DEPS (and
what those depend on). A shared include root would let the compiler accept anything else."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
libs = {p.name for p in (root / "libs").iterdir() if p.is_dir()}


def declared_deps(name):
    text = (root / "libs" / name / "CMakeLists.txt").read_text()
    found = re.search(r"llmprof_add_library\(\s*" + name + r"\b([^)]*)\)", text)
    if found and "DEPS" in found.group(1):
        return set(found.group(1).split("DEPS", 1)[1].split()) & libs
    return set()


direct = {name: declared_deps(name) for name in libs}
direct["collect"] |= {"wire"}   # islands build programs and modules, not a library of their own
direct["workload"] |= {"base", "serving"}


def closure(name):
    seen, todo = set(), [name]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += direct[current]
    return seen


problems = []
for name in sorted(libs):
    allowed = closure(name)
    for file in sorted((root / "libs" / name).rglob("*")):
        if file.suffix not in (".h", ".cpp", ".c"):
            continue
        test = file.stem.endswith("_test") or "test" in file.stem.split("_")
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"([^"/]+)/', line)
            if found and found.group(1) in libs and found.group(1) not in allowed and not test:
                problems.append(f"{file.relative_to(root)}:{number}: {name} may not include {found.group(1)}/")
            if re.match(r"\s*#\s*include\s+<(cuda|cupti|nvml|nvtx3)", line) and not test and name != "collect" and not re.search("libs/(bench|workload)/cuda/", file.as_posix()):
                problems.append(f"{file.relative_to(root)}:{number}: CUDA headers may not be included here")

for line in problems:
    print(line)
print(f"check_includes: {len(libs)} libraries, {len(problems)} problems")
sys.exit(1 if problems else 0)

#!/usr/bin/env python3
"""Every bad input of tests/bad through the real command line. `--update` writes what was seen (tests/bad/README.md)."""
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BAD = pathlib.Path(__file__).resolve().parents[1] / "bad"
BIN = pathlib.Path(os.environ.get("LLMPROF_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"))
LLMPROF = str(BIN / "llmprof")
FORMATS = ""  # set by main()


def all_formats():
    """The names of all formats, as errors list them: a case must not change when a format is added."""
    done = subprocess.run([LLMPROF, "import", "--formats", "--json"], capture_output=True, text=True, check=True)
    return ", ".join(form["name"] for form in json.loads(done.stdout)["formats"])


def all_cases():
    """(format, name, content) of every case, as README.md describes content."""
    for maker in sorted(BAD.glob("make_*.py")):
        spec = importlib.util.spec_from_file_location(maker.stem, maker)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, content in module.cases().items():
            yield maker.stem.removeprefix("make_"), name, content
    for file in sorted(BAD.glob("*/*")):
        if file.suffix != ".expected" and file.is_file() and file.with_name(file.name + ".expected").parent != BAD:
            yield file.parent.name, file.name, file.read_bytes()


def prepare(folder, name, content):
    """The words after `llmprof import`, or None to skip."""
    path, words = folder / name, []
    if callable(content):
        path = content(path)
        return None if path is None else [str(path) if not str(path).startswith(str(folder)) else path.name]
    if isinstance(content, tuple):
        content, words = content
    path.write_bytes(content)
    return [name, *words]


def seen(form, name, content):
    """What the case does, as .expected holds it; None if it was skipped; and what is wrong with it in any case."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="llmprof-bad-"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LLMPROF_")}
    environment["LLMPROF_CACHE_DIR"] = str(folder / "cache")
    try:
        words = prepare(folder, name, content)
        if words is None:
            return None, ""
        done = subprocess.run([LLMPROF, "import", *words, "-o", "out"], cwd=folder, env=environment,
                              capture_output=True, timeout=600)
        text = done.stderr.decode("utf-8", "replace")
        text = re.sub(r" in [0-9.]+ (ns|us|µs|ms|s|min)\n", " in TIME\n", text).replace(str(folder) + "/", "")
        text = text.replace(f"llmprof reads {FORMATS} (", "llmprof reads FORMATS (")
        wrong = ""
        if done.returncode not in (0, 1, 2, 3):
            wrong = f"exit status {done.returncode}"
        elif done.returncode in (0, 3):
            check = subprocess.run([LLMPROF, "check", "out", "--json"], cwd=folder, env=environment,
                                   capture_output=True, text=True, timeout=600)
            if check.returncode != 0 or json.loads(check.stdout)["findings"]:
                wrong = f"the run it makes: {check.stdout}{check.stderr}"
        elif left := [p.name for p in folder.iterdir() if p.name.startswith((".out", "out"))]:
            wrong = f"it leaves {left}"
        return f"exit {done.returncode}\n{text}", wrong
    except subprocess.TimeoutExpired:
        return "", "it does not end"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    global FORMATS
    FORMATS = all_formats()
    update = "--update" in sys.argv
    only = [word for word in sys.argv[1:] if not word.startswith("-")]
    cases = [case for case in all_cases() if not only or any(word in f"{case[0]}/{case[1]}" for word in only)]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (form, name, _), (text, wrong) in zip(cases, pool.map(lambda case: seen(*case), cases)):
            if text is None:
                continue
            golden = BAD / form / f"{name}.expected"
            if update and not wrong:
                golden.parent.mkdir(exist_ok=True)
                golden.write_text(text)
            expected = golden.read_text() if golden.exists() else "(there is no such file; --update writes it)\n"
            if wrong or text != expected:
                failures += 1
                print(f"---- {form}/{name}: {wrong or 'not as expected'}\nexpected:\n{expected}seen:\n{text}")
    print(f"{len(cases)} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""The environment of the ecosystem tests: a venv with exactly the packages of requirements.txt, made once and kept until
the pins or the Python change. Downloads are kept by pip's own cache."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PINS = HERE / "requirements.txt"
SIZES = "360 MB of downloads where pip has none cached, 1.4 GB on disk"  # with torch's build for CPUs
PROBE = "mdurl"  # the smallest of the pins: whether packages can be had at all
NEED_TORCH = ("torch", "transformers", "accelerate")


class Unreachable(Exception):
    """No package index can be reached: nothing is wrong with llmprof, the tests are skipped."""


class Broken(Exception):
    """The venv could not be made for another reason."""


class Venv:
    def __init__(self, folder, packages):
        self.python = str(folder / "bin/python")
        self.packages = packages

    def has(self, package):
        return package in self.packages


def pins():
    lines = [line.split("#")[0].strip() for line in PINS.read_text().splitlines()]
    return dict(line.split("==") for line in lines if line)


def pip(python, *words, timeout=1200):
    return subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "--no-input", *words], capture_output=True,
                          text=True, timeout=timeout)


def last_lines(done):
    lines = (done.stdout + done.stderr).strip().splitlines()
    return " | ".join([line for line in lines if line.startswith("ERROR")][-3:] or lines[-3:])


def is_unreachable(text):
    """pip says the same of a package that is not there and of an index that does not answer; but it lists the versions
    of an index that it has read."""
    return bool(re.search(r"from versions: none|NewConnectionError|timed out|ProxyError|Connection reset", text))


def require_index(python, wanted):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            done = pip(python, "download", "--quiet", "--no-deps", "--retries", "0", "--timeout", "10", "-d", scratch,
                       f"{PROBE}=={wanted[PROBE]}", timeout=180)
        except subprocess.TimeoutExpired:
            raise Unreachable("pip had no answer within 180 s") from None
    if done.returncode != 0:
        raise (Unreachable if is_unreachable(done.stdout + done.stderr) else Broken)(last_lines(done))


def without_cuda(python, wanted):
    """The pins less what needs torch, where pip would take a torch that brings the libraries of CUDA: several GB."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.json"
        done = pip(python, "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--report", str(report),
                   f"torch=={wanted['torch']}")
        if done.returncode != 0:
            raise Broken(last_lines(done))
        metadata = json.loads(report.read_text())["install"][0]["metadata"]
    if any(re.match(r"nvidia|cuda|triton", name) for name in metadata.get("requires_dist") or []):
        return {name: version for name, version in wanted.items() if name not in NEED_TORCH}
    return wanted


def stamp():
    return hashlib.sha256(b"\0".join((PINS.read_bytes(), sys.version.encode(), sys.base_prefix.encode()))).hexdigest()


def make(folder, say):
    """The venv in `folder`, made if what is there is not the one wanted; raises Unreachable or Broken."""
    complete = folder / "complete.json"
    if complete.exists():
        kept = json.loads(complete.read_text())
        if kept["stamp"] == stamp():
            say(f"ecosystem: the venv of these pins is there, {len(kept['packages'])} packages")
            return Venv(folder, kept["packages"])
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True)
    if made.returncode != 0:
        raise Broken(last_lines(made))
    python, wanted = str(folder / "bin/python"), pins()  # of pip only the venv's is sure to be there
    try:
        require_index(python, wanted)
    except Unreachable:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    wanted = without_cuda(python, wanted)
    say(f"ecosystem: installing {len(wanted)} pinned packages into a venv ({SIZES})")
    # Not compiled: the programs import a small part, and Python keeps that compiled by itself.
    done = pip(python, "install", "--quiet", "--no-deps", "--no-compile",
               *(f"{name}=={version}" for name, version in wanted.items()))
    if done.returncode != 0:
        raise Broken(last_lines(done))
    if len(wanted) == len(pins()):
        agreed = pip(python, "check")
        if agreed.returncode != 0:
            raise Broken("the pins do not fit together: " + last_lines(agreed))
    complete.write_text(json.dumps({"stamp": stamp(), "packages": wanted}))
    size = sum(entry.lstat().st_size for entry in folder.rglob("*"))
    say(f"ecosystem: installed in {time.monotonic() - began:.0f} s, {size / 1e9:.2f} GB")
    return Venv(folder, wanted)


def environment():
    """For the programs: nothing of llmprof's but its cache folder, two threads that do not spin while they wait, no hub,
    no GPU."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("LLMPROF_", "PYTHON", "OMP_", "MKL_", "OPENBLAS_", "XLA_", "JAX_"))}
    kept.pop("LD_PRELOAD", None)
    kept.update(OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2", MKL_NUM_THREADS="2", OMP_WAIT_POLICY="passive",
                HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", TOKENIZERS_PARALLELISM="false")
    return kept

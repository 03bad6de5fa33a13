"""Hooks in serving engines: their steps name the requests that they work for, without changes to the program. An engine has a
file here; its hooks are asked for by `record --requests`, or by LLMPROF_REQUESTS=1 where the package is installed and the
engine loads plugins. They are dormant when nobody asks or listens, and turn themselves off when anything is not as expected:
the engine must never notice. The manual is docs/manual/python.md.
"""
import functools
import importlib
import json
import os
import sys
import threading

from .. import _attach, _imports, _nvtx

QUEUED, SCHEDULED, MEMBER, PREEMPTED, OUTPUT, FINISHED, PADDED, BLOCKS = range(1, 9)  # as request() of the package
STOPPED, LENGTH, ABORTED, ERROR = range(4)  # how a request finished
_MOST_KEPT = 8192  # of requests, by thread
_engines = {}


def arm(package):
    """Hooks an engine of which the package has been imported. Once, even if there are two copies of us: record's, and one that
    is installed."""
    if os.environ.get("LLMPROF_REQUESTS", "0") == "0" or _attach() is None:
        return
    own = vars(sys.modules[package])
    if own.setdefault("_llmprof_hooks", __name__) == __name__ and package not in _engines:
        hooks = importlib.import_module(f"{__name__}.{package}")
        _engines[package] = engine = Engine(package, hooks.TRIED)
        for name, hook in hooks.TARGETS.items():
            _imports.when_imported(name, functools.partial(engine.begin, hook))


class _Here(threading.local):
    """Of a thread."""

    def __init__(self):
        self.marks = {}     # id of a request as the engine has it -> its event, and the function that makes the mark
        self.steps = {}     # stage -> its range, and the function that opens it
        self.open = False   # a step is
        self.padded = False  # the open step has said so


class Engine:
    """What hooks use. `tried`: the oldest and newest version that the hooks were tried with, or read in the source."""

    def __init__(self, package, tried):
        self.package, self.tried, self.clean = package, tried, str  # clean: the id as clients know it
        self.version = str(getattr(sys.modules.get(package), "__version__", ""))
        self.on, self.owners, self._introduced, self._declared = True, [], False, False
        self._tool, self._here = _attach(), _Here()

    # Getting in, and out again.
    def begin(self, hook, module):
        """Runs a function that places hooks into a module."""
        try:
            if self.release() < self.tried[0]:
                raise RuntimeError(f"older than {'.'.join(map(str, self.tried[0]))}, of which the hooks know nothing")
            hook(self, module)
        except Exception as error:  # noqa: BLE001
            self.give_up(error)

    def release(self):
        if not self.version:  # some packages say it late
            self.version = str(getattr(sys.modules.get(self.package), "__version__", ""))
        parts = self.version.split(".")[:2]
        return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in parts)

    def give_up(self, error):
        """For good, with a line to the user and one in the run."""
        if not self.on:
            return
        self.on = False
        why = f"{type(error).__name__}: {error}"
        self.close_step()
        self._note(f"hooks turned off, requests are not whole: {why}")
        sys.stderr.write(f"llmprof: requests of {self.package} {self.version} are not recorded any more: {why}\n")

    def _introduce(self):
        """With the first mark: a process that only imports an engine says nothing."""
        self._introduced = True
        newer = self.release() > self.tried[1]
        self._note(f"hooks in {', '.join(self.owners)}" +
                   (f"; newer than {'.'.join(map(str, self.tried[1]))}, the last that was tried" if newer else ""))

    def _note(self, text):
        self._tool.mark(_nvtx.NOTE, f"requests: {self.package} {self.version}: {text}")

    def guarded(self, body):
        """A hook that cannot raise, and does nothing once one of them has failed."""
        def run(*arguments, **named):
            if self.on:
                try:
                    body(*arguments, **named)
                except Exception as error:  # noqa: BLE001
                    self.give_up(error)
        return run

    def wrap(self, owner, name, before=None, after=None, step=False):
        """before(*arguments) runs before owner.name, after(result, *arguments) behind it. Of a step: an exception ends it."""
        original = getattr(owner, name)
        if getattr(original, "_llmprof_hook", False):  # a class that stands in two modules
            return
        before, after = before and self.guarded(before), after and self.guarded(after)

        @functools.wraps(original)
        def instead(*arguments, **named):
            if before is not None:
                before(*arguments, **named)
            try:
                result = original(*arguments, **named)
            except BaseException:
                if step:
                    self.close_step()
                raise
            if after is not None:
                after(result, *arguments, **named)
            return result
        instead._llmprof_hook = True
        setattr(owner, name, instead)
        name = getattr(owner, "__name__", type(owner).__name__).rpartition(".")[2]
        if name not in self.owners:
            self.owners.append(name)

    # Steps and requests.
    def open_step(self, members):
        """A step of this thread, of (id, new tokens, length afterwards, whether they are of its prompt)."""
        here = self._here
        if here.open:
            self.close_step()
        prompts = sum(1 for member in members if member[3])
        stage = "decode" if prompts == 0 else "prefill" if prompts == len(members) else "mixed"
        known = here.steps.get(stage)
        if known is None:
            known = here.steps[stage] = self._tool.own_range(_nvtx.STEP, stage)
        place, enter = known
        place.event.payload = min(len(members), 0xFFFF)  # their tokens are told one by one
        place.event.payload_type = 1
        enter()
        here.open, here.padded = True, False
        for name, tokens, context, _ in members:
            self.mark(name, MEMBER, tokens, context)

    def declare(self, config, dtype):
        """Which model runs, once: from it follow the FLOPs and bytes of steps."""
        if not self._declared and hasattr(config, "to_dict"):
            self._declared = True
            fields = dict(config.to_dict(), dtype=str(dtype).rpartition(".")[2])
            self._tool.mark(_nvtx.MODEL, json.dumps(fields, default=str))

    def padded(self, rows):
        """Rows of the open step's products; of several calls the first one counts: drafts come behind."""
        here = self._here
        if here.open and not here.padded and rows:
            here.padded = True
            self.mark("", PADDED, rows)

    def close_step(self):
        if self._here.open:
            self._here.open = False
            self._tool.leave()

    def queued(self, name, prompt, most):
        self.mark(name, QUEUED, prompt, min(most or 0, 0xFFFFFFF))  # "no limit" is a large number

    def mark(self, name, event, tokens=0, context=0):
        """The numbers fit their 24 and 28 bits."""
        marks = self._here.marks
        known = marks.get(name)
        if known is None:
            if not self._introduced:
                self._introduce()
            if len(marks) >= _MOST_KEPT:
                marks.clear()
            known = marks[name] = self._tool.own_mark(_nvtx.REQUEST, self.clean(name))
        place, make = known
        place.payload = event | tokens << 8 | context << 32
        make()

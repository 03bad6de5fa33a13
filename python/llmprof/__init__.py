"""Says which stage, step and module of a model is running, to llmprof or to any other NVTX tool.

    import llmprof

    with llmprof.stage("decode"):
        for context in range(513, 641):
            with llmprof.step("decode", batch=1, tokens=1, context=context):
                ...

    @llmprof.range("tokenize")
    def tokenize(text): ...

    llmprof.instrument(model)  # every module of a PyTorch model: layers.3.mlp.up_proj

Nobody listening: a call and an attribute each, nothing is loaded. The manual is docs/manual/python.md.
"""
import ctypes as _ctypes
import functools as _functools
import inspect as _inspect
import json as _json
import threading as _threading

from . import _nvtx
from ._modules import instrument

__all__ = ["instrument", "listening", "model", "module", "range", "request", "stage", "step", "step_member"]

_KINDS = {None: 0, "stage": _nvtx.STAGE, "step": _nvtx.STEP, "module": _nvtx.MODULE}
_UNKNOWN = object()
_tool = _UNKNOWN
_lock = _threading.Lock()


def _attach():
    """The tool, or None. Looked for once, at the first annotation."""
    global _tool
    if _tool is _UNKNOWN:
        with _lock:
            if _tool is _UNKNOWN:
                _tool = _nvtx.find_tool()
    return _tool


def listening():
    """Whether a tool listens: to skip work that only prepares an annotation."""
    return _attach() is not None


def _payload(batch, tokens, context):
    """batch in bits 0-15, tokens in 16-39, context in 40-63; 0: unknown; too large: the largest that fits."""
    def fit(value, bits):
        return min(max(int(value), 0), (1 << bits) - 1)
    return fit(batch, 16) | fit(tokens, 24) << 16 | fit(context, 24) << 40


class _Silence:
    """A range that nobody hears."""
    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __call__(self, function):
        return function


_SILENCE = _Silence()


class _Range:
    """A context manager and a decorator; may be used again, also while it is open."""
    __slots__ = ("_domain", "_event", "_address")

    def __init__(self, tool, category, name, payload):
        self._domain = tool.domain if category else None  # plain names belong to the default domain
        self._event = tool.event(self._domain, category, name, payload)
        self._address = _ctypes.addressof(self._event)

    def __enter__(self):
        _tool.push(self._domain, self._address)
        return self

    def __exit__(self, *_):
        _tool.pop(self._domain)

    def __call__(self, function):
        if _inspect.iscoroutinefunction(function) or _inspect.isgeneratorfunction(function) or \
                _inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__qualname__}: ranges nest within a thread; open one inside, around code that "
                            "does not await or yield")

        @_functools.wraps(function)
        def inside(*arguments, **named):
            with self:
                return function(*arguments, **named)
        return inside


def range(name, kind=None, *, batch=0, tokens=0, context=0):  # noqa: A001: the word of NVTX
    """A range of this thread. kind: "stage", "step", "module", or None: a plain name."""
    tool = _attach()
    if tool is None:
        return _SILENCE
    if kind not in _KINDS:
        raise ValueError(f"kind {kind!r}: not one of None, 'stage', 'step', 'module'")
    return _Range(tool, _KINDS[kind], str(name), _payload(batch, tokens, context))


def stage(name, *, batch=0, tokens=0, context=0):
    """A part of the run: prefill, decode, mixed, forward, backward, optimizer, load, warm-up, other. Holds steps."""
    return range(name, "stage", batch=batch, tokens=tokens, context=context)


def step(name, *, batch=0, tokens=0, context=0):
    """One pass over the model, with its sampling; its name is its stage. batch: sequences; tokens: new ones of each;
    context: length of each afterwards."""
    return range(name, "step", batch=batch, tokens=tokens, context=context)


def module(name):
    """A part of the model: "layers.3.mlp.up_proj"."""
    return range(name, "module")


def model(config):
    """Which model runs: its Hugging Face config, as an object, a dict or the text of config.json. Once, before the first
    step."""
    tool = _attach()
    if tool is None:
        return
    if hasattr(config, "to_dict"):
        config = config.to_dict()
    tool.mark(_nvtx.MODEL, config if isinstance(config, str) else _json.dumps(config, default=str))


_EVENTS = {"queued": 1, "scheduled": 2, "member": 3, "preempted": 4, "output": 5, "finished": 6, "padded": 7, "blocks": 8}


def request(id, event, tokens=0, context=0):  # noqa: A002
    """A moment of a request, by its id (best the X-Request-Id): queued (tokens of its prompt, most output tokens),
    scheduled (tokens found in the prefix cache), member (see step_member), preempted, output (tokens that are ready),
    finished (0 finished, 1 length, 2 aborted, 3 error; output tokens in all). Of the engine, with an empty id: padded (rows
    of the open step's products), blocks (of the KV cache: in use, all)."""
    tool = _attach()
    if tool is not None:
        tool.mark(_nvtx.REQUEST, str(id), _EVENTS[event] | min(max(int(tokens), 0), 0xFFFFFF) << 8
                  | min(max(int(context), 0), 0xFFFFFFF) << 32)


def step_member(id, tokens, context):  # noqa: A002
    """The request is part of the step open on this thread: its new tokens, its length afterwards."""
    request(id, "member", tokens, context)


def parallel(groups):
    """How the ranks of a job divide the model: "tp=2,pp=4,dp=2,ep=8" (tensor, pipeline, data, expert), in the order in
    which ranks are counted. Once, by every rank or one of them."""
    tool = _attach()
    if tool is not None:
        tool.mark(_nvtx.PARALLEL, str(groups))

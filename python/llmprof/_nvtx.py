"""A client of NVTX's injection interface, through ctypes: hears whether a tool listens (llmprof, Nsight Systems, …) and
hands it ranges. The same handshake as include/llmprof/annotate.h; needs no CUDA, no NVTX package and no compiler.

Functions of the tool are called with the GIL held: they take a tenth of a microsecond, giving it up would take longer.
"""
import ctypes
import functools
import os

STAGE, STEP, MODULE, MODEL, NOTE, PASS, PARALLEL, REQUEST = range(1, 9)  # categories of the domain "llmprof"
_CATEGORIES = {STAGE: b"stage", STEP: b"step", MODULE: b"module", MODEL: b"model", NOTE: b"note", PASS: b"pass",
               PARALLEL: b"parallel", REQUEST: b"request"}

_SLOTS = 16  # callback ids of the NVTX modules CORE and CORE2; 0 is none
_MODULE_SIZES = {1: 16, 2: 9, 3: 15, 4: 7, 5: 16, 6: 7}  # CORE, CUDA, OPENCL, CUDART, CORE2, SYNC
_CORE2 = 5
_MARK, _PUSH, _POP, _NAME_CATEGORY, _REGISTER, _CREATE_DOMAIN = 1, 4, 5, 8, 10, 12


class _Event(ctypes.Structure):
    """nvtxEventAttributes_v2"""
    _fields_ = [("version", ctypes.c_uint16), ("size", ctypes.c_uint16), ("category", ctypes.c_uint32),
                ("color_type", ctypes.c_int32), ("color", ctypes.c_uint32), ("payload_type", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("payload", ctypes.c_uint64), ("message_type", ctypes.c_int32),
                ("message", ctypes.c_void_p)]


class _RangeOfDomain(ctypes.Structure):
    _fields_ = [("domain", ctypes.c_void_p), ("event", _Event)]


class Quick:
    """llmprof's collector has functions that the interpreter can call without ctypes, in a sixth of the time: this makes
    them functions of Python. It hands the collector the little it needs of the interpreter's stable interface; an
    interpreter or a tool that has it not raises AttributeError."""

    class _Method(ctypes.Structure):
        """PyMethodDef"""
        _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                    ("doc", ctypes.c_char_p)]

    class _Table(ctypes.Structure):
        """llmprof_collector_table of libs/wire/collector_v1.h, as far as it is used"""
        _fields_ = [("size", ctypes.c_uint32), ("version", ctypes.c_uint32), ("others", ctypes.c_void_p * 11),
                    ("begin", ctypes.c_void_p), ("push", ctypes.c_void_p), ("pop", ctypes.c_void_p),
                    ("endings", ctypes.c_void_p * 2), ("mark", ctypes.c_void_p)]

    _NO_ARGUMENTS = 4  # METH_NOARGS

    def __init__(self, library):
        python = ctypes.pythonapi
        self._new = python.PyCFunction_NewEx
        self._new.restype, self._new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        ask = library.llmprof_collector_v1
        ask.restype, ask.argtypes = ctypes.POINTER(self._Table), []
        table = ask()
        if not table or table[0].version != 1 or table[0].size < ctypes.sizeof(self._Table):
            raise AttributeError("an older collector")
        begin = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object)(table[0].begin)
        begin(ctypes.cast(python.PyLong_AsVoidPtr, ctypes.c_void_p), ctypes.cast(python.Py_IncRef, ctypes.c_void_p), None)
        self._push, self._pop, self._mark = (
            self._Method(name, function, self._NO_ARGUMENTS, None)
            for name, function in ((b"enter", table[0].push), (b"leave", table[0].pop), (b"mark", table[0].mark)))

    def enter(self, place):
        return self._new(ctypes.addressof(self._push), ctypes.addressof(place), None)

    def mark(self, place):
        return self._new(ctypes.addressof(self._mark), ctypes.addressof(place), None)

    def leave(self, domain):
        return self._new(ctypes.addressof(self._pop), domain or 0, None)


class _Handshake:
    """What the tool is given to find the places for its functions. Stays alive as long as the process."""

    def __init__(self):
        self.functions = (ctypes.c_void_p * _SLOTS)()  # CORE2: what the tool wants called
        self.ignored = (ctypes.c_void_p * _SLOTS)()
        self.tables = [self._table(self.functions), self._table(self.ignored)]
        asks_table = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p),
                                      ctypes.POINTER(ctypes.c_uint))
        says_version = ctypes.CFUNCTYPE(None, ctypes.c_uint32)

        class Callbacks(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("module_table", asks_table)]

        class VersionInfo(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("version", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                        ("tool_version", says_version)]
        self.callbacks = Callbacks(ctypes.sizeof(Callbacks), asks_table(self._module_table))
        self.version = VersionInfo(ctypes.sizeof(VersionInfo), 3, 0, says_version(lambda version: None))
        self.export_table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(self._export_table)

    @staticmethod
    def _table(functions):
        """NVTX's shape: an array of pointers to function pointers, ended by a null pointer; the first is unused."""
        table = (ctypes.c_void_p * (_SLOTS + 1))()
        for i in range(1, _SLOTS):
            table[i] = ctypes.addressof(functions) + i * ctypes.sizeof(ctypes.c_void_p)
        return table

    def _module_table(self, module, table, size):
        if module not in _MODULE_SIZES:
            return 0
        if size:
            size[0] = _MODULE_SIZES[module]
        if table:
            table[0] = ctypes.addressof(self.tables[0 if module == _CORE2 else 1])
        return 1

    def _export_table(self, number):
        return {1: ctypes.addressof(self.callbacks), 3: ctypes.addressof(self.version)}.get(number)


class Tool:
    """A tool that listens. `push(domain, event)` and `pop(domain)` are its own functions."""

    def __init__(self, library, handshake):
        self._kept = (library, handshake)
        functions = handshake.functions
        self.push = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(functions[_PUSH])
        self.pop = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(functions[_POP])
        self._mark = functions[_MARK] and ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(functions[_MARK])
        self._register = functions[_REGISTER] and ctypes.PYFUNCTYPE(
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(functions[_REGISTER])
        create = functions[_CREATE_DOMAIN] and ctypes.PYFUNCTYPE(
            ctypes.c_void_p, ctypes.c_char_p)(functions[_CREATE_DOMAIN])
        name = functions[_NAME_CATEGORY] and ctypes.PYFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p)(functions[_NAME_CATEGORY])
        self.domain = create(b"llmprof") if create else None
        if name:
            for number, text in _CATEGORIES.items():
                name(self.domain, number, text)
        self._names = {}   # (domain, text) -> registered handle, or the bytes themselves
        self._ranges = {}  # (category, text) -> a range that lives as long as the process, and its function
        try:
            self._quick = Quick(library)
        except (AttributeError, TypeError, ValueError):  # another tool, another interpreter
            self._quick = None
        self.leave = self._quick.leave(self.domain) if self._quick else functools.partial(self.pop, self.domain)

    def _message(self, domain, text):
        known = self._names.get((domain, text))
        if known is None:
            raw = text.encode("utf-8", "replace").replace(b"\0", b"?")
            handle = self._register(domain, raw) if self._register else None
            kept = ctypes.create_string_buffer(raw)
            known = (3, handle, kept) if handle else (1, ctypes.addressof(kept), kept)
            if len(self._names) < 65536:
                self._names[domain, text] = known
        return known

    def event(self, domain, category, text, payload=0):
        """An event to be pushed: keep it while it is used, and hand `ctypes.addressof` of it to push()."""
        message_type, message, kept = self._message(domain, text)
        event = _Event(3, ctypes.sizeof(_Event), category, 0, 0, 1 if payload else 0, 0, payload, message_type, message)
        event.kept = kept
        return event

    def own_range(self, category, text):
        """A range of our domain, and a function without arguments that opens it; `leave()` closes it. Its payload may be
        set before it is opened. Keep both while they are used."""
        place = _RangeOfDomain(self.domain, self.event(self.domain, category, text))
        place.kept = self._message(self.domain, text)
        if self._quick:
            return place, self._quick.enter(place)
        return place, functools.partial(self.push, self.domain, ctypes.addressof(place) + _RangeOfDomain.event.offset)

    def enter(self, category, text):
        """A function without arguments that opens this range; it may be kept for good."""
        known = self._ranges.get((category, text))
        if known is None:
            known = self._ranges[category, text] = self.own_range(category, text)
        return known[1]

    def own_mark(self, category, text):
        """An event of our domain, and a function without arguments that marks it; its payload may be set before. Keep both
        while they are used; the text is kept no longer."""
        raw = ctypes.create_string_buffer(text.encode("utf-8", "replace").replace(b"\0", b"?"))
        place = _RangeOfDomain(self.domain, _Event(3, ctypes.sizeof(_Event), category, 0, 0, 1, 0, 0, 1,
                                                   ctypes.addressof(raw)))
        event = place.event
        event.kept = place, raw
        if not self._mark:
            return event, int
        if self._quick:
            return event, self._quick.mark(place)
        return event, functools.partial(self._mark, self.domain, ctypes.addressof(event))

    def mark(self, category, text, payload=0):
        """For texts said once: they are not kept."""
        if self._mark:
            kept = ctypes.create_string_buffer(text.encode("utf-8", "replace").replace(b"\0", b"?"))
            event = _Event(3, ctypes.sizeof(_Event), category, 0, 0, 1 if payload else 0, 0, payload, 1,
                           ctypes.addressof(kept))
            self._mark(self.domain, ctypes.addressof(event))


def find_tool():
    """The tool that NVTX_INJECTION64_PATH names, or None: nobody listens."""
    path = os.environ.get("NVTX_INJECTION64_PATH")
    if not path:
        return None
    try:
        library = ctypes.CDLL(path)
        handshake = _Handshake()
        start = library.InitializeInjectionNvtx2
        start.restype, start.argtypes = ctypes.c_int, [ctypes.c_void_p]
        answer = start(ctypes.cast(handshake.export_table, ctypes.c_void_p))
    except (OSError, AttributeError):
        return None
    if not answer or not handshake.functions[_PUSH] or not handshake.functions[_POP]:
        return None
    return Tool(library, handshake)

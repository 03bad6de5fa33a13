"""Compares launch stacks with what the interpreter says itself: stack_cases.py PROBE_LIBRARY CASE.

The probe is called through ctypes without the GIL (as torch launches kernels) and with it."""
import asyncio
import ctypes
import functools
import gc
import re
import sys
import threading

library = sys.argv[1]
released, held = ctypes.CDLL(library), ctypes.PyDLL(library)
for probe in (released, held):
    probe.probe_reason.restype = ctypes.c_char_p
    probe.probe_cost.restype = ctypes.c_uint64
PYTHON, UNKNOWN = "1", "3"
MOST = 128
checked = 0


def read(probe=released):
    text = ctypes.create_string_buffer(1 << 20)
    assert probe.probe_stack(text, len(text)) >= 0, "not recorded"
    lines = text.value.decode("utf-8", "surrogatepass").splitlines()
    frames = [tuple(line.split("\t")[:4]) for line in lines]
    return frames[1:]  # but for read() itself


def expected():
    frame, frames = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        frames.append((PYTHON, code.co_qualname, code.co_filename, str(frame.f_lineno)))
        frame = frame.f_back
    return frames


def same(got, wanted):
    global checked
    checked += 1
    if len(wanted) > MOST - 1:
        wanted = wanted[:MOST - 1] + [(UNKNOWN, "<outer frames left out>", "", "0")]
    assert got == wanted, f"\ngot    {got[:4]} … {len(got)}\nwanted {wanted[:4]} … {len(wanted)}"


def check():
    # One line each, so that both see the same one.
    same(read(), expected())
    same(read(held), expected())


def outer(depth):
    return outer(depth - 1) if depth > 0 else check()


class Class:
    def method(self):
        check()

    def __enter__(self):
        check()

    def __exit__(self, *_):
        check()

    def __del__(self):
        check()


def generator(count):
    for _ in range(count):
        check()
        yield from inner_generator()


def inner_generator():
    check()
    yield 1


async def coroutine(depth):
    check()
    await asyncio.sleep(0)
    if depth:
        await asyncio.gather(coroutine(depth - 1), coroutine(depth - 1))
    check()


def plain():
    check()
    (lambda: check())()
    outer(5)
    Class().method()
    [check() for _ in range(3)]
    sorted([2, 1], key=lambda value: check() or value)
    with Class():
        check()
    gc.collect()


def generators():
    assert sum(generator(3)) == 3
    pending = generator(2)
    next(pending)
    check()
    next(pending)
    asyncio.run(coroutine(3))


def exceptions():
    try:
        try:
            raise ValueError
        except ValueError:
            check()
            raise KeyError from None
        finally:
            check()
    except KeyError:
        check()
    try:
        outer(-1) if False else int("x")
    except ValueError:
        outer(2)


def compiled():
    for number in range(200):  # code objects come and go, at the same addresses
        lines = "\n" * (number % 50)
        name = f"function_{number % 7}"
        scope = {"check": check}
        exec(compile(f"{lines}def {name}():\n  check()\n{name}()", f"<made {number % 5}>", "exec"), scope)
    exec("check()")
    eval("check()")


def letters():
    scope = {"check": check}
    for name in ("größe", "функция", "函数", "𝔘𝔫𝔦"):  # one, two and four bytes a letter
        exec(compile(f"def {name}():\n  check()\n{name}()", f"/tmp/{name}.py", "exec"), scope)
    long = "n" * 3000
    exec(compile(f"def {long}():\n  got = read()\n  assert got[0][1] == '{'n' * 1021}', got[0]\n{long}()", "<long>", "exec"),
         {"read": read})


def threads():
    problems = []
    check()  # the first stack of a process finds out how to read them; meanwhile other threads get none

    def work(depth):
        try:
            for _ in range(200):
                outer(depth % 9)
        except BaseException as error:  # noqa: shown by the main thread
            problems.append(error)
    running = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not problems, problems[0]


def deep():
    for depth in (MOST - 20, MOST - 1, MOST, MOST + 1, 400):
        outer(depth)


def several():
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters
    check()
    other = interpreters.create()
    assert read() == [] and read(held) == []
    assert b"several Python interpreters" in released.probe_reason(), released.probe_reason()
    interpreters.destroy(other)
    check()


def traced():
    seen = []

    def tracer(frame, event, argument):
        seen.append(event)
        return tracer
    sys.settrace(tracer)
    try:
        plain()
    finally:
        sys.settrace(None)
    assert seen
    plain()


def cost():
    def at(depth):
        return at(depth - 1) if depth else min(released.probe_cost(400) for _ in range(100)) / 400
    print(f"{sys.version.split()[0]}: {at(20):.0f} ns for 22 frames")


def off():
    assert read() == []
    assert released.probe_reason(), "no reason"
    print(released.probe_reason().decode())


def fiber():
    """LLMPROF_STACKS=2: on a stack whose end nobody knows, and whose frames lead out of it."""
    global checked
    assert released.probe_on_fiber() >= 0
    assert released.probe_native() >= 3  # and as before on the thread's own
    checked = 1


def native():
    """LLMPROF_STACKS=2: against glibc's own unwinder, from many places of the interpreter."""
    global checked
    compared = []

    def compare(_=None):
        compared.append(released.probe_native())
        compared.append(held.probe_native())
        return 0
    compare()
    sorted([2, 1], key=compare)
    list(map(compare, range(3)))
    re.sub("a", lambda match: str(compare()), "aaa")
    functools.reduce(lambda *_: compare(), [1, 2, 3])
    thread = threading.Thread(target=compare)
    thread.start()
    thread.join()
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: compare())
    array = (ctypes.c_int * 4)(3, 1, 2, 0)
    ctypes.CDLL(None).qsort(array, 4, 4, callback)
    for depth in range(30):
        def down(left):
            return sorted([left], key=lambda value: down(value - 1)) if left else compare()
        down(depth)
    assert min(compared) >= 3, compared
    checked = sum(compared)


def both():
    """LLMPROF_STACKS=3: Python frames, and inside them what the interpreter called."""
    global checked

    def inside():
        text = ctypes.create_string_buffer(1 << 20)
        assert released.probe_stack(text, len(text)) > 0
        return [line.split("\t") for line in text.value.decode().splitlines()]
    frames = inside()
    kinds = [frame[0] for frame in frames]
    first = kinds.index(PYTHON)
    assert first > 0 and set(kinds[first:]) == {PYTHON}, kinds
    assert frames[first][1] == "both.<locals>.inside" and frames[first + 1][1] == "both", frames
    assert any("ffi" in frame[2] or "ctypes" in frame[2] for frame in frames[:first]), frames
    checked = len(frames)


CASES = {case.__name__: case for case in (plain, generators, exceptions, compiled, letters, threads, deep, several, traced,
                                            native, both, fiber)}
name = sys.argv[2]
if name in CASES:
    CASES[name]()
    reason = released.probe_reason()
    assert name in ("several", "fiber") or not reason, reason
    assert checked, "nothing was compared"
    print(f"{name}: {checked} stacks compared")
else:
    {"cost": cost, "off": off}[name]()

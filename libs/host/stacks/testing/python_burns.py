"""Two families of functions that alternate fast: left functions only call left ones, right functions right ones, in
Python, through C (sorted with a key) and through generators. A stack that mixes them is wrong."""

import sys
import time


def left_inner(value):
    total = 0
    for i in range(10):
        total += i * value
    return total


def left_key(value):
    return left_inner(value)


def left_outer():
    return sorted(range(5), key=left_key)


def right_inner(value):
    total = 0
    for i in range(10):
        total -= i * value
    return total


def right_generator():
    for value in range(5):
        yield right_inner(value)


def right_outer():
    return sum(right_generator())


def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(100):
            left_outer()
            right_outer()


def deep(levels, seconds):
    return deep(levels - 1, seconds) if levels > 0 else burn(seconds)


deep(5, float(sys.argv[1]) if len(sys.argv) > 1 else 30)

"""Two threads that wait in known places. Each prints, before it waits, a line: its name, its thread id and its stack,
innermost first, as function|file|line."""

import os
import sys
import threading


def stack_of(frame):
    out = []
    while frame is not None:
        code = frame.f_code
        out.append(f"{code.co_qualname}|{os.path.basename(code.co_filename)}|{frame.f_lineno}")
        frame = frame.f_back
    return out


def announce(who):
    line = "\t".join([who, str(threading.get_native_id()), *stack_of(sys._getframe(1))])
    os.write(1, (line + "\n").encode())  # in one piece, whatever the other thread does


def hold(who, descriptor):
    announce(who); os.read(descriptor, 1)


class Model:
    def forward(self, who, descriptor):
        for value in self.layers(who, descriptor):
            del value

    def layers(self, who, descriptor):
        yield [
            [sorted([1], key=lambda _: self.größe(who, descriptor)) for _ in range(1)]
            for _ in range(1)
        ]

    def größe(self, who, descriptor):
        try:
            return hold(
                who,
                descriptor,
            )
        finally:
            pass


def worker(descriptor):
    Model().forward("thread", descriptor)


def main():
    nothing, keep_open = os.pipe()
    threading.Thread(target=worker, args=(nothing,), daemon=True).start()
    Model().forward("main", 0)
    os.close(keep_open)


main()

"""Inputs that are bad whatever the format: no regular file, nothing in it, compressed in odd ways, of another kind."""
import gzip
import json
import os
import struct

EVENTS = [{"ph": "X", "cat": "kernel", "name": f"k{i}", "pid": 0, "tid": 7, "ts": 100 + 10 * i, "dur": 5,
           "args": {"device": 0, "stream": 7, "correlation": i}} for i in range(1000)]
TRACE = json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000,
                    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
                    "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": EVENTS}, indent=1).encode()


def packed(content):
    return gzip.compress(content, mtime=0)


def zstd_bomb(begin, byte, blocks):
    """A frame: `begin` as it is, then blocks that each stand for 128 KiB of the same byte, in 4 bytes of file."""
    def header(size, kind, last):
        return struct.pack("<I", size << 3 | kind << 1 | last)[:3]
    frame = struct.pack("<IBB", 0xFD2FB528, 0, 0x38) + header(len(begin), 0, False) + begin
    return frame + b"".join(header(131072, 1, i == blocks - 1) + byte for i in range(blocks))


def no_permission(path):
    path.write_bytes(TRACE)
    path.chmod(0)
    if os.geteuid() == 0:
        print(f"skipped {path.name}: root may read everything")
        return None
    return path


def cases():
    few = ["--max-plain", "20MB"]
    return {
        "empty.json": b"",
        "one_byte.json": b"x",
        "folder": lambda path: path.mkdir() or path,
        "fifo": lambda path: os.mkfifo(path) or path,
        "device": lambda path: "/dev/zero",
        "missing.json": lambda path: path,
        "no_permission.json": no_permission,
        "zip.json": b"PK\x03\x04" + bytes(100),
        "program": b"\x7fELF" + bytes(100),
        "page.html": b"<!DOCTYPE html><html><body>404 not found</body></html>",
        "text.txt": b"nothing of interest\n" * 10,
        "zeros.bin": bytes(100_000),
        "json_of_something_else.json": b'{"name": "package", "version": 3}',
        "good.json.gz": packed(TRACE),
        "two_members.json.gz": packed(TRACE[:5000]) + packed(TRACE[5000:]),
        "truncated.json.gz": packed(TRACE)[:len(packed(TRACE)) // 2],
        "cut_header.json.gz": packed(TRACE)[:12],
        "damaged.json.gz": packed(TRACE)[:3000] + b"\xff" * 200 + packed(TRACE)[3200:],
        "wrong_checksum.json.gz": packed(TRACE)[:-8] + bytes(8),
        "trailing_garbage.json.gz": packed(TRACE) + b"garbage after the end",
        "padded.json.gz": packed(TRACE) + bytes(512),
        "nested.json.gz": packed(packed(TRACE)),
        "bomb.json.gz": (packed(b'{"traceEvents": [' + b" " * 50_000_000), few),
        "bomb.json.zst": (zstd_bomb(b'{"traceEvents": [', b" ", 400), few),
        "truncated.json.zst": zstd_bomb(TRACE[:100_000], b" ", 4)[:-3],
        "archive.xz": b"\xfd7zXZ\x00" + bytes(50),
        "report.nsys-rep": b"NVIDIA Tegra Profiler" + bytes(60),
        "report.qdstrm": b"\x01\x02\x03" + bytes(60),
        "report.ncu-rep": b"NVR\x00" + bytes(60),
        "trace.pftrace": b"\x0a\x20\x08\x01" + bytes(60),
        "profile.pb.gz": packed(b"\x0a\x04\x08\x01\x10\x02" + bytes(60)),
        "unknown_format.json": (TRACE, ["--as", "nothing"]),
        "another_format.json": (TRACE, ["--as", "nsys"]),
    }

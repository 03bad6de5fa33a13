"""Damaged traces of PyTorch and Chrome, one per line of the catalogue (README.md says what content is)."""

AS = ["--as", "kineto"]  # where the beginning does not tell

HEADER = b"""{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "computeMajor": 9, "computeMinor": 0}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
"""
END = b'\n  ],\n  "traceName": "trace.json"\n}\n'
OP = (b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 872, "tid": 872, "ts": 100.5, "dur": 50.25,'
      b' "args": {"External id": 1, "Input Dims": [[64, 128], [128, 32]], "Input type": ["float", "float"]}}')
LAUNCH = (b'{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 872, "tid": 872, "ts": 110, "dur": 5,'
          b' "args": {"External id": 1, "correlation": 7}}')
KERNEL = (b'{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 120, "dur": 20, "args":'
          b' {"External id": 1, "correlation": 7, "device": 0, "context": 1, "stream": 7, "grid": [1, 1, 1], "block": [128, 1, 1]}}')
GOOD = [OP, LAUNCH, KERNEL, LAUNCH.replace(b'"ts": 110', b'"ts": 180').replace(b'": 7', b'": 9')]  # of kernel() below


def trace(*events, header=HEADER, end=END):
    return header + b",\n".join([*GOOD, *events]) + end


def kernel(name, **fields):
    """A second kernel with some of its fields replaced by raw JSON."""
    values = {"ph": b'"X"', "cat": b'"kernel"', "name": name, "pid": b"0", "tid": b"7", "ts": b"200", "dur": b"10",
              "args": b'{"device": 0, "stream": 7, "correlation": 9}'}
    values.update({key: value for key, value in fields.items()})
    return b"{" + b", ".join(b'"' + key.encode() + b'": ' + value for key, value in values.items()) + b"}"


def cases():
    good = trace()
    array = b"[" + b",\n".join(GOOD) + b"]"
    return {
        "array_form.json": array,
        "array_without_end.json": array[:-1] + b",\n",
        "nested.json": b'{"data": ' + good.strip() + b"}",
        "invalid_utf8.json": trace(kernel(b'"k\xff\xfe"')),
        "control_bytes.json": trace(kernel(b'"k\x01\x02"')),
        "lone_surrogate.json": trace(kernel(b'"k\\ud83d"')),
        "not_finite.json": trace(kernel(b'"k"', args=b'{"device": 0, "stream": 7, "x": inf, "correlation": 9, "graph node id": 1e999, "y": NaN}')),
        "unescaped_quote.json": trace(kernel(b'"say "hi" now"'), kernel(b'"after"')),
        "missing_bracket.json": trace(kernel(b'"k"')[:-1], kernel(b'"after"')),
        "truncated.json": trace(kernel(b'"k"'))[:-80],
        "missing_end.json": trace(end=b"\n"),
        "trailing_comma.json": trace(kernel(b'"k"', args=b'{"stream": 7, "device": 0, "correlation": 9,}'), end=b"," + END),
        "byte_order_mark.json": b"\xef\xbb\xbf" + good,
        "utf16.json": good.decode().encode("utf-16"),
        "deep.json": (b"[" * 1_000_000, AS),
        "deep_event.json": trace(kernel(b'"k"', args=b"[" * 300 + b"]" * 300)),
        "long_string.json": b'[{"ph": "X", "name": "' + b"x" * (65 << 20) + b'"}]',
        "duplicate_keys.json": trace(kernel(b'"k"', ts=b'1, "ts": 300')),
        "ts_string.json": trace(kernel(b'"k"', ts=b'"300.5"')),
        "ts_negative.json": trace(kernel(b'"k"', ts=b"-300.5")),
        "ts_zero.json": trace(kernel(b'"k"', ts=b"0")),
        "ts_large.json": trace(kernel(b'"k"', ts=b"9007199254740993")),
        "ts_too_large.json": trace(kernel(b'"k"', ts=b"99999999999999999999")),
        "duration_negative.json": trace(kernel(b'"k"', dur=b"-5")),
        "end_without_begin.json": trace(b'{"ph": "E", "name": "r", "pid": 872, "tid": 872, "ts": 300}'),
        "args_array.json": trace(kernel(b'"k"', args=b"[1, 2]")),
        "no_rank.json": trace(header=HEADER.replace(b'  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},\n', b"")),
        "no_gpu_events.json": HEADER + OP + END,
        "no_events.json": HEADER + END,
        "concatenated.json": good + good,
        "no_trace_events.json": (b'{"schemaVersion": 1, "nodes": []}', AS),
        "not_events.json": (b'[{"a": 1}, {"b": 2}]', AS),
        "stops_in_header.json": HEADER[:100],
        "quote_lost_in_header.json": trace(header=HEADER.replace(b'  "base', b'  "note": "quotes /" and / and",\n  "base')),
        "many_threads.json": trace(*(kernel(b'"k"', tid=str(i).encode()) for i in range(20_000))),
    }

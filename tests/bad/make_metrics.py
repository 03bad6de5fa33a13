"""Prometheus text and tables of telemetry, damaged. cases() -> name: content."""

AS = ["--as", "prometheus"]
SMI = b"timestamp, index, power.draw [W], temperature.gpu\n"
OWN = b"ts,gpu_util_pct,mem_util_pct,sm_clock_MHz,mem_clock_MHz,power_W,temp_C,mem_used_MiB,mem_total_MiB\n"


def text(*lines):
    return b"# TYPE good counter\ngood 1\n" + b"\n".join(lines) + b"\n"


def cases():
    return {
        "hash.txt": text(b"#", b"# HELP", b"# TYPE"),
        "label_without_value.txt": text(b"{A}0", b"a{b} 1"),
        "empty_label.txt": text(b'a{=""} 1', b'a{b="1",="2"} 1'),
        "open_quote.txt": text(b'a{b="c} 1'),
        "numbers.txt": text(b"a NaN", b"b +Inf", b"c -Inf", b"d 1e400", b"e one"),
        "no_newline_at_end.txt": text()[:-1],
        "crlf.txt": text(b"a 1", b"b 2").replace(b"\n", b"\r\n"),
        "duplicates.txt": text(b"good 2", b'a{b="c"} 1', b'a{b="c"} 2'),
        "long_label.txt": text(b'a{b="' + b"x" * (1 << 20) + b'"} 1', b'a{b="' + b"x" * 5000 + b'"} 1'),
        "many_labels.txt": text(b"a{" + b",".join(b'l%d="x"' % i for i in range(65)) + b"} 1"),
        "exemplars.txt": text(b'a_bucket{le="1"} 5 # {trace="x"} 0.5 1794770650.1') + b"# EOF\n",
        "backwards.txt": text(b"a 1 1794770650678", b"a 2 1794770650000"),
        "not_utf8.txt": text(b'a{b="\xff\xfe"} 1'),
        "html.txt": (b"<html><head><title>502 Bad Gateway</title></head><body></body></html>\n", AS),
        "prose.txt": (b"This is not what you are looking for.\n", AS),
        "smi_missing.csv": SMI + b"2026/11/15 02:00:52.123, 0, [N/A], [Not Supported]\n",
        "smi_damaged.csv": SMI + b"2026/11/15 02:00:52.123, 0, 10 W, 30\n2026/13/15 02:00:52.123, 0, 10 W, 30\n"
                                 b"2026/11/15 02:00:53.123, 0, ten W, 30\n2026/11/15 02:00:54.1",
        "smi_noheader.csv": b"2026/11/15 19:24:14.730, NVIDIA H200, 0, 99, 9\n2026/11/15 19:24:14.932, NVIDIA H200, 0, 99, 9\n",
        "smi_without_time.csv": (b"index, power.draw [W]\n0, 10 W\n", ["--as", "nvidia-smi"]),
        "dmon_without_time.txt": b"# gpu    pwr  gtemp\n# Idx      W      C\n    0    118     30\n",
        "pmon.txt": b"# gpu         pid   type     sm\n# Idx           #    C/G      %\n    0        448     C      0\n",
        "monitor_damaged.csv": OWN + b"1794770650.678,99,9,1980,3201,168.04,31,951,143771\nlater,1,2,3,4,5,6,7,8\n1794770651\n",
    }

"""Damaged CSV of Nsight Compute, one per line of the catalogue. cases() -> name: content."""

HEADER = (b'"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
          b'"Device","CC","dram__bytes_read.sum","gpu__time_duration.sum"\n')
UNITS = b'"","","","","","","","","","","","Kbyte","us"\n'
PER_METRIC = (b'"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
              b'"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n')


def row(number=0, name=b"scale(float *, int)", read=b"4,197.38", time=b"9.5"):
    return (b'"%d","4038","nv","127.0.0.1","%s","1","13","(256, 1, 1)","(264, 1, 1)","0","9.0","%s","%s"\n'
            % (number, name, read, time))


def metric(name, unit, value):
    return (b'"0","4038","nv","127.0.0.1","scale(float *, int)","1","13","(256, 1, 1)","(264, 1, 1)","0","9.0",'
            b'"Command line profiler metrics","%s","%s","%s"\n' % (name, unit, value))


def cases():
    good = HEADER + UNITS + row()
    return {
        "tool_lines.csv": b"==PROF== Connected to process 4038\nstep 1\n" + good + b"==WARNING== slow\nstep 2\n" + row(1)
                          + b"==PROF== Disconnected from process 4038\n",
        "no_unit_row.csv": HEADER + row(read=b"4197376", time=b"9504"),
        "fifteen_columns.csv": PER_METRIC + metric(b"gpu__time_duration.sum", b"us", b"9.5") + metric(b"x.sum", b"", b"7"),
        "few_columns.csv": b'"ID","Process ID","Kernel Name","Device","gpu__time_duration.sum"\n"","","","","us"\n'
                           b'"0","7","k","0","9.5"\n',
        "decimal_comma.csv": good + row(1, read=b"1.234,5"),
        "thousands.csv": good + row(1, read=b"1,234,567.8"),
        "not_there.csv": good + row(1, read=b"n/a") + row(2, read=b"nan") + row(3, read=b""),
        "newline_in_quotes.csv": good + row(1, name=b'void f<""x"",\n2>(int)'),
        "stray_quote.csv": good + b'"a line of the program\n' + row(1),
        "row_too_short.csv": good + b'"1","4038","nv"\n' + row(2),
        "cut.csv": good + row(1)[:40],
        "long_row.csv": good + b'"1","' + b"x" * (101 << 20) + b'"\n' + row(2),
        "no_permission.csv": b"==PROF== Connected to process 4038\n==ERROR== ERR_NVGPUCTRPERM - The user does not have "
                             b"permission to access NVIDIA GPU Performance Counters on the target device 0.\n",
        "no_kernels.csv": b"==PROF== Connected to process 4038\n==WARNING== No kernels were profiled.\n",
        "error_only.csv": b"==PROF== Connected to process 4038\n==ERROR== Failed to profile \"scale\" in process 4038\n",
        "summary_page.csv": b'"Process ID","Process Name","Host Name","Kernel Name","Invocations","Minimum"\n',
        "no_times.csv": b'"ID","Process ID","Kernel Name","Device","x.sum"\n"","","","",""\n"0","7","k","0","9.5"\n',
        "not_utf8.csv": good + row(1, name=b"k\xff\xfe"),
        "carriage_returns.csv": good.replace(b"\n", b"\r\n"),
    }

"""Damaged exports of Nsight Systems, one per line of the catalogue. cases() -> name: content."""
import os
import sqlite3
import tempfile

STRINGS = """CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, '_Z5scalePfi');"""
VERSION = """CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.3'), ('EXPORT_PRODUCT_VERSION', '2025.3.2.0');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1794708399392700330);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER, totalMemory INTEGER, cuDevice INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 132, 150109880320, 0);"""
# Process 692, thread 692 of virtual machine 1.
RUNTIME = """CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
 eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90, 95, 0, 281486586544820, 7, 1);"""
COLUMNS = "start, end, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, mangledName INTEGER"
KERNELS = f"""CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({COLUMNS});
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 130, 0, 7, 7, 281486586544128, 2);"""
GOOD = STRINGS + VERSION + RUNTIME + KERNELS
ENDLESS = """CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS
 (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, start + 1 AS end FROM n;"""
MANY = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
 INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 200 + i, 210 + i, 0, 7, 7, 281486586544128, 2 FROM n;"""
VERSION_IS = "UPDATE META_DATA_EXPORT SET value = '%s' WHERE name = 'EXPORT_SCHEMA_VERSION';"
PAGE = 4096


def database(*statements):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "x.sqlite")
    try:
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.executescript("".join(statements))
        connection.commit()
        connection.close()
        with open(path, "rb") as file:
            return file.read()
    finally:
        if os.path.exists(path):
            os.remove(path)
        os.rmdir(folder)


def changed(content, at, value):
    return content[:at] + value + content[at + len(value):]


def free_list_loop():
    content = database(GOOD, "CREATE TABLE junk (x); INSERT INTO junk VALUES (zeroblob(20000)); DROP TABLE junk;")
    trunk = content[32:36]  # the first page of the list of free pages; its first four bytes are the next one
    return changed(content, (int.from_bytes(trunk, "big") - 1) * PAGE, trunk)


def pages_in_a_circle():
    """All cells of the interior page of the kernel table (type 5) point at its first leaf."""
    content = database(GOOD, MANY)
    page = max(at for at in range(PAGE, len(content), PAGE) if content[at] == 5)
    count = int.from_bytes(content[page + 3:page + 5], "big")
    cells = [page + int.from_bytes(content[page + 12 + 2 * i:page + 14 + 2 * i], "big") for i in range(count)]
    for cell in cells[1:]:
        content = changed(content, cell, content[cells[0]:cells[0] + 4])
    return content


def cases():
    good = database(GOOD)
    many = database(GOOD, MANY)
    pages = len(many) // PAGE
    rest = STRINGS + VERSION + RUNTIME
    return {
        "good.sqlite": good,
        "header_only.sqlite": good[:60],
        "odd_page_size.sqlite": changed(good, 16, b"\x11"),
        "another_database.sqlite": database("CREATE TABLE t (a); INSERT INTO t VALUES (1);"),
        "wal_mode.sqlite": changed(good, 18, b"\x02\x02"),
        "cut.sqlite": many[:-3 * PAGE],
        "damaged_page.sqlite": changed(many, (pages - 3) * PAGE, b"\x55" * PAGE),
        "damaged_list_of_tables.sqlite": changed(good, 100, b"\x77" * 200),
        "free_list_loop.sqlite": free_list_loop(),
        "pages_in_a_circle.sqlite": pages_in_a_circle(),
        "endless_view.sqlite": database(rest, ENDLESS),
        "trigger.sqlite": database(GOOD, "CREATE TRIGGER t AFTER INSERT ON CUPTI_ACTIVITY_KIND_KERNEL BEGIN SELECT 1; END;"),
        "virtual_table.sqlite": database(rest, "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts5(start, end);"),
        "generated_column.sqlite": database(rest, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end AS (start + 1));"),
        "large_row.sqlite": database(GOOD, "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text);"
                                     "INSERT INTO NVTX_EVENTS VALUES (1, 5, 59, 281486586544820, 'a'),"
                                     "(2, 5, 59, 281486586544820, zeroblob(20971520)), (3, 4, 59, 281486586544820, 'c');"),
        "no_string_ids.sqlite": database(VERSION, KERNELS),
        "no_kernels.sqlite": database(rest),
        "no_end_column.sqlite": database(rest, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, name);"),
        "kernels_v3.sqlite": database(rest, KERNELS.replace("KIND_KERNEL", "KIND_KERNEL_V3")),
        "schema_3_0.sqlite": database(GOOD, VERSION_IS % "3.0.0"),
        "schema_3_99.sqlite": database(GOOD, VERSION_IS % "3.99.1"),
        "schema_9_9.sqlite": database(GOOD, VERSION_IS % "9.9.0"),
        "end_before_start.sqlite": database(GOOD, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end) VALUES (20, 10);"),
        "string_id_missing.sqlite": database(GOOD, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET mangledName = 77;"),
        "text_for_numbers.sqlite": database(GOOD, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('soon', 9, 0, 7, 7, 0, 2);"),
        "launch_missing.sqlite": database(GOOD, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 8;"),
        "report.nsys-rep": b"NVIDIA Tegra Profiler Report 36398880.\n",
        "report.ncu-rep": b"NVR\x00\x01\x00\x00\x00",
    }

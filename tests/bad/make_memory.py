"""Pickles that are no memory snapshot, or a hostile one. cases() -> name: content."""
import io
import os
import pickle
import struct
import zipfile


class Runs:
    """What an attacker's snapshot holds: an object that calls something when it is loaded."""

    def __init__(self, function, *arguments):
        self.what = (function, arguments)

    def __reduce__(self):
        return self.what


def event(action, **fields):
    return {"action": action, "addr": 4096, "size": 512, "stream": 0, "time_us": 1794770752998552, "frames": [], **fields}


def snapshot(*events, **more):
    block = {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []}
    segment = {"device": 0, "address": 4096, "total_size": 2048, "allocated_size": 1024, "active_size": 1024,
               "requested_size": 1000, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": [], "blocks": [block]}
    return {"segments": [segment], "device_traces": [list(events)], **more}


def torch_save():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("archive/data.pkl"), pickle.dumps({"weight": 1}))
    return out.getvalue()


def laughs():
    out = b"]q\0"
    for level in range(1, 11):
        out += b"](" + (b"h" + bytes([level - 1])) * 10 + b"eq" + bytes([level])
    return b"\x80\x02" + out + b"."


def itself():
    loop = []
    loop.append(loop)
    return pickle.dumps({"segments": loop}, protocol=4)


def cases():
    good = pickle.dumps(snapshot(event("alloc"), event("free_completed", time_us=1794770752998600)), protocol=4)
    return {
        "code_protocol0.pickle": b"cposix\nsystem\n(S'true'\ntR.",
        "code_protocol4.pickle": pickle.dumps({"segments": [Runs(os.system, "true")]}, protocol=4),
        "code_inst.pickle": b"(S'true'\niposix\nsystem\n.",
        "code_build.pickle": b"\x80\x02}}b.",
        "code_object.pickle": b"\x80\x02))\x81.",
        "code_extension.pickle": b"\x80\x02\x82\x01.",
        "persistent_id.pickle": b"\x80\x02Pstorage\n.",
        "persistent_id_binary.pickle": b"\x80\x02NQ.",
        "buffer.pickle": b"\x80\x05\x97.",
        "laughs.pickle": laughs(),
        "itself.pickle": itself(),
        "length.pickle": b"\x80\x04X" + struct.pack("<I", 1 << 31) + b"abc.",
        "frame.pickle": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"}.",
        "cut.pickle": good[:-40],
        "deep.pickle": b"\x80\x02" + b"]" * 200 + b"a" * 199 + b".",
        "memo.pickle": b"\x80\x02j\xff\xff\xff\xff.",
        "protocol9.pickle": b"\x80\x09}.",
        "opcode.pickle": b"\x80\x02\xff.",
        "torch_save.pt": torch_save(),
        "other_dict.pickle": pickle.dumps({"epoch": 3, "loss": 0.5}, protocol=4),
        "other_list.pickle": pickle.dumps([1, 2, 3], protocol=2),
        "empty_snapshot.pickle": pickle.dumps({"segments": [], "device_traces": []}, protocol=4),
        "bad_events.pickle": pickle.dumps(
            snapshot(event("alloc"), event("alloc", size=-5), event("alloc", size="many"), event("dance"),
                     event("free_completed", time_us=1 << 60)), protocol=4),
        "good.pickle": good,
    }

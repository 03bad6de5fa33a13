"""Reads the books of the fake driver (link.h): what a program made, what CUPTI did with it, what no client may do."""
import struct


class Books(dict):
    def __getattr__(self, name):
        return self[name]

    def forbidden(self):
        """What the client did that crashes or hangs the real CUPTI."""
        return {name: value for name, value in self.items() if name.startswith("bad_") and name != "bad_time_records" and value}


def read(path):
    data = path.read_bytes()
    rows = [struct.unpack_from("<24sQ", data, at) for at in range(0, len(data) - 31, 32)]
    return Books({name.split(b"\0", 1)[0].decode(): value for name, value in rows})


def of_folder(folder):
    """pid -> books, of every process that opened the driver."""
    return {int(path.name.rsplit(".", 1)[1]): read(path) for path in folder.glob(".gpu.*")}

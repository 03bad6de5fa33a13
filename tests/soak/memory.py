"""Memory of a process over time, and whether it grows."""
import math


def rss_kib(pid):
    """Resident memory, or None when the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def children(pid):
    found = []
    try:
        for task in __import__("os").listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as names:
                found += [int(word) for word in names.read().split()]
    except OSError:
        pass
    return found


class Slope:
    """Least squares over the means of 20 equal stretches of time, the first tenth left out (warming up). Means, because
    neighbouring samples are not independent; `t` is the slope in units of its standard error."""

    def __init__(self, samples):
        """samples: (seconds, KiB) in order."""
        begin, end = samples[0][0], samples[-1][0]
        warm = [(at, kib) for at, kib in samples if at >= begin + (end - begin) / 10]
        blocks = [[] for _ in range(20)]
        for at, kib in warm:
            place = int((at - warm[0][0]) / max(warm[-1][0] - warm[0][0], 1e-9) * 20)
            blocks[min(place, 19)].append((at, kib))
        points = [(sum(a for a, _ in block) / len(block), sum(k for _, k in block) / len(block)) for block in blocks if block]
        mean_x = sum(x for x, _ in points) / len(points)
        mean_y = sum(y for _, y in points) / len(points)
        square = sum((x - mean_x) ** 2 for x, _ in points)
        self.per_second = sum((x - mean_x) * (y - mean_y) for x, y in points) / square
        rest = sum((y - mean_y - self.per_second * (x - mean_x)) ** 2 for x, y in points)
        error = math.sqrt(rest / max(len(points) - 2, 1) / square)
        self.t = self.per_second / error if error > 0 else math.inf * (self.per_second > 0) if self.per_second else 0.0
        self.growth_kib = self.per_second * (end - begin)
        self.first_kib, self.last_kib = points[0][1], points[-1][1]
        self.peak_kib = max(kib for _, kib in samples)

    def grows(self, allowed_kib):
        """More than chance (t > 3) and more than `allowed_kib` over the whole run."""
        return self.t > 3 and self.growth_kib > allowed_kib

    def __str__(self):
        return (f"{self.first_kib / 1024:.1f} -> {self.last_kib / 1024:.1f} MiB, at most {self.peak_kib / 1024:.1f}; slope "
                f"{self.per_second * 3600 / 1024:+.3f} MiB/hour (t = {self.t:+.1f}), {self.growth_kib / 1024:+.3f} MiB in this run")

"""One line: what a program took and what was predicted.  predict_program.py PROGRAM.TXT PREDICTED.JSON NAME BATCH PROMPT"""
import json
import statistics
import sys

path, predicted, name, batch, prompt = sys.argv[1:]
text = open(path).read()
said = json.loads(text) if text.startswith("{\n") else None
for line in text.splitlines() if said is None else []:
    line = line.removeprefix("DECODE ").strip()
    if line.startswith("{"):
        said = json.loads(line)
try:
    got = json.load(open(predicted))
except ValueError:
    sys.exit(f"{name} batch {batch} prompt {prompt}: no prediction")
if said is None:
    sys.exit(f"{name} batch {batch} prompt {prompt}: the program printed nothing")


def compare(what, true_ms, ns):
    error = ns / 1e6 / true_ms - 1
    low, high = (got["step_error"][key] * ns / 1e6 for key in ("least", "most"))
    inside = "inside" if low <= true_ms <= high else "OUTSIDE"
    return f"{what} {true_ms:.3f} ms, predicted {ns / 1e6:.3f} ({error:+.1%}, {inside} {low:.2f} to {high:.2f})"


parts = []
if "ms_per_token_median" in said:
    parts.append(compare("TPOT", said["ms_per_token_median"], got["tpot_ns"]))
    parts.append(compare("TTFT", statistics.median(said["ttft_ms"]), got["ttft_ns"]))
elif "total_s" in said:
    parts.append(compare("total", said["total_s"] * 1e3, got["total_ns"]))
else:
    parts.append(compare("TPOT", said["tpot_p50_ns"] / 1e6, got["tpot_ns"]))
    parts.append(compare("TTFT", said["ttft_ns"] / 1e6, got["ttft_ns"]))
print(f"{name} batch {batch} prompt {prompt}: " + "; ".join(parts))

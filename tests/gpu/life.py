"""A program that times its own life: imports, weights from a file, the device, compilation, steps. Prints them as JSON.
life.py FILE [LAYERS [SIZE]]: makes FILE with that many weights if it is not there. `life.py --check REPORT.json TIMES.json` holds
a report's phases against these times."""
import json
import os
import sys
import time


def check(report, own):
    report, own = json.load(open(report)), json.load(open(own))
    life = report["life"]
    phases = {phase["name"]: phase for phase in life["phases"]}
    seconds = lambda *names: sum(phases[name]["time_ns"] for name in names if name in phases) / 1e9
    failed = 0

    def hold(what, good, seen):
        nonlocal failed
        failed += not good
        print("PASS" if good else "FAIL", what, seen)

    hold("phases add up to the life", sum(p["time_ns"] for p in life["phases"]) == life["time_ns"], life["time_ns"])
    hold("the life is the wall time", life["time_ns"] == report["coverage"]["wall_ns"], report["coverage"]["wall_ns"])
    # The program cannot see its own start and end.
    hold("the life is longer than the program's own clock says", life["time_ns"] / 1e9 >= own["all"], f"{life['time_ns'] / 1e9:.2f} {own['all']:.2f}")
    told = {"imports": seconds("imports", "start", "libraries"), "weights": seconds("weights", "load"),
            "device": seconds("host_to_device", "gpu_start", "memory", "recording"), "compile": seconds("compile", "warm_up")}
    for name, value in told.items():
        hold(f"{name}, s, by llmprof and by the program, within 25 % and 0.3 s", abs(value - own[name]) <= 0.25 * own[name] + 0.3,
             f"{value:.2f} {own[name]:.2f}")
    unknown = seconds("idle", "unknown", "unsampled") / (life["time_ns"] / 1e9)
    hold("less than a tenth of it is unknown", unknown < 0.1, f"{unknown:.1%}")
    for phase in life["phases"]:
        print(f"  {phase['name']:16} {phase['time_ns'] / 1e9:8.3f} s  {phase['evidence']}")
    return failed


def main():
    begin = time.monotonic()
    times = {}

    def lap(name):
        nonlocal last
        now = time.monotonic()
        times[name] = now - last
        last = now

    last = begin
    import torch
    import torch._inductor.compile_fx
    lap("imports")
    file, layers, size = sys.argv[1], int((sys.argv[2:] + ["64"])[0]), int((sys.argv[3:] + ["4096"])[0])
    if not os.path.exists(file):
        torch.save([torch.ones(size, size) for _ in range(layers)], file)
        return
    last = time.monotonic()
    weights = torch.load(file)
    weights = [weight.clone() for weight in weights]
    lap("weights")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = [weight.to(device) for weight in weights]
    if device == "cuda":
        torch.cuda.synchronize()
    lap("device")

    def step(x):
        for weight in weights[:4]:
            x = torch.nn.functional.gelu(x @ weight)
        return x

    compiled = torch.compile(step)
    x = torch.ones(8, size, device=device)
    compiled(x).sum().item()
    lap("compile")
    for _ in range(50):
        compiled(x).sum().item()
    lap("steps")
    times["all"] = time.monotonic() - begin
    print(json.dumps(times))


if __name__ == "__main__":
    sys.exit(check(sys.argv[2], sys.argv[3]) if sys.argv[1:2] == ["--check"] else main())

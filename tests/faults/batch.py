"""Runs many victims as one program: `batch.py PLAN`. Prints how each of them ended, in the order of the plan, so that a
whole series of faults is one recording. `files` of the plan, name to text, are put beside the logs. A child of the plan has
  label, scenario, arguments   as the victim takes them
  env                          more environment; shim: true preloads the fault shim
  kill_ms                      SIGKILL after so long; signal: another one"""
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time


def run(plan, child):
    environment = dict(os.environ, **child.get("env", {}))
    if child.get("shim"):
        environment["LD_PRELOAD"] = ":".join(filter(None, [plan["shim"], environment.get("LD_PRELOAD", "")]))
    words = [child.get("program", plan["victim"]), child["scenario"], child["label"],
             *(str(word) for word in child.get("arguments", []))]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment)
    if "kill_ms" in child:
        time.sleep(child["kill_ms"] / 1000)
        process.send_signal(child.get("signal", signal.SIGKILL))
    stdout, stderr = process.communicate()
    return f"{child['label']}: {process.returncode} {stdout!r} {stderr!r}"


def main():
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    for name, text in plan.get("files", {}).items():
        if "LLMPROF_CAPTURE_DIR" in os.environ:
            with open(os.path.join(os.environ["LLMPROF_CAPTURE_DIR"], name), "w") as file:
                file.write(text)
    with concurrent.futures.ThreadPoolExecutor(plan["at_once"]) as pool:
        for line in pool.map(lambda child: run(plan, child), plan["children"]):
            print(line)


if __name__ == "__main__":
    main()

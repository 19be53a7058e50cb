#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check.py PROGRAM DATA FOLDER: short runs of every experiment learn, and say the same on one thread and two."""
import json
import os
import subprocess
import sys

program, data, folder = sys.argv[1:]
short = ["--seeds", "1", "--heads", "1", "--components", "40", "--steps", "200"]
errors = []
for threads in ("1", "2"):
    out = os.path.join(folder, "learn-check-" + threads)
    subprocess.run([program, "digits", "--data", data, "--out", out, "--threads", threads] + short, check=True)
    with open(os.path.join(out, "result.json")) as file:
        rows = {row["method"]: row for row in json.load(file)["rows"]}
    errors.append([row["errors"] for row in rows.values()])
    with open(os.path.join(out, "table.csv")) as file:
        assert len(file.readlines()) == len(rows) + 1
    with open(os.path.join(out, "examples.csv")) as file:
        assert all(len(line.split(",")) >= 66 for line in file)

affine = rows["best affine predictor"]["error"]
assert 1.8 < affine < 2.1, affine  # the first look at these data gave 1.97
assert rows["linear attention, trained"]["error"] > 0.97 * affine  # nothing linear is better
assert rows["mixture attention, trained"]["gain_percent"] > 22, rows["mixture attention, trained"]
assert errors[0] == errors[1], "one thread and two differ"

# a third of the steps leaves softmax attention within 2 % of Bayes
for name, bayes, linear, affine in (("classify", .230, .60, .56), ("denoise", 5.40, 7.6, 7.0)):
    texts = []
    for threads in ("1", "2"):
        out = os.path.join(folder, f"learn-check-{name}-{threads}")
        subprocess.run([program, name, "--out", out, "--threads", threads, "--seeds", "1", "--steps", "300"], check=True)
        texts.append([open(os.path.join(out, x)).read() for x in ("result.json", "table.csv", "curve.csv")])
    assert texts[0] == texts[1], "one thread and two differ"
    risk = [row["risk"] for row in json.loads(texts[0][0])["rows"]]
    print(name, risk)
    assert abs(risk[0] / bayes - 1) < .03 and risk[1] < 1.02 * risk[0], risk
    assert risk[2] > affine and risk[3] > linear, risk

names = subprocess.run([program, "list"], check=True, stdout=subprocess.PIPE, text=True).stdout
assert [line.split()[0] for line in names.splitlines()] == ["digits", "classify", "denoise"], names

refused = subprocess.run([program, "digits", "--data", os.devnull, "--out", folder], stderr=subprocess.PIPE)
assert refused.returncode == 1 and b"no data" in refused.stderr, refused
print({name: row["error"] for name, row in rows.items()})

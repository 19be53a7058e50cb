#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/plot.py FOLDER PICTURE: the picture of an experiment of sattn-learn from the files that it wrote to FOLDER.

classify and denoise: left, how far training is from Bayes; right, the risks. digits: left, digits that no method has seen: clean, with noise, and what each method makes of the noisy one.
right, the mean squared error of each method over the seeds, with its standard error."""
import csv
import json
import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

LABELS = {
    "clean": "clean digit",
    "noise": "what is given: noise added",
    "best affine predictor": "best affine predictor",
    "linear attention, trained": "linear attention",
    "softmax attention over the tokens": "softmax attention\nover 1,400 digits",
    "the same with Bayes's score": "the same with\nBayes's score",
    "posterior mean of a mixture": "posterior mean of\na mixture (EM)",
    "mixture attention, closed form": "mixture attention,\nclosed form",
    "mixture attention, trained": "mixture attention,\ntrained",
}
BEST, GREY, LINEAR = "#0b6e4f", "#9aa5b1", "#c0504d"


def in_context(folder, picture, result):
    """Tasks drawn anew: the distance from Bayes over the steps of every seed, and the risks of all methods."""
    rows, colours = result["rows"], [GREY, BEST, GREY, LINEAR]
    paths = {}
    with open(os.path.join(folder, "curve.csv")) as file:
        for row in csv.DictReader(file):
            paths.setdefault((row["method"], row["seed"]), []).append((int(row["step"]), float(row["excess"])))
    figure, (curve, bars) = plt.subplots(1, 2, figsize=(11, 4.4), dpi=120, layout="constrained")
    colour = dict(zip([r["method"] for r in rows], colours))
    for (method, seed), path in paths.items():
        curve.semilogy(*zip(*path), color=colour[method], lw=1, label=method if seed == "0" else None)
    curve.set_xlabel("step")
    curve.set_ylabel("excess risk (squared distance from Bayes)")
    curve.legend(frameon=False)
    bars.barh(range(len(rows))[::-1], [r["risk"] for r in rows], color=colours, height=0.62)
    for place, r in zip(range(len(rows))[::-1], rows):
        bars.text(r["risk"], place, f" {r['risk']:.4g}", va="center", fontsize=9)
    bars.set_yticks(range(len(rows))[::-1], [r["method"] for r in rows], fontsize=8.5)
    bars.set_xlim(0, 1.2 * max(r["risk"] for r in rows))
    bars.set_xlabel(f"squared error, mean of {result['settings']['seeds']} seeds (lower is better)")
    for axes in (curve, bars):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle({"classify": "Classifying clusters in context", "denoise": "Denoising clusters in context"}[
        result["experiment"]], fontsize=14, x=0.01, ha="left")
    figure.savefig(picture)


def main(folder, picture):
    with open(os.path.join(folder, "result.json")) as file:
        result = json.load(file)
    if result["experiment"] != "digits":
        return in_context(folder, picture, result)
    examples = {}
    with open(os.path.join(folder, "examples.csv")) as file:
        for method, _, *pixels in csv.reader(file):
            examples.setdefault(method, []).append(list(map(float, pixels)))
    rows = [r for r in result["rows"] if r["method"] != "noise"]
    shown = ["clean"] + [r["method"] for r in result["rows"]]
    count = min(8, len(examples["clean"]))

    figure = plt.figure(figsize=(13, 7.2), dpi=120)
    grid = figure.add_gridspec(len(shown), count + 9, left=0.16, right=0.985, top=0.86, bottom=0.09,
                               wspace=0.08, hspace=0.08)
    for i, method in enumerate(shown):
        for j in range(count):
            axes = figure.add_subplot(grid[i, j])
            pixels = examples[method][j]
            axes.imshow([pixels[8 * k:8 * k + 8] for k in range(8)], cmap="gray_r", vmin=0, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_edgecolor(BEST if method == rows[-1]["method"] else "#d5dbe1")
            if j == 0:
                axes.set_ylabel(LABELS.get(method, method), rotation=0, ha="right", va="center", fontsize=9,
                                color=BEST if method == rows[-1]["method"] else "black")

    bars = figure.add_subplot(grid[1:, count + 3:])
    colours = [LINEAR if "affine" in r["method"] or "linear" in r["method"] else GREY for r in rows]
    colours[-1] = BEST
    places = range(len(rows))[::-1]
    bars.barh(places, [r["error"] for r in rows], xerr=[r["standard_error"] for r in rows], color=colours,
              height=0.62, error_kw={"lw": 1})
    for place, r in zip(places, rows):
        gain = f"{r['error']:.3f}" + (f"   {-r['gain_percent']:+.1f} %" if abs(r["gain_percent"]) > 1e-9 else "")
        bars.text(r["error"] + 0.04, place, gain, va="center", fontsize=9)
    bars.set_yticks(list(places), [LABELS.get(r["method"], r["method"]) for r in rows], fontsize=8.5)
    bars.set_xlim(0, 1.35 * max(r["error"] for r in rows))
    bars.set_xlabel(f"squared error per digit, mean of {result['settings']['seeds']} seeds (lower is better)")
    for side in ("top", "right"):
        bars.spines[side].set_visible(False)
    bars.tick_params(length=0)
    figure.suptitle("Attention that selects: denoising handwritten digits", fontsize=15, x=0.02, ha="left",
                    y=0.975)
    figure.text(0.02, 0.905, "Linear attention can only blur towards the average digit. Softmax attention over a mixture of "
                "Gaussians picks the kind of stroke it sees and restores it.", fontsize=10, color="#444")
    figure.savefig(picture)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/plot.py FOLDER PICTURE: the picture of an experiment of sattn-learn from the files that it wrote to FOLDER.

Any experiment: its panels, as result.json describes them. digits: left, digits that no method has seen: clean, with noise, and what each method makes of the noisy one.
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
ROLES = {"best": BEST, "grey": GREY, "linear": LINEAR}
CYCLE = ["#2b5d9b", "#d98c2b", "#7a4e9c", "#3b9c8f", "#b5476b", "#6b7a2f", "#555555"]
MARKS = {"line": dict(lw=1.3), "dashed": dict(lw=1.2, ls="--"), "dotted": dict(lw=1.2, ls=":"),
         "points": dict(marker="o", ms=3.5, ls="none")}


def draw_bars(axes, series):
    """One bar a series, from the top down, with its number."""
    places = range(len(series))[::-1]
    values = [s["points"][0][1] for s in series]
    colours = [next((ROLES[w] for w in s["style"].split() if w in ROLES), GREY) for s in series]
    axes.barh(places, values, color=colours, height=0.62)
    for place, value in zip(places, values):
        axes.text(value, place, f" {value:.4g}", va="center", fontsize=9)
    axes.set_yticks(list(places), [s["label"] for s in series], fontsize=8.5)
    axes.set_xlim(0, 1.2 * max(values))


def draw_map(figure, axes, series):
    """Values over a rectangle; -1 and 1 are the ends of the colours where the values stay within."""
    x0, x1, y0, y1 = series["box"]
    columns, z = series["columns"], [float("nan") if v is None else v for v in series["points"]]
    most = max(1.0, max(abs(v) for v in z if v == v))
    least = 0 if min(v for v in z if v == v) >= 0 else -most
    image = axes.imshow([z[i:i + columns] for i in range(0, len(z), columns)], origin="lower", extent=(x0, x1, y0, y1),
                        cmap="RdBu_r" if least else "viridis", vmin=least, vmax=max(v for v in z if v == v) if not least
                        else most, aspect="auto")
    figure.colorbar(image, ax=axes, shrink=0.85)


def draw_panel(figure, axes, panel):
    axes.set_title(panel["title"], fontsize=10.5, loc="left")
    axes.set_xlabel(panel["x"])
    axes.set_ylabel(panel["y"])
    series = [s for s in panel["series"] if s["points"]]
    if series and "bars" in series[0]["style"]:
        draw_bars(axes, series)
    else:
        cycle = iter(CYCLE * len(series))
        for s in series:
            if s["style"] == "map":
                draw_map(figure, axes, s)
                continue
            words = s["style"].split()
            colour = next((ROLES[w] for w in words if w in ROLES), None) or next(cycle)
            style = next((MARKS[w] for w in words if w in MARKS), MARKS["line"])
            axes.plot(*zip(*s["points"]), color=colour, alpha=0.35 if "faint" in words else 1, label=s["label"] or None,
                      **style)
        if panel["axes"] in ("logx", "loglog"):
            axes.set_xscale("log")
        if panel["axes"] in ("logy", "loglog"):
            axes.set_yscale("log")
        if any(s["label"] for s in series):
            axes.legend(frameon=False, fontsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)


def panels(picture, result):
    """What any experiment wrote: its panels side by side, three a row."""
    count = len(result["panels"])
    columns = min(count, 3)
    rows = -(-count // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(5.2 * columns, 4.1 * rows), dpi=120, layout="constrained",
                                squeeze=False)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, result["panels"]):
        draw_panel(figure, axes, panel)
    figure.savefig(picture)


def digits_rows(result):
    """method, error, its standard error, and how far it is below the best affine predictor in %"""
    numbers = {n["what"]: n for n in result["numbers"]}
    rows = []
    for method in (m for m in numbers if ":" not in m):
        values = numbers[method]["values"]
        mean, n = sum(values) / len(values), len(values)
        spread = (sum((v - mean) ** 2 for v in values) / n / (n - 1)) ** 0.5 if n > 1 else 0
        gain = numbers.get(method + ": % below the affine predictor", {"ours": 0})["ours"]
        rows.append(dict(method=method, error=mean, standard_error=spread, gain_percent=gain))
    return rows


def main(folder, picture):
    with open(os.path.join(folder, "result.json")) as file:
        result = json.load(file)
    if result["experiment"] != "digits":
        return panels(picture, result)
    result["rows"] = digits_rows(result)
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

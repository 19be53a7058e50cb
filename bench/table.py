#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Turns the JSON of the benchmarks and of the Python peers into the Markdown tables of
docs/performance.md. A time is the median of its repetitions; a ratio is that of two medians, and
behind it in brackets what the quartiles of the two allow. Usage:
    table.py JSON...                   prints all tables
    table.py --update PAGE.md JSON...  writes each between <!-- table NAME --> and <!-- end -->"""

import argparse
import re
import statistics
from pathlib import Path

from goals import goals_table
from results import Ratio, Results, elements, fastest_peer, markdown, ours, percent_of_peak

CONTEXT = ("date cpu load_avg library benchmark_compiler torch torch_kernels torch_blas numpy "
           "onnxruntime environment").split()


def cell(candidates, name, unit, digits=3):
    """The median time of a candidate in `unit` ns, or a dash if it did not run"""
    if name not in candidates:
        return "–"
    return f"{statistics.median(candidates[name]) / unit:.{digits}f}"


def against_peer(candidates):
    peer = fastest_peer(candidates)
    return f"{Ratio(candidates[peer], candidates[ours(candidates)])} {peer}" if peer else "–"


def times_table(results, prefix, head, unit=None):
    """One row per group, one column per candidate, ours first; without a unit: ns per element"""
    groups = {g: c for g, c in results.cpu.items() if re.match(prefix, g) and ours(c)}
    names = {name: None for candidates in groups.values() for name in candidates}
    columns = sorted(names, key=lambda name: (not name.startswith("sattn"), name))
    rows = []
    for group, candidates in groups.items():
        cells = [cell(candidates, name, unit or elements(group)) for name in columns]
        title = group.replace("/", " ").replace("mixture-", "").replace(" threads1", "")
        rows.append([title, *cells, against_peer(candidates)])
    return markdown([head, *columns, "ours against the fastest peer"], rows)


def mixture_table(results):
    rows = []
    for group, candidates in results.cpu.items():
        if not group.startswith("mixture"):
            continue
        row = [group.split("/")[0].split("-")[1], *group.split("/")[1:4]]
        for isa in ("avx512", "avx2"):
            row.append(cell(candidates, "sattn-" + isa, 1e6))
            if "sattn-" + isa in candidates:
                rate = elements(group) / statistics.median(candidates["sattn-" + isa])
                row += [f"{rate:.1f}", f"{percent_of_peak(results, group, isa):.0f} %"]
            else:
                row += ["–", "–"]
        rows.append([*row, against_peer(candidates)])
    rates = ["ms", "GF/s", "of peak"]
    header = ["pass", "type", "covariance", "M x C x D", "AVX-512 " + rates[0], *rates[1:]]
    return markdown([*header, "AVX2 " + rates[0], *rates[1:], "against plain C"], rows)


def attention_table(results):
    rows = []
    for group, candidates in results.cpu.items():
        if not group.startswith("attention") or not group.endswith("threads1"):
            continue
        row = [group.split("/")[0].split("-")[1], *group.split("/")[1:4]]
        for isa in ("avx512", "avx2"):
            row.append(cell(candidates, "sattn-" + isa, 1e6))
            rate = elements(group) / statistics.median(candidates["sattn-" + isa])
            row += [f"{rate:.1f}", f"{percent_of_peak(results, group, isa):.0f} %"]
        rows.append([*row, against_peer(candidates)])
    header = ["pass", "type", "variant", "H x M x N x D", "AVX-512 ms", "GF/s", "of peak", "AVX2 ms",
              "GF/s", "of peak", "against oneDNN"]
    return markdown(header, rows)


def threads_table(results):
    rows = []
    for group, one in results.wall.items():
        two = results.wall.get(group.replace("threads1", "threads2"))
        if group.endswith("threads1") and two:
            title, name = " ".join(group.split("/")[:-1]), ours(one)
            ratio = str(Ratio(one[name], two[name]))
            rows.append([title, cell(one, name, 1e6), cell(two, name, 1e6), ratio])
    return markdown(["operation", "1 thread, ms (wall)", "2 threads, ms", "faster by"], rows)


def losses_table(files):
    """Where a peer is faster than the library's fastest row, or an AVX2 peer than the AVX2 row"""
    rows = []
    for results in files:
        for group, candidates in results.cpu.items():
            avx2 = {name: times for name, times in candidates.items() if name.endswith("-avx2")}
            for these in (candidates, avx2):
                peer, name = fastest_peer(these), ours(these)
                if peer and name and (ratio := Ratio(these[peer], these[name])).value < 0.97:
                    rows.append([group.replace("/", " "), name, peer, str(ratio), results.name])
    header = ["operation", "ours", "fastest peer", "its time / ours", "file"]
    return markdown(header, rows) if rows else "Nowhere in these files."


def calls_table(*files):
    rows = [[group.replace("/", " "),
             *(cell(candidates, "sattn-" + isa, 1, 0) for isa in ("avx512", "avx2", "scalar"))]
            for results in files for group, candidates in results.cpu.items() if "-call/" in group]
    return markdown(["call of n elements", "AVX-512 ns", "AVX2 ns", "scalar ns"], rows)


def context_table(files):
    rows = []
    for results in files:
        known = [f"{name} {results.context[name]}" for name in CONTEXT if results.context.get(name)]
        rows.append([results.name, "; ".join(known)])
    return markdown(["file", "made with"], rows)


def tables(files):
    """{name: Markdown} of all that the files allow"""
    named = {results.name: results for results in files}
    made = {"context": context_table(files), "goals": goals_table(named)}
    made["losses"] = losses_table(files)
    for name in ("exp", "softmax", "elementwise"):
        if name in named:
            made[name] = times_table(named[name], "(exp|softmax)/", "ns per element")
    for name in ("softmax", "elementwise"):
        if name in named:
            more = times_table(named[name], "softmax-(axis|backward)/", "ns per element")
            made[name + "-more"] = more
    if "exp" in named and "softmax" in named:
        made["calls"] = calls_table(named["exp"], named["softmax"])
    if "mixture" in named:
        made["mixture"] = mixture_table(named["mixture"])
    if "attention" in named:
        made["attention"] = attention_table(named["attention"])
    if "threads" in named:
        made["threads"] = threads_table(named["threads"])
    for name in named:
        if name.startswith("torch"):
            made[name] = "\n\n".join(times_table(named[name], prefix, "ms", 1e6) for prefix in
                                     (r"mixture-\w+/\w+/full", r"mixture-\w+/\w+/(diag|zero)"))
    return made


def update(page, made):
    text = page.read_text(encoding="utf-8")
    for name, table in made.items():
        text = re.sub(
            rf"(<!-- table {name} -->\n).*?(<!-- end -->)",
            lambda m, t=table: f"{m[1]}{t}\n{m[2]}",
            text,
            flags=re.DOTALL,
        )
    page.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", type=Path, metavar="PAGE", help="page whose tables to replace")
    parser.add_argument("json", nargs="+")
    options = parser.parse_args()
    made = tables([Results(path) for path in options.json])
    if options.update:
        update(options.update, made)
    else:
        print("\n\n".join(f"## {name}\n\n{table}" for name, table in made.items()))


if __name__ == "__main__":
    main()

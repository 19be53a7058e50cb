# SPDX-License-Identifier: BSD-2-Clause
"""The goals of docs/performance.md with what was measured beside each. A goal is text and a
function from {file: Results} to what was measured; without the files that it needs it says so."""

from results import Ratio, fastest_peer, markdown, ours, percent_of_peak

SHAPES = ("4096x64x64", "1024x512x128", "65536x8x16")


def against(files, file, group, candidate, peer):
    found = files[file].cpu[group]
    return str(Ratio(found[peer], found[candidate]))


def exp_f32(files, isa):
    return against(files, "exp", "exp/f32/128KiB/plain", "sattn-" + isa, "sleef-" + isa) + " SLEEF"


def exp_f32_runtime(files):
    found = files["elementwise"].cpu["exp/f32/512KiB/plain"]
    return f"{Ratio(found['onnxruntime'], found[ours(found)])} at 512 KiB, through Python"


def exp_f64(files):
    return against(files, "exp", "exp/f64/128KiB/plain", "sattn-avx512", "sleef-avx512") + " SLEEF"


def exp_special(files):
    """Time of each kind of data over that of plain data"""
    cells = []
    for data in ("masked", "tiny", "subnormal"):
        ratios = []
        for kind in ("f32", "f64"):
            for isa in ("avx512", "avx2"):
                plain, other = (
                    files["exp"].cpu[f"exp/{kind}/128KiB/{d}"]["sattn-" + isa]
                    for d in ("plain", data)
                )
                ratios.append(f"{Ratio(other, plain).value:.2f}")
        cells.append(f"{data} {', '.join(ratios)}")
    return "; ".join(cells) + " (f32 AVX-512, AVX2, f64 AVX-512, AVX2)"


def exp_copy(files):
    found = files["exp"].cpu["exp/f32/64MiB/plain"]
    return f"{Ratio(found['copy'], found['sattn-avx512'])} of copy"


def softmax_l2(files, file="softmax", size="256KiB"):
    cells = []
    for group, found in files[file].cpu.items():
        if group.startswith(f"softmax/f32/{size}/"):
            peer = fastest_peer(found)
            cells.append((Ratio(found[peer], found[ours(found)]).value, group.split("/")[3], peer))
    least, most = min(cells), max(cells)
    return (
        f"{least[0]:.2f} (n = {least[1]}, {least[2]}) to {most[0]:.2f} (n = {most[1]}); "
        f"{sum(cell[0] >= 1.05 for cell in cells)} of {len(cells)} lengths reach 1.05"
    )


def softmax_runtime(files):
    return softmax_l2(files, "elementwise", "512KiB")


def softmax_memory(files):
    return ", ".join(
        f"n = {n}: {Ratio(found['copy'], found[ours(found)]).value:.0%}"
        for n in (16, 128, 1024, 4096, 32768)
        for found in [files["softmax"].cpu[f"softmax/f32/64MiB/{n}"]]
    )


def mixture_percent(files, operation, kind="f32"):
    cells = [
        f"{percent_of_peak(files['mixture'], f'{operation}/{kind}/full/{shape}/threads1', isa):.0f}"
        for isa in ("avx512", "avx2")
        for shape in SHAPES
    ]
    return f"{' / '.join(cells[:3])} % AVX-512, {' / '.join(cells[3:])} % AVX2"


def mixture_torch(files, operation, kind="full", shapes=SHAPES):
    cells = []
    for shape in shapes:
        found = files["torch-tuned"].cpu[f"{operation}/f32/{kind}/{shape}/threads1"]
        peer = fastest_peer(found)
        cells.append(f"{Ratio(found[peer], found[ours(found)])} {peer.removeprefix('torch-')}")
    return (
        "; ".join(cells)
        + f" (torch {files['torch-tuned'].context['torch']}, tuned, its fastest form)"
    )


ATTENTION = ("8x512x512x64", "1x2048x2048x64", "8x512x512x128", "1x2048x2048x128")


def attention_percent(files, operation):
    cells = [
        f"{percent_of_peak(files['attention'], f'{operation}/f32/full/{shape}/threads1', isa):.0f}"
        for isa in ("avx512", "avx2")
        for shape in ATTENTION
    ]
    return f"{' / '.join(cells[:4])} % AVX-512, {' / '.join(cells[4:])} % AVX2"


def attention_peer(files):
    cells = []
    for group, found in files["attention"].cpu.items():
        if fastest_peer(found) == "onednn":
            shape = group.split("/")[3]
            cells.append(f"{shape} {Ratio(found['onednn'], found[ours(found)]).value:.2f}")
    return ", ".join(cells) + " (oneDNN)"


def attention_variants(files):
    """Time for each pair that is live, over that of attention without a mask"""
    cells = []
    for operation in ("forward", "backward"):
        found = files["attention"].cpu
        plain = found[f"attention-{operation}/f32/full/1x2048x2048x64/threads1"]
        for variant, pairs in (("causal", 0.5), ("mask", 0.9), ("bias", 1), ("grouped", 1)):
            other = found[f"attention-{operation}/f32/{variant}/4x2048x2048x64/threads1"]
            ratio = Ratio(other[ours(other)], plain[ours(plain)]).value / 4 / pairs
            cells.append(f"{operation} {variant} {ratio:.2f}")
    return ", ".join(cells)


def threads(files):
    """The gain of two threads: of what takes one more than 100 us, then of the rest"""
    long, short = [], []
    for group, one in files["threads"].wall.items():
        if group.endswith("threads1"):
            two = files["threads"].wall[group.replace("threads1", "threads2")]
            ratio = Ratio(one[ours(one)], two[ours(two)])
            title = " ".join(group.split("/")[:-1])
            (long if ratio.a > 1e5 else short).append((ratio.value, title))
    cells = []
    for name, part in (("above", sorted(long)), ("below", sorted(short))):
        if part:
            (least, where), (middle, _), (most, _) = part[0], part[len(part) // 2], part[-1]
            cells.append(f"{name}: {least:.2f} ({where}) to {most:.2f}, median {middle:.2f}")
    return "; ".join(cells)


def calls(files):
    worst = [
        max(
            (sorted(times)[len(times) // 2], group)
            for group, found in files[file].cpu.items()
            if "-call/" in group and group.endswith("/1")
            for name, times in found.items()
            if name == ours(found)
        )
        for file in ("exp", "softmax")
    ]
    return ", ".join(
        f"{time:.0f} ns ({group.split('/')[0]} {group.split('/')[1]})" for time, group in worst
    )


def scratch(files):
    work, group = max((work, group) for group, work in files["mixture"].work.items())
    return f"at most {work / 1024:.0f} KiB in all ({' '.join(group.split('/')[1:4])})"


GOALS = (
    ("exp f32, AVX-512, 128 KiB", ">= 2.3x SLEEF u10", lambda f: exp_f32(f, "avx512")),
    ("", ">= 1.5x ONNX Runtime", exp_f32_runtime),
    ("exp f32, AVX2", ">= 2.0x SLEEF", lambda f: exp_f32(f, "avx2")),
    ("exp f64, AVX-512", ">= 2.1x SLEEF", exp_f64),
    (
        "exp, 1 in 64 masked, or subnormal results",
        "<= 1.1x the time of plain data, every row",
        exp_special,
    ),
    ("exp, 64 MiB", ">= 0.97 of copy", exp_copy),
    ("softmax f32 in L2, every n", ">= 1.05x the fastest peer (n = 16: >= 3x)", softmax_l2),
    ("", "the same against torch and ONNX Runtime, 512 KiB, through Python", softmax_runtime),
    ("softmax f32, 64 MiB", ">= 85 % of copy for n >= 128, >= 75 % for n = 16", softmax_memory),
    (
        "mixture forward f32, full, " + ", ".join(SHAPES),
        ">= 88 / 88 / 80 % of FMA peak",
        lambda f: mixture_percent(f, "mixture-forward"),
    ),
    ("", ">= 2.8x / 1.9x / 15x tuned torch", lambda f: mixture_torch(f, "mixture-forward")),
    (
        "mixture forward + backward f32, full",
        ">= 78 % of FMA peak (D >= 64)",
        lambda f: mixture_percent(f, "mixture-both"),
    ),
    ("", ">= 2.5x / 1.5x / 7x tuned torch autograd", lambda f: mixture_torch(f, "mixture-both")),
    (
        "mixture forward, diagonal",
        ">= 1.2x torch's matmul form at D >= 64, >= 5x at D = 16",
        lambda f: mixture_torch(f, "mixture-forward", "diag"),
    ),
    (
        "mixture forward + backward, diagonal",
        "the same",
        lambda f: mixture_torch(f, "mixture-both", "diag"),
    ),
    (
        "the same in f64",
        "the same percentages: forward",
        lambda f: mixture_percent(f, "mixture-forward", "f64"),
    ),
    ("", "forward + backward", lambda f: mixture_percent(f, "mixture-both", "f64")),
    (
        "attention forward f32, N >= 512: " + ", ".join(ATTENTION),
        ">= 90 % of FMA peak",
        lambda f: attention_percent(f, "attention-forward"),
    ),
    ("", ">= 1.12x the better of ONNX Runtime and oneDNN", attention_peer),
    (
        "attention backward f32",
        ">= 80 % of FMA peak",
        lambda f: attention_percent(f, "attention-backward"),
    ),
    ("attention f32, time of a live pair", "<= 1.05-1.10x of the unmasked", attention_variants),
    ("two threads", ">= 1.9x one above 100 us, no slower below", threads),
    ("smallest call", "<= 100 ns, no allocation", calls),
    ("workspace of the mixture", "<= 1 MiB a thread", scratch),
)


def goals_table(files):
    rows = []
    for area, goal, measured in GOALS:
        try:
            rows.append([area, goal, measured(files)])
        except (KeyError, ValueError):
            rows.append([area, goal, "not measured"])
    return markdown(["area", "goal", "measured"], rows)

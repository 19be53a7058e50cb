# SPDX-License-Identifier: BSD-2-Clause
"""exp.py ROOT GAPPA SOLLYA: proves that exp f64 is less than 0.67 ULP from the exact value.

The constants are read from simd/elementary.h and simd/vec.h. With z = x - k/8 ln 2, the result before its last
rounding is power (1 + p), where

    power = (1 + table) scale 2^(k/8)                       TABLE, of the entries, by Sollya
    1 + p = (1 + horner) (1 + exact polynomial)             HORNER, what rounding adds, by Gappa
    scale (1 + exact polynomial) = (1 + approximation) exp(r)    APPROXIMATION, a certified norm, by Sollya
    exp(r) = (1 + shift) exp(z), |shift| < |r - z| (1 + 2^-50)   SHIFT, of the reduced argument, by Gappa

so the product of the brackets, less 1, is its relative error, at most C 2^-53. That makes at most C ULP, since a
number is less than 2^53 of its ULPs, and the last rounding 0.5. A subnormal result is first rounded as a
normal number times 2^1074, which is below 2^52, then to a whole number: 0.5 + (0.5 + C) / 2 of the least
subnormal number. f32 needs no proof: check_exp_all.c looks at every float."""
from fractions import Fraction
import pathlib
import re
import subprocess
import sys

if len(sys.argv) < 4:
    print("there is no gappa or no sollya")
    sys.exit(77)  # skipped
ROOT, GAPPA, SOLLYA = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
FOLDER = pathlib.Path(__file__).parent
C = 0.17
HEX = r"-?0x1(?:\.[0-9a-f]+)?p[-+]?\d+"
WIDTH = "log(2) / 16 + 2^-39"  # of half a step of 1/8, and what the rounding of x / ln 2 adds


def run(tool, text):
    done = subprocess.run([tool], input=text, text=True, capture_output=True, timeout=250)
    output = done.stdout + done.stderr
    if done.returncode or re.search("error|warning|not ", output, re.I):
        sys.exit(f"{tool} says\n{output}\nof\n{text}")
    return output


def prove(name, values):
    text = (FOLDER / name).read_text()
    print(run(GAPPA, re.sub("@([A-Z0-9_]+)@", lambda word: values[word[1]], text)), end="")


code = (ROOT / "simd/elementary.h").read_text()
high, low = re.findall(HEX, re.findall(r"sattn_ln2\[\] = \{(.*?)\};", code)[1])
poly = re.findall(HEX, re.findall(r"sattn_exp_poly\[\] = \{(.*?)\};", code, re.S)[1])
inverse = re.search(rf"v_set\(\(R\)({HEX})\), v_set\(V_ROUNDER\)", code)[1]
layer = (ROOT / "simd/vec.h").read_text().split("#define V_ROUNDER")[2]
rounder = re.search(HEX, layer)[0]
entries = [2**52 + int(bits, 16) % 2**52 for bits in re.findall(r"F\(\d, (0x[0-9a-f]+)\)", layer)]
assert len(poly) == 8 and len(entries) == 8

bounds = run(SOLLYA, f"""
    prec = 300!;
    procedure bound(word, value) {{ print(word, round(value, 24, RU)); }};
    display = powers!;
    T = [|{", ".join(map(str, entries))}|];
    q = {" + ".join(f"({c}) * x^{7 - i}" for i, c in enumerate(poly))};
    scale = T[0] * 2^-52;
    worst = 0;
    for i from 0 to 7 do {{ worst = max(worst, abs(T[i] * 2^-52 / (scale * 2^(i / 8)) - 1)); }};
    bound("TABLE", worst);
    bound("APPROXIMATION", sup(supnorm(scale * (1 + q), exp(x), [-({WIDTH}); {WIDTH}], relative, 2^-10)));
    bound("REST", abs(log(2) - {high} - {low}));
    bound("REDUCED", {WIDTH} + 2^-57);
    quit;
    """)
values = dict(line.split(None, 1) for line in bounds.splitlines())
values = {word: re.sub(r"\s*\*\s*2\^\((-?\d+)\)", r"b\1", value) for word, value in values.items()}
values |= {"LN2_HIGH": high, "LN2_LOW": low, "INVERSE": inverse, "ROUNDER": rounder,
           "SHIFT": "1025b-68", "HORNER": "154b-64"}
values["STEPS"] = "\n".join(
    line.format(i, f"{name}{i - 1}" if i > 1 else poly[0], c)
    for name, line in [("p", "p{0} = rnd({1} * r + {2});"), ("e", "e{0} = {1} * r + {2};")]
    for i, c in enumerate(poly) if i)
prove("exp_reduction.gappa", values)
prove("exp_rounding.gappa", values)
product = 1
for word in ["TABLE", "HORNER", "APPROXIMATION", "SHIFT"]:
    whole, power = values[word].split("b")
    error = Fraction(whole) * Fraction(2) ** int(power)
    print(f"{word:14} {float(error * 2**53):.4f} ULP")
    product *= 1 + error * (1 + Fraction(2) ** -50)
if product - 1 > C / 2**53:
    sys.exit(f"in all {float((product - 1) * 2**53)} ULP")
print(f"exp f64 is at most {0.5 + C} ULP off; subnormal results {0.5 + (0.5 + C) / 2} of 2^-1074")

# SPDX-License-Identifier: BSD-2-Clause
"""check_symbols.py ROOT LIBRARY NM READELF: the library exports the reviewed list, symbols.txt, which headers and version
script repeat; it bears its soname, stays loaded, and needs nothing but libc, libm and an OpenMP runtime."""
import pathlib
import re
import subprocess
import sys

root, library, nm, readelf = pathlib.Path(sys.argv[1]), *sys.argv[2:]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


reviewed = (root / "tests/abi/symbols.txt").read_text("utf-8").split()
headers = "".join(h.read_text("utf-8") for h in (root / "include/sattn").glob("*.h"))
lists = {
    "the library": re.findall(r" [TBDRVW] (\w+)", output(nm, "-D", "--defined-only", library)),
    "the headers": re.findall(r"^SATTN_API[^;()]*?(\w+)\(", headers, re.M),
    "lib/sattn.map": re.findall(r"^\s+(\w+);", (root / "lib/sattn.map").read_text("utf-8"), re.M),
}
found = [f"{name}: {where} {'lacks it' if name in reviewed else 'has it, symbols.txt lacks it'}"
         for where, names in lists.items() for name in sorted(set(names) ^ set(reviewed))]
if reviewed != sorted(set(reviewed)):
    found.append("symbols.txt is not sorted")

dynamic = output(readelf, "-dW", library)
segments = output(readelf, "-lW", library)
needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
found += [f"needs {name}" for name in needed
          if not re.match(r"lib(c|m|gomp|omp|pthread)\.so|libomp-\d+\.so|libgcc_s\.so|ld-linux", name)]
for what, present in {
    "soname libsattn.so.0": "[libsattn.so.0]" in dynamic,
    "flag NODELETE": "NODELETE" in dynamic,
    "no text relocation": "TEXTREL" not in dynamic,
    "a stack that is not executable": re.search(r"GNU_STACK.* RW ", segments),
}.items():
    if not present:
        found.append(f"missing: {what}")
print("\n".join(found) or f"{len(reviewed)} symbols are in order")
sys.exit(bool(found) or not reviewed)

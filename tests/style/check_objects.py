# SPDX-License-Identifier: BSD-2-Clause
"""check_objects.py BUILD NM OBJDUMP: what the compiler made of the layers.

Objects that run on every processor hold no instruction of AVX or later, those of the avx2 row none of AVX-512; kernels
call nothing but what compilers make of loops and, in the scalar row, fma; every global name begins with sattn_."""
import pathlib
import re
import subprocess
import sys

build, nm, objdump = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
BY_COMPILERS = {"memset", "memcpy", "memmove", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
EVEX = re.compile(r"%zmm|%[xy]mm(1[6-9]|2\d|3[01])|%k[0-7]\b")


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def faults(part, path):
    for line in lines(nm, "-g", str(path)):
        kind, name = line.split()[-2:]
        if kind in "UwW" and part.startswith("libsimd_"):
            allowed = BY_COMPILERS | ({"fma", "fmaf"} if "scalar" in part else set())
            if not name.startswith("sattn_") and name not in allowed:
                yield f"imports {name}"
        if kind not in "Uw" and not name.startswith("sattn_"):
            yield f"defines the global name {name}"
    if "avx512" in part or "neon" in part:
        return
    for line in lines(objdump, "-d", "--no-show-raw-insn", str(path)):
        instruction = re.match(r"\s+[0-9a-f]+:\s+(\S+)(.*)", line)
        if not instruction:
            continue
        if "avx2" in part:
            bad = EVEX.search(instruction[2])
        else: # on other architectures no mnemonic that matters here begins with v and an AVX register
            bad = instruction[1].startswith("v") and "%" in instruction[2]
        if bad:
            yield f"holds {instruction[0].strip()}"
            return


objects = [(part, path) for part in ("libsattn_core.a.p", "liblib_f32.a.p", "liblib_f64.a.p", "libsimd_*.a.p")
           for path in sorted(build.glob(f"{part}/*.o"))]
found = [f"{path.relative_to(build)}: {fault}" for _, path in objects for fault in faults(path.parent.name, path)]
print("\n".join(found) or f"{len(objects)} objects are in order")
sys.exit(bool(found) or len(objects) < 40)

# SPDX-License-Identifier: BSD-2-Clause
"""check_sources.py ROOT: who may include whom, how long a file may be, how a line may look."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
C = (".c", ".h", ".cc", ".hpp", ".def")
TEXT = C + (".py", ".sh", ".build", ".md", ".map", ".in", ".sollya", ".gappa", ".txt", "")
TOP = ["include", "lib", "simd", "bench", "tests", "ffi", "docs", "cmake", ".ci"]
files = [f for top in TOP for f in sorted((root / top).rglob("*")) if f.is_file() and f.suffix in TEXT]
files += [f for f in sorted(root.iterdir()) if f.is_file() and f.suffix in TEXT]
files = {f.relative_to(root).as_posix(): f.read_text("utf-8", errors="replace") for f in files
         if "__pycache__" not in f.parts}

# file pattern -> pattern of what its #include lines may name; the first line that matches a file counts
SYSTEM = r"<[a-z/_0-9]+(\.h|\.hpp)?>"
LAYERS = [
    (r"include/sattn/", r'"[a-z]+\.h"|<stdint\.h>'),
    (r"simd/vec_[a-z0-9]+\.h", r"<(stdint|stddef|string|math|immintrin|arm_neon)\.h>"),
    (r"simd/", r'"[a-z_0-9]+\.(h|def)"|"sattn/(mixture|base)\.h"|<(stdint|stddef)\.h>'),
    (r"lib/par\.c", rf'"(par\.h|sattn/base\.h)"|{SYSTEM}'),
    (r"lib/", rf'"[a-z_]+\.h"|"sattn/[a-z]+\.h"|"\.\./simd/kernels\.h"|(?!<omp\.h>|<immintrin|<arm_neon){SYSTEM}'),
    (r"tests/oracle/", rf'"[a-z_]+\.h"|{SYSTEM}'),
    (r"bench/", rf'"(\.\./)?[a-z_/]+\.(h|hpp)"|"sattn/[a-z]+\.h"|{SYSTEM}'),
]
# file pattern -> lines at most (the first that matches)
BUDGETS = [(r"include/.*\.h", 200), (r"simd/[a-z_]+\.c", 150), (r"simd/", 300), (r"lib/", 300),
           (r"meson\.build", 150)]
FORBIDDEN = [(r"\t", "a tab"), (r"[ ]$", "a space at the end"), (r"(^|[^\w.])/(work|root|tmp|home)/", "a path of one machine"),
             (r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b", "an unfinished thought")]


def first(table, name):
    return next((value for pattern, value in table if re.match(pattern, name)), None)


def faults(name, text):
    lines = text.splitlines()
    suffix = pathlib.Path(name).suffix
    if suffix in C + (".py", ".sh", ".build", ".sollya", ".gappa") or text.startswith("#!"):
        if not any("SPDX-License-Identifier: BSD-2-Clause" in line for line in lines[:3]):
            yield 1, "no SPDX line"
    limit = first(BUDGETS, name)
    if limit and len(lines) > limit:
        yield len(lines), f"more than {limit} lines"
    allowed = first(LAYERS, name)
    for number, line in enumerate(lines, 1):
        include = re.match(r"\s*#\s*include\s+(\S+)", line)
        if include and allowed and not re.fullmatch(allowed, include[1]):
            yield number, f"includes {include[1]}"
        if re.match(r"(lib|simd)/(?!par\.c)", name) and name != "lib/par.c" and "#pragma omp" in line:
            yield number, "OpenMP outside lib/par.c"
        if suffix in C and len(line) > 100:
            yield number, f"{len(line)} columns"
        for pattern, what in FORBIDDEN:
            if re.search(pattern, line):
                yield number, what


found = [f"{name}:{line}: {fault}" for name, text in files.items() for line, fault in faults(name, text)]
print("\n".join(found) or f"{len(files)} files are in order")
sys.exit(bool(found) or len(files) < 50)

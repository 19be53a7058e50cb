#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_headers.sh INCLUDE LANGUAGE STANDARD COMPILER...: each public header compiles alone, without a warning, and
# defines no macro but SATTN_... and what <stdint.h> defines.
include=$1 language=$2 standard=$3
shift 3
compiler=$*
compile() { # source on stdin
    $compiler "$@" -x "$language" -std="$standard" -I "$include" -Wall -Wextra -Wpedantic -Wshadow -Wundef \
        -Werror - -o -
}
macros() { # of a header
    echo "#include <$1>" | compile -dM -E | sed 's/^#define \([A-Za-z_0-9]*\).*/\1/' | sort
}
if ! echo 'int one;' | compile -fsyntax-only 2>/dev/null; then
    echo "$compiler does not compile $language"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
macros stdint.h >"$work/before"
failed=0 count=0
for header in "$include"/sattn/*.h; do
    name=sattn/${header##*/}
    echo "#include <$name>" | compile -fsyntax-only || failed=1
    macros "$name" >"$work/after"
    leaked=$(comm -13 "$work/before" "$work/after" | grep -v '^SATTN_')
    if [ -n "$leaked" ]; then
        echo "$name defines" $leaked
        failed=1
    fi
    count=$((count + 1))
done
echo "$count headers"
[ "$count" -ge 8 ] && exit $failed

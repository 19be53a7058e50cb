#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_subproject.sh ROOT SOURCES: a Meson project that carries this checkout as a subproject builds and runs.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/subprojects"
ln -s "$1" "$work/subprojects/libsattn"
cp "$2/user.c" "$work"
cat >"$work/meson.build" <<EOF
project('user', 'c')
executable('user', 'user.c', dependencies: dependency('sattn', fallback: 'libsattn'))
EOF
meson setup "$work/build" "$work" >"$work/log" && ninja -C "$work/build" >>"$work/log" || { cat "$work/log"; exit 1; }
if grep 'warning:' "$work/log"; then
    exit 1
fi
"$work/build/user"

#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_install.sh BUILD SOURCES COMPILER...: installs into a folder, moves the folder, and builds a program against what
# is there with pkg-config and, where there is CMake, find_package.
set -eu
build=$1 sources=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DESTDIR=$work/staged meson install -C "$build" --no-rebuild --quiet
mv "$work/staged" "$work/moved"
pc=$(find "$work/moved" -name sattn.pc)
export PKG_CONFIG_PATH="${pc%/*}"
so=$(find "$work/moved" -name libsattn.so.0)
export LD_LIBRARY_PATH="${so%/*}"

# --define-prefix would mend a prefix that is not relative; it must not be needed
"$@" "$sources/user.c" -o "$work/user" $(pkg-config --dont-define-prefix --cflags --libs sattn)
"$work/user"
echo "pkg-config: version $(pkg-config --modversion sattn)"
LD_LIBRARY_PATH='' ldd "$work/user" | grep -q 'libsattn.so.0 => not found'

if command -v cmake >/dev/null; then
    mkdir "$work/project"
    cp "$sources/user.c" "$work/project"
    cat >"$work/project/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(sattn 0.3 REQUIRED)
add_executable(user user.c)
target_link_libraries(user sattn::sattn)
EOF
    CC=$* cmake -G Ninja -S "$work/project" -B "$work/project/build" -Dsattn_DIR="$(find "$work/moved" -path '*cmake/sattn')" \
        >"$work/log" && cmake --build "$work/project/build" >>"$work/log" || { cat "$work/log"; exit 1; }
    "$work/project/build/user"
    echo "find_package: found"
    sed -i 's/sattn 0.3/sattn 0.2.9/' "$work/project/CMakeLists.txt"
    if cmake -G Ninja -S "$work/project" -B "$work/project/other" -Dsattn_DIR="${so%/*}/cmake/sattn" >/dev/null 2>&1; then
        echo "find_package accepts another minor version"
        exit 1
    fi
fi

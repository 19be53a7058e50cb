#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_node.sh PACKAGE LIBRARY WORK: the tests of the package, in a copy where koffi can be installed. 77 = no koffi to be had.
set -eu
export SATTN_LIBRARY="$2"
mkdir -p "$3"
cp -r "$1/." "$3"
cd "$3"
[ -d node_modules/koffi ] || timeout 100 npm install --ignore-scripts --no-audit --no-fund --silent || exit 77
node --test test/

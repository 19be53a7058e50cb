#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_rust.sh CRATE LIBRARY_FOLDER TARGET: the tests of the crate, which needs no other crate.
set -eu
export SATTN_LIB_DIR="$2" LD_LIBRARY_PATH="$2" CARGO_TARGET_DIR="$3"
cargo test --offline --locked --quiet --manifest-path "$1/Cargo.toml"

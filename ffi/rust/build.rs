// SPDX-License-Identifier: BSD-2-Clause
//! Finds libsattn: in the folder SATTN_LIB_DIR, or where pkg-config says.
use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=SATTN_LIB_DIR");
    println!("cargo:rustc-link-lib=dylib=sattn");
    if let Ok(folder) = env::var("SATTN_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        return;
    }
    let found = Command::new("pkg-config").args(["--variable=libdir", "sattn"]).output();
    if let Ok(output) = found {
        let folder = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            println!("cargo:rustc-link-search=native={}", folder.trim());
        }
    }
}

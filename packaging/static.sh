#!/usr/bin/env bash
# Builds the program with the C library inside: static.sh [PROFILE]. The result is target/ARCH-unknown-linux-gnu/PROFILE/canonym.
# Needs the C library for static linking, libc.a: in the package libc6-dev of Debian and Ubuntu, glibc-static of Fedora.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-dist}
if [ "$(cc -print-file-name=libc.a)" = libc.a ]; then
    echo "libc.a is not installed; it is in the package libc6-dev (Debian, Ubuntu) or glibc-static (Fedora)" >&2
    exit 1
fi
target=$(uname -m)-unknown-linux-gnu
# With a target, macros and build scripts are built without the flags.
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" cargo build --locked --profile "$profile" --target "$target" -p canonym-cli

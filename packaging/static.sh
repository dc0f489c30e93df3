#!/usr/bin/env bash
# Builds the program with the C library inside: static.sh [PROFILE]. The result is target/ARCH-unknown-linux-gnu/PROFILE/canonym.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-dist}
target=$(uname -m)-unknown-linux-gnu
# With a target, macros and build scripts are built without the flags.
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" cargo build --locked --profile "$profile" --target "$target" -p canonym-cli

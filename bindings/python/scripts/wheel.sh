#!/usr/bin/env bash
# Builds the wheel into target/wheels: wheel.sh PYTHON FOLDER PROFILE. maturin is installed into a virtual environment in FOLDER.
set -euo pipefail
cd "$(dirname "$0")/../../.."
python=$1 tools=$2 profile=$3

if [ ! -x "$tools/bin/maturin" ]; then
    "$python" -m venv "$tools"
    "$tools/bin/pip" install --quiet "maturin>=1.9,<2"
fi
rm -f target/wheels/canonym-*.whl
"$tools/bin/maturin" build --locked --profile "$profile" --manifest-path bindings/python/Cargo.toml --out target/wheels

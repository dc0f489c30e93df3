#!/usr/bin/env bash
# All checks of the application: generated types, type checks, unit tests, a reproducible build, and browser tests.
# CANONYM_URL names a server to test; without it, the mock is used. CANONYM_BIN names a program that further tests start as a server. Installs chromium with apt-get if needed.
set -euo pipefail
cd "$(dirname "$0")/.."

npm ci --no-audit --no-fund
npm run types -- --check
npm run check
npm test
npm run build
first=$(cd dist && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
npm run build
second=$(cd dist && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
if [ "$first" != "$second" ]; then
    echo "the build is not reproducible" >&2
    exit 1
fi
if [ -d ../crates/canonym-serve/assets/app ]; then
    npm run embed -- --check
fi

if ! command -v chromium >/dev/null && [ -z "${CHROMIUM:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core fonts-noto-color-emoji >/dev/null
fi
npm run e2e
if [ -n "${CANONYM_BIN:-}" ]; then
    npm run e2e:served
fi

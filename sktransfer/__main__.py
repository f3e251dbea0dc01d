"""``python -m sktransfer``."""

import sys

from sktransfer.cli import main

if __name__ == "__main__":
    sys.exit(main())

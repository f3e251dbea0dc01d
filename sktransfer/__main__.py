"""``python -m sktransfer``."""

import sys

from sktransfer._cli import main

if __name__ == "__main__":
    sys.exit(main())

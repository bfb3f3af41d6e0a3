"""``python -m mcrank`` is the command ``mcrank``."""

import sys

from mcrank.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""Makes sure that there is a chromium: ``python tests/browser/install.py`` takes Debian's where none is found."""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL_S = 900


def found():
    """The chromium of this machine, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def main():
    """Find or install it; 1 when it cannot be had."""
    if found() is None and shutil.which("apt-get") and os.geteuid() == 0:
        for arguments in (["update", "-qq"], ["install", "-qq", "--yes", "chromium"]):
            subprocess.run(["apt-get", *arguments], check=False, capture_output=True, timeout=INSTALL_S)
    there = found()
    print(f"chromium: {there or 'not to be had; tests that need it are skipped, and say so'}")
    return int(there is None)


if __name__ == "__main__":
    sys.exit(main())

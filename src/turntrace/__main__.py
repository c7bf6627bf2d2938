"""``python -m turntrace``: the command line."""

from turntrace.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()

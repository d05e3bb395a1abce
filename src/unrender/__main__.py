"""Runs the command line for `python -m unrender`."""

from unrender.cli import main

if __name__ == "__main__":
    main()

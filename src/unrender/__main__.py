"""`python -m unrender` into the command line."""

from unrender.cli import main

if __name__ == "__main__":
    main()

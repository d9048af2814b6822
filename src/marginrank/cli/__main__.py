"""Run the command line: ``python -m marginrank.cli``."""

from marginrank.cli import main

if __name__ == "__main__":
    main()

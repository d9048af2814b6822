"""Run the command line: ``python -m marginrank``."""

from marginrank.cli import main

if __name__ == "__main__":
    main()

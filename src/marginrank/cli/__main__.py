"""Entry point of ``python -m marginrank.cli``: run the command line."""

from marginrank.cli import main

if __name__ == "__main__":
    main()

"""Find wording that docs/understand/writing.md rules out: in code, documentation and the changelog.

    python tests/helpers/wording.py [files]

Prints one line per finding and exits with 1 if there is any. Without files, every tracked file of
the project is checked. In Python and C++ only comments and strings count, in Markdown everything
except code blocks and code spans.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECKED = ("src/", "core/", "docs/", "benchmarks/", "examples/", "README.md", "CHANGELOG.md",
           "CONTRIBUTING.md", "dev.py")  # fmt: skip
RULES_PAGE = "docs/understand/writing.md"  # quotes the words that it rules out

# A pattern, and what to write instead.
RULES = {
    r"\b(?:[Aa]n?|[Oo]ne) "
    r"(?!(?:of|in|to|for|with|by|as|from|on|at|than|or|and|is|has|if|that|such) )"
    r"[a-z-]+ an? (?!few |lot |little )[a-z]+": 'say "per" or "for each"',
    r"\b(?:is|are) to be had\b": 'say "is available"',
    r"\bthose of\b": "name the noun",
    r"\b(?:Return|Returns|return|returns) (?:what|whatever|those)\b": "name what is returned",
    r"^\"\"\"(?:What|Who|Whatever|Those|How) ": "begin with a noun, or with what is returned",
    r"\bTells? (?:whether|what|how|which)\b": 'say "Return True if" or "Whether"',
    r"\bbytes an? (?:document|entry|feature|pair|query|row|value)": 'say "per"',
    r"\b[Cc]ards?\b": 'say "GPU"',
    r"\b[Rr]efus(?:e|es|ed|al)\b": 'say "raise", "reject" or "unsupported"',
    r"\bin the place of\b": 'say "instead of"',
    r"\bwithout a word\b": 'say "silently"',
    r"\bis no (?:number|flag|word|part|model|name|file) (?:to|of|that)\b": 'say "is not"',
    r"\b(?:last word|look at the keyboard|is to be read|are to be read)\b": "say it plainly",
    r", relatively\b": 'say "relative …"',
    r"(?i)\w*(?:normal|minim|maxim|optim|regular|factor|initial|standard|summar|penal|general|"
    r"random|vector|recogn|organ|visual)is(?:e|ed|er|ers|es|ing|ation|ations)\b": "spell it with z",
    r"\b(?:behaviour|colour|neighbour|favour|centre|centred|labelled|judgement|grey)s?\b": (
        "use American spelling"
    ),
}
PATTERNS = [(re.compile(pattern), advice) for pattern, advice in RULES.items()]

# Names of others and of directives, which are spelled as they are.
NAMES = re.compile(r"`[^`]*`|https?://\S+|^:+\{[\w-]+\}")


def findings(path: Path) -> Iterator[str]:
    """Yield one line for each place in a file that breaks a rule."""
    for line, text in texts(path):
        plain = NAMES.sub("", text)
        for pattern, advice in PATTERNS:
            for found in pattern.finditer(plain):
                yield f"{path.relative_to(ROOT)}:{line}: {found[0]!r}: {advice}"


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a file that people read, each with its line number."""
    content = path.read_text(encoding="utf-8")
    if path.suffix in {".py", ".pyi"}:
        yield from python_texts(content)
    elif path.suffix in {".cpp", ".hpp"}:
        for found in re.finditer(r"//.*|\"(?:[^\"\\\n]|\\.)*\"", content):
            yield content.count("\n", 0, found.start()) + 1, found[0].strip('/" ')
    elif path.suffix == ".md":
        prose = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), content, flags=re.S)
        yield from enumerate(prose.splitlines(), 1)


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments and the lines of strings."""
    strings = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", None)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
        elif token.type in strings:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line.strip()


def checked_files() -> list[Path]:
    """Return the tracked files to check."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = listed.stdout.splitlines()
    return [ROOT / name for name in names if name.startswith(CHECKED) and name != RULES_PAGE]


def main() -> int:
    """Check the files given, or all."""
    paths = [Path(name).absolute() for name in sys.argv[1:]] or checked_files()
    found = [line for path in paths for line in findings(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Language of docstrings, comments, messages and documents: a few rules that a program can check."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Folders whose functions have docstrings that begin with a verb; of tests, docstrings say what is asked.
COVERED = ("card_envs",)
# Folders that are being rewritten.
LEFT_OUT_FOR_NOW = ()
# History, and the rules of the games, which are written for players of cards.
EXEMPT = {"CHANGELOG.md"}
EXEMPT_NAMES = {"RULES.md"}
THIS = "tests/test_prose.py"

# A function's docstring says what the function does: "Return …", "Write …", "Raise …" (PEP 257).
NOT_VERBS = re.compile(
    r"(?:What|How|Whether|Who|Whose|Where|Why|When|Which|If|Unless|The|An?|All|Any|Both|One|Two|Three|No|None|Each"
    r"|Every|It|Its|This|These|That|Those|Of|From|In|On|As|By|With|For|To|True|False|Raises|Returns|Yields)\b|[\[`\d]"
)
BANNED = re.compile(
    r"(?<!--)\b(?:anew|apart|so many|mend(?:s|ed|ing)?|whoever|bears?|sees to it)\b",  # `--apart` is an option
    re.IGNORECASE,
)


def listed(*patterns: str) -> list[str]:
    """Return the tracked files that match, relative to the repository."""
    found = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in found.stdout.splitlines() if (ROOT / name).is_file() and not is_exempt(name)]


def covered() -> list[str]:
    """Return the files whose docstrings are checked."""
    return listed(*(f"{folder}/*.py" for folder in COVERED))


def is_exempt(name: str) -> bool:
    """Return whether a file is not checked."""
    path = Path(name)
    return name == THIS or name in EXEMPT or path.name in EXEMPT_NAMES or name.startswith(LEFT_OUT_FOR_NOW)


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is read like an attribute, so that its docstring may be a noun phrase."""
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def functions(name: str) -> Iterator[tuple[str, str]]:
    """Yield place and docstring of every documented function of a file."""
    for node in ast.walk(ast.parse((ROOT / name).read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node):
            docstring = ast.get_docstring(node)
            if docstring:
                yield f"{name}:{node.lineno}: {node.name}", docstring


def prose(name: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of a document, or of the comments and strings of a program."""
    text = (ROOT / name).read_text("utf-8")
    lines = text.splitlines()
    if not name.endswith(".py"):
        yield from enumerate(lines, 1)
        return
    for number, line in enumerate(lines, 1):
        if "#" in line:
            yield number, line.partition("#")[2]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from enumerate(node.value.splitlines(), node.lineno)


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    found = [(place, docstring) for name in covered() for place, docstring in functions(name)]
    assert len(found) > 1000
    wrong = [f"{place}: {docstring.splitlines()[0]}" for place, docstring in found if NOT_VERBS.match(docstring)]
    assert not wrong, "\n".join(wrong)


def test_summaries_fit_on_one_line() -> None:
    """Check that a blank line follows the first line of a longer docstring (PEP 257)."""
    wrong = [
        place
        for name in covered()
        for place, docstring in functions(name)
        if docstring.splitlines()[1:] and docstring.splitlines()[1].strip()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("pattern", ["*.py", "*.md", "*.toml", "*.html"])
def test_no_banned_words(pattern: str) -> None:
    wrong = {
        f"{name}:{number}: {found.group()!r} in: {line.strip()}"
        for name in listed(pattern)
        for number, line in prose(name)
        for found in BANNED.finditer(line)
    }
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize("text", ["What it is.", "[n] actions.", "`play` once more.", "A thing.", "Whether it is."])
def test_non_verbs_are_noticed(text: str) -> None:
    assert NOT_VERBS.match(text)


@pytest.mark.parametrize("text", ["Return it.", "Allocate memory.", "See `Policy`.", "Yield parts.", "Append a row."])
def test_verbs_pass(text: str) -> None:
    assert not NOT_VERBS.match(text)


@pytest.mark.parametrize("text", ["drawn anew", "Whoever asks", "told apart", "so many moves", "bears it", "to mend"])
def test_banned_words_are_noticed(text: str) -> None:
    assert BANNED.search(text)


@pytest.mark.parametrize("text", ["use --apart bidding", "recommend", "partial", "forbear"])
def test_similar_words_pass(text: str) -> None:
    assert not BANNED.search(text)

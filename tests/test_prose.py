"""Docstrings of functions begin with a verb; the rest of style and words is checked by ruff and codespell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "card_envs"

# A function's docstring says what the function does: "Return …", "Write …", "Raise …" (PEP 257).
NOT_VERBS = re.compile(
    r"(?:What|How|Whether|Who|Whose|Where|Why|When|Which|If|Unless|The|An?|All|Any|Both|One|Two|Three|No|None|Each"
    r"|Every|It|Its|This|These|That|Those|Of|From|In|On|As|By|With|For|To|True|False|Raises|Returns|Yields)\b|[\[`\d]"
)


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield place and docstring of every documented function; that of a property may be a noun phrase."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (docstring := ast.get_docstring(node)):
            if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield f"{path}:{node.lineno}: {node.name}", docstring


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    found = [one for path in PACKAGE.rglob("*.py") for one in docstrings(path)]
    assert len(found) > 1000
    wrong = [f"{place}: {docstring.splitlines()[0]}" for place, docstring in found if NOT_VERBS.match(docstring)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", ["What it is.", "[n] actions.", "`play` once more.", "A thing.", "Whether it is."])
def test_non_verbs_are_noticed(text: str) -> None:
    assert NOT_VERBS.match(text)


@pytest.mark.parametrize("text", ["Return it.", "Allocate memory.", "See `Policy`.", "Yield parts.", "Append a row."])
def test_verbs_pass(text: str) -> None:
    assert not NOT_VERBS.match(text)

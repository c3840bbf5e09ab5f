"""`python -m card_envs.build._page JS FOLDER`: the page with its games in WebAssembly, for any web server or file host.

JS is the folder of the package for JavaScript, with what `python -m card_envs build --api --target wasm32` built.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from card_envs.build._native import BUILT
from card_envs.games import get_game
from card_envs.system.files import error_text, replace_folder

PAGE = Path(__file__).parents[1] / "frontends" / "serve" / "page"
OTHERS = ("index.html", "ask.js")  # of the server's page, that the other page has its own of
MARK = "sw.js"  # a folder was written here if this file in it begins as follows
BEGINS = 'const VERSION = "card_envs '
ON_DEMAND = ("strong.player", "champion.player")  # large: kept once somebody has asked them


def page_files(package: Path) -> dict[str, bytes]:
    """Return the files of the page by their path.

    Raises:
        OSError: something was not built.
    """
    games = sorted(file.stem for file in package.glob("games/[a-z]*.js"))
    built = [file for game in games for file in sorted((package / BUILT).glob(f"{game}.*"))]
    for game in games:
        if package / BUILT / f"{game}.wasm" not in built:
            raise FileNotFoundError(f"{package / BUILT / game}.wasm: not there; make npm builds it")
    modules = [*package.glob("*.js"), *package.glob("games/*.js"), *package.glob("draw/*.js"), package / "page/ask.js"]
    files = {str(file.relative_to(package)): file.read_bytes() for file in [*sorted(modules), *built]}
    files[f"{BUILT}/shapes.js"] = (package / BUILT / "shapes.js").read_bytes()
    files |= {f"page/{file.name}": file.read_bytes() for file in sorted(PAGE.iterdir()) if file.name not in OTHERS}
    files["index.html"] = (PAGE / "index.html").read_bytes().replace(b"<head>", b'<head>\n  <base href="page/">', 1)
    for game in games:
        files[f"games/{game}.md"] = get_game(game).rules_page.read_bytes()
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in sorted(files.items()))).hexdigest()
    kept = ["./", *(name for name in files if not name.endswith(ON_DEMAND))]
    begins = f'{BEGINS}{digest[:16]}";\nconst FILES = {json.dumps(kept)};\n'
    return files | {MARK: begins.encode() + (package / "page" / MARK).read_bytes()}


def write_page(package: Path, folder: Path) -> None:
    """Write the page into a folder. Raises OSError or ValueError: see `page_files` and `replace_folder`."""
    files = page_files(package)

    def own_files(old: Path) -> set[str]:
        if not (old / MARK).is_file() or not (old / MARK).read_bytes().startswith(BEGINS.encode()):
            return set()
        return {Path(name).parts[0] for name in files}

    replace_folder(folder, files, own_files)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("expected: python -m card_envs.build._page JS FOLDER")
    try:
        write_page(Path(sys.argv[1]), Path(sys.argv[2]))
    except (OSError, ValueError) as error:
        raise SystemExit(error_text(error)) from None

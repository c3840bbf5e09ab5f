"""The package for JavaScript in pages that bundlers make, by the lines of js/README.md, in Chromium.

Slow: it compiles all games, and npm fetches Vite and esbuild; skipped where its registry can't be reached.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from card_envs.build import build_api
from tests.build.test_js import JS, PORTED
from tests.build.test_static_page import Quiet
from tests.conftest import npm_install, program
from tests.frontends.page.test_page import browser

__all__ = ["browser"]  # a fixture

pytestmark = pytest.mark.slow

SEARCH = "search_16"  # a player that thinks in a worker
PAGE = (
    '<!doctype html><title>loading</title><link rel="icon" href="data:,"><script type="module" src="./app.js"></script>'
)
APP = f"""
import {{ GAMES, load }} from "card-envs";
import {{ draw }} from "card-envs/draw/{PORTED[0].name}.js";

const moves = [];
for (const name of GAMES) {{
  const table = (await load(name)).deal({{ seed: 1 }});
  const {{ move }} = await table.advise("{SEARCH}", {{ seed: 1 }});
  moves.push(move, await table.choose("greedy"));
  if (name === "{PORTED[0].name}") document.body.innerHTML = draw(table.view());
}}
document.title = moves.join(" ");
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page that uses the package, which npm installed there."""
    package, project = tmp_path_factory.mktemp("package") / "js", tmp_path_factory.mktemp("project")
    shutil.copytree(JS, package, ignore=shutil.ignore_patterns("built"))
    build_api(PORTED, ["wasm32"], package / "built", opponents=("greedy", "search:16"))
    (project / "package.json").write_text('{"private": true, "type": "module"}')
    (project / "app.js").write_text(APP)
    (project / "index.html").write_text(PAGE)
    npm = program("npm")
    subprocess.run([npm, "pack", "--silent", "--pack-destination", project], cwd=package, check=True)
    (packed,) = project.glob("card-envs-*.tgz")
    npm_install(project, f"./{packed.name}", "vite@8", "esbuild@0.28")
    return project


def lines_of_readme(bundler: str) -> str:
    blocks = re.findall(r"^```bash\n(.*?)^```", (JS / "README.md").read_text(), re.M | re.S)
    (found,) = (block for block in blocks if bundler in block)
    return found


@pytest.mark.parametrize("bundler", ["vite", "esbuild"])
def test_pages_of_bundlers(project: Path, browser: Any, bundler: str) -> None:
    """All files are found, and a player thinks in its worker: the same moves as in Node."""
    shutil.rmtree(project / "dist", ignore_errors=True)
    done = subprocess.run(
        lines_of_readme(bundler), shell=True, cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "warn" not in (done.stdout + done.stderr).lower(), done.stdout + done.stderr
    if not (project / "dist" / "index.html").exists():
        shutil.copy(project / "index.html", project / "dist")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(project / "dist"))) as server:
        threading.Thread(target=server.serve_forever).start()
        page = browser.new_page()
        complaints: list[str] = []
        workers: list[str] = []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("worker", lambda worker: workers.append(worker.url))
        try:
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_function("document.title !== 'loading'", timeout=60_000)
            title, pictures = page.title(), page.locator("svg").count()
        finally:
            page.close()
            server.shutdown()
    assert not complaints and len(workers) == 1 and pictures > 0
    in_node = APP.replace("document.body.innerHTML", "globalThis.picture").replace("document.title", "globalThis.title")
    (project / "node.mjs").write_text(in_node + "console.log(title);\n")
    told = subprocess.run([program("node"), "node.mjs"], cwd=project, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == title

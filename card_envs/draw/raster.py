"""Images of SVG documents: PNG, pixels, GIF. Requires `pip install "card_envs[draw]"`: resvg and Pillow."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import check_int
from card_envs.system.files import replace_file

MAX_WIDTH = 8192
ROUGH = 8  # times smaller: the scale at which a part is located
NAMESPACE = "http://www.w3.org/2000/svg"
DEFINITIONS = f"{{{NAMESPACE}}}defs"
REFERENCE = re.compile(r"#([\w-]+)")
DIGEST = re.compile(r'-[0-9a-f]{8}(?=["\)])')  # at the end of every id of a drawing
ElementTree.register_namespace("", NAMESPACE)
GROUND = "#12211a"  # background behind the table's round corners


def check_libraries() -> None:
    """Raise ValueError that says what to install if images can't be made."""
    try:
        import PIL.Image  # noqa: F401
        import resvg_py  # noqa: F401
    except ImportError:
        raise ValueError("pictures need resvg and Pillow: pip install 'card_envs[draw]'") from None


def png(svg: str, width: int = 1200) -> bytes:
    """Return a PNG of an SVG document, `width` pixels wide."""
    check_int(width, 16, MAX_WIDTH, "width")
    check_libraries()
    from resvg_py import svg_to_bytes

    # The drawings have no text elements, so fonts are not needed.
    return bytes(svg_to_bytes(svg_string=svg, width=width, skip_system_fonts=True))


def pixels(svg: str, width: int = 1200) -> NDArray[np.uint8]:
    """Return an SVG document as RGB, [height, width, 3] uint8.

    Both sides are even, as video encoders require.
    """
    content = png(svg, width)
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        ground = Image.new("RGB", (image.width - image.width % 2, image.height - image.height % 2), GROUND)
        ground.paste(image, mask=image.getchannel("A"))
        return np.array(ground, np.uint8)


class _Layers:
    """Draws documents that share most of their parts, such as the positions of a game: each part is drawn once.

    Attributes:
        width: pixels of each image.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._drawn: dict[str, tuple[Any, tuple[int, int]]] = {}

    def image(self, svg: str) -> Any:
        """Return a document as a PIL image, RGB."""
        from PIL import Image

        root = ElementTree.fromstring(DIGEST.sub("", svg))  # of the document: parts of others have the same names
        parts = [part for part in root if part.tag != DEFINITIONS]
        known = {node.get("id"): ElementTree.tostring(node, "unicode") for node in root.iterfind(f"{DEFINITIONS}/*")}
        box = [float(number) for number in root.get("viewBox", "").split()]
        size = self.width, math.ceil(self.width * box[3] / box[2])
        image = Image.new("RGB", size, GROUND)
        for part in parts:
            layer, place = self._layer(ElementTree.tostring(part, "unicode"), known, box, size)
            if layer is not None:
                image.paste(layer, place, layer)
        return image

    def _layer(
        self, part: str, known: dict[str | None, str], box: list[float], size: tuple[int, int]
    ) -> tuple[Any, tuple[int, int]]:
        """Return a part, cut out, and where it belongs; None if it shows nothing."""
        key = f"{box}{part}"
        if key not in self._drawn:
            names, used = REFERENCE.findall(part), dict[str, str]()
            while names:
                name = names.pop()
                if name in known and name not in used:
                    used[name] = known[name]
                    names += REFERENCE.findall(known[name])
            inside = f"<defs>{''.join(used.values())}</defs>{part}"
            self._drawn[key] = _cut_out(inside, box, size)
        return self._drawn[key]


def _cut_out(inside: str, box: list[float], size: tuple[int, int]) -> tuple[Any, tuple[int, int]]:
    """Draw what is inside a document, in two steps: roughly, to see where it is, then only there."""
    from PIL import Image

    def render(box: list[float], width: int, height: int) -> Any:
        view_box = f'viewBox="{" ".join(map(repr, box))}" preserveAspectRatio="none"'
        attributes = f'width="{width}" height="{height}" {view_box}'
        with Image.open(io.BytesIO(png(f'<svg xmlns="{NAMESPACE}" {attributes}>{inside}</svg>', width))) as image:
            return image.copy()

    rough = render(box, *(max(16, side // ROUGH) for side in size))
    bounds = rough.getbbox()
    if bounds is None:
        return None, (0, 0)
    x, y = (side / units for side, units in zip(size, box[2:]))  # pixels a unit
    fine = [side / rough_side for side, rough_side in zip(size, rough.size)]  # pixels per rough pixel
    left, top = (max(0, int(side * (at - 1))) for side, at in zip(fine, bounds[:2]))
    right, bottom = (int(side * (at + 1)) + 1 for side, at in zip(fine, bounds[2:]))
    width, height = max(right - left, 16), max(bottom - top, 16)
    return render([box[0] + left / x, box[1] + top / y, width / x, height / y], width, height), (left, top)


def save_gif(path: str | Path, svgs: Iterable[str], width: int = 800, seconds: float = 1.0) -> int:
    """Write pictures as an animated GIF; return their number.

    Args:
        path: the file, written atomically.
        svgs: the documents, all of the same aspect ratio.
        width: pixels of each picture.
        seconds: per picture, 0.02 to 60; the last one stays three times as long.
    """
    if not 0.02 <= seconds <= 60:
        raise ValueError(f"seconds: expected 0.02 to 60, got {seconds}")
    check_int(width, 16, MAX_WIDTH, "width")
    check_libraries()
    from PIL import Image

    layers = _Layers(width)
    frames: list[Any] = []
    for svg in svgs:
        image = layers.image(svg)
        # Few colours without dithering: flat shapes stay flat, and the file small. All share those of the first.
        colours = {"palette": frames[0]} if frames else {"colors": 128}
        frames.append(image.quantize(**colours, dither=Image.Dither.NONE))
    times = [round(1000 * seconds)] * (len(frames) - 1) + [round(3000 * seconds)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0)
    replace_file(path, file.getvalue())
    return len(frames)

"""Images of SVG documents: PNG, pixels, GIF. Requires `pip install "card_envs[draw]"`: resvg and Pillow."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import check_int
from card_envs.system.files import replace_file

MAX_WIDTH = 8192
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

    frames: list[Image.Image] = []
    for svg in svgs:
        image = Image.fromarray(pixels(svg, width))
        # Few colours without dithering: flat shapes stay flat, and the file small. All share those of the first.
        frames.append(image.quantize(128, palette=frames[0] if frames else None, dither=Image.Dither.NONE))
    times = [round(1000 * seconds)] * (len(frames) - 1) + [round(3000 * seconds)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0)
    replace_file(path, file.getvalue())
    return len(frames)

"""This package as one file, for executors on machines where it is not installed."""

import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_EPOCH = (1980, 1, 1, 0, 0, 0)


def zip_package(folder: Path) -> Path:
    """Put the package with its data files into a zip below `folder`, from which Python can import it."""
    target = folder / f"{PACKAGE.name}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(PACKAGE.rglob("*")):
            inside = path.relative_to(PACKAGE.parent)
            if path.is_file() and "__pycache__" not in inside.parts:
                # With one date for all, the same sources give the same bytes.
                file.writestr(zipfile.ZipInfo(str(inside), _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return target

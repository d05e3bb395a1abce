"""Tests of the command without click or rich, as after `pip install unrender` without the extra `cli`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import unrender

WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split('+'))); from unrender.cli import main; main()"
)
NEEDED = "unrender: error: the command line needs the extra 'cli': pip install 'unrender[cli]'"


@pytest.mark.parametrize("missing", ["click+rich", "rich"])
@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["--version"], 0, f"unrender, version {unrender.__version__}\n", ""),
        ([], 2, "", NEEDED),
        (["parse", "x"], 2, "", NEEDED),
    ],
)
def test_without_the_extra(missing, words, code, out, err):
    """--version prints the version. All other commands fail with an error that names the extra."""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, missing, *words],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(unrender.__file__).parents[1])},
    )

    # In a checkout, the command installs the checkout.
    last = re.sub(
        r"pip install -e '[^']*\[cli\]'", "pip install 'unrender[cli]'", ended.stderr.strip().rpartition("\n")[2]
    )
    assert (ended.returncode, ended.stdout, last) == (code, out, err)

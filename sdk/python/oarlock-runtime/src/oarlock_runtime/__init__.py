"""Where the program `oarlock` of this wheel is."""

import os
import sysconfig
from pathlib import Path

__all__ = ["binary_path"]


def binary_path() -> Path:
    """The program, in the folder of scripts of whichever scheme the wheel was installed by."""
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    places = [Path(sysconfig.get_path("scripts", scheme)) / "oarlock" for scheme in schemes]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return place
    tried = ", ".join(map(str, places))
    raise FileNotFoundError(f"the program of oarlock-runtime is not where it was installed ({tried}); install it again")

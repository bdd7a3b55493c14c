"""Read by Python at the start of a program with this folder in its PYTHONPATH: it is patient.

See `tests.support.far_limits`, which such a program may not find under that name.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_FILE = Path(__file__).resolve().parents[1] / "far_limits.py"
_spec = spec_from_file_location("far_limits_of_this_program", _FILE)
assert _spec is not None
assert _spec.loader is not None
_far_limits = module_from_spec(_spec)
sys.modules[_spec.name] = _far_limits
_spec.loader.exec_module(_far_limits)
_far_limits.stay_patient()

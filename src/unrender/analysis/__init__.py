"""From a template to a Format: probes, differences, needles.

Invariants:
- A decision rests on where needles stand in renderings; no code path knows a model's name or a marker's spelling.
- No needle is left in a marker; the Format does not depend on needles, BOS, EOS or the date.
- The analysis raises nothing: what it cannot determine it leaves out, and says so.
"""

from unrender.analysis.analyze import Analysis, analyze
from unrender.analysis.capabilities import Capabilities, ReasoningPlace
from unrender.analysis.shape import shape_context, shape_messages

__all__ = ["Analysis", "Capabilities", "ReasoningPlace", "analyze", "shape_context", "shape_messages"]

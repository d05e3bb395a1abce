"""Probes a running engine: what its server does to prompts and answers, and how its model writes calls.

`tasks` are small requests with known answers. `evidence` sends them, together with a few questions about the server. `answers` classifies
each answer, `causes` and `server_causes` explain the trouble, and `observed` is the format in which this model's calls are parsed. `report` describes all of it.

Rules: a cause has evidence, and a healthy server has no causes. The tasks are no benchmark's.
"""

from unrender.probe.causes import Cause
from unrender.probe.probing import connected, probe, probe_engine
from unrender.probe.report import ProbeReport, page

__all__ = ["Cause", "ProbeReport", "connected", "page", "probe", "probe_engine"]

"""The colours of phases: one each, and no two that somebody cannot tell apart."""

import itertools

import numpy as np

from turntrace.core.contract import PHASES
from turntrace.core.phase_colors import PHASE_COLORS, UNATTRIBUTED

EYES = {
    "trichromat": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
"""What the eye makes of linear RGB (Machado, Oliveira and Fernandes, 2009, severity 1)."""

TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
FREQUENT = ("generation", "tool_execution", "permission_wait", "retry_wait", "verification",
            "provider_connect", "compaction", UNATTRIBUTED)  # fmt: skip


def lab(color, eye):
    """A colour in CIE L*a*b* as an eye sees it."""
    rgb = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(EYES[eye] @ linear, 0, 1) / np.array([0.95047, 1, 1.08883])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def nearest(phases, eye):
    """The smallest difference of two of the phases, and which they are."""
    seen = {phase: lab(PHASE_COLORS[phase], eye) for phase in phases}
    return min(
        (float(np.linalg.norm(seen[one] - seen[other])), one, other)
        for one, other in itertools.combinations(phases, 2)
    )


def test_every_phase_has_a_colour_of_its_own():
    """The phases of the contract and unattributed; no two alike."""
    assert PHASE_COLORS.keys() == {*PHASES, UNATTRIBUTED}
    assert len(set(PHASE_COLORS.values())) == len(PHASE_COLORS)


def test_no_eye_takes_one_phase_for_another():
    """A difference of 2.3 is just noticeable; any two have 13 and more, the frequent ones 16."""
    for eye in EYES:
        assert nearest(tuple(PHASE_COLORS), eye) > (13,)
        assert nearest(FREQUENT, eye) > (16,)

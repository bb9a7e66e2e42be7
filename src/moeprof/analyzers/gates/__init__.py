"""Rules of a gate: what a run must keep of its baseline, one outcome per rule. No outcome is ever a silent pass."""

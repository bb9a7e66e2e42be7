"""What is missing, odd or unsure in a capture, as findings: each rule is a function of the tables of one rank."""

from moeprof.analyzers.quality.capture import quality_findings

__all__ = ["quality_findings"]

"""Accuracy of two arms: counts of right answers in, intervals and what may be said about a drop out."""

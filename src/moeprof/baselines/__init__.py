"""Accepted baselines: what an arm did when somebody looked and said so, in a small file that lies beside the configuration."""

"""Read `moeprof.toml`: arms, workloads, passes, the profile window and the gates. Unknown keys are errors."""

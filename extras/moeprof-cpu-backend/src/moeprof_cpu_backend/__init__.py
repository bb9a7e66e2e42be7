"""Expert parallelism for vLLM on a CPU, for moeprof's demo and tests. Each plugin is a module with a `register` function."""

"""Running agents over suites of tasks: suites, oracles, proofs."""

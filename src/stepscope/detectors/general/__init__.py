"""General detectors: each tells where one component's time goes, if no specific finding explains it."""

"""How each kind of latency and action space finds its subset of smallest gap."""

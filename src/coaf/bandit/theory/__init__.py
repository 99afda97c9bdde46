"""The paper's regret bounds and the eluder dimension, printed and repaired."""

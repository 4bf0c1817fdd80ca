"""Defences: each is a loss, a batch transform or a source of samples for `training.fit`."""

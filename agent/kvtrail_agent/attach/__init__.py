"""Recorders inside engines that other people wrote: each passes every call through and never raises into its engine."""

"""The `kvtrail` command: one verb a file under `commands/`; computing is done elsewhere, here it is asked for and shown."""

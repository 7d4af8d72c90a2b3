"""The lab: trains, judges and compares runs. The library never imports it."""

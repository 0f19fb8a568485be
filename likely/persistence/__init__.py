"""Model files: data only, checked before it is believed."""

"""The DRMs: text or ads in, values out. No process, no file, no Pulsar, no Galaxy."""

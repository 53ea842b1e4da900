"""Many tables at once: those asked, the noise of those measured, the answer estimated."""

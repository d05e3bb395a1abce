"""From a template to its Format: probes, comparisons, evidence."""

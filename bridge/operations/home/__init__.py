"""The service home: backup, cleaning up, sizes, the cluster it belongs to, links to its pages."""

"""The service home: backup, cleaning up, disk use, the cluster it connects to, links to its pages."""

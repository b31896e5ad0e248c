"""Rows that people register or write: agents, repositories, hosts, pipelines, memory, reviews."""

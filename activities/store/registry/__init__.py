"""Rows that people register or keep: agents, repositories, hosts, pipelines, memory, reviews."""

"""What people register and write: agents, repositories, memory, reviews, the first team."""

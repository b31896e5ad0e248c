"""The warm process, which has everything imported and forks for each command, and the hand-over of commands to it."""

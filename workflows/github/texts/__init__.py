"""The markdown of every comment the service posts: functions of rows, so that the same rows give the same text."""

"""What applications hold: a group to send to and to receive from."""

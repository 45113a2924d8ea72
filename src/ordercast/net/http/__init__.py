"""A small HTTP/1.1 server: strict about what it reads, and limited in everything that a client can take."""

"""Input data of users: validated arrays, frames, schemas, groups of people, chunks."""

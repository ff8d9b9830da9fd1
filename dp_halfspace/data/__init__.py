"""What users hand in: validated arrays, frames, schemas, groups of people, chunks."""

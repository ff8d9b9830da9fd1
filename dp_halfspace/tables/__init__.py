"""Tables in natural units: what is public about their columns, and numbers made from them."""

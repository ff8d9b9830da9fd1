"""What several algorithms share: class counts, thresholds, feature maps, outlooks and constants."""

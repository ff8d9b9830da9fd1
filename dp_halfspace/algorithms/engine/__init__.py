"""What several algorithms share: plans, thresholds, feature maps, outlooks and public rules."""

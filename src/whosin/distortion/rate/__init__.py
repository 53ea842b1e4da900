"""How little must an output tell about the table at a distortion? Rate–distortion."""

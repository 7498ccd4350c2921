"""Video-text models on CLIP's towers, trained from frames: CLIP4Clip, CLIP2Video, TS2-Net."""

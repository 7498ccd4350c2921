"""Joint picture-text models (CLIP, SigLIP, MobileCLIP), run from published ONNX files."""

"""CLIP-like backbones: read, converted to ONNX, installed, run."""

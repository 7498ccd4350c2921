"""Joint picture-text models (CLIP, SigLIP, MobileCLIP, PE-Core): towers, tokenizers, picture transforms."""

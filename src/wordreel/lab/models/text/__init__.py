"""Caption encoders: word vectors, BERT and GPT, and how their tokens are pooled."""
